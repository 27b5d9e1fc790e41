package main

import "github.com/cnikit/cnikit/cni"

func versionFaults() map[string]fault {
	versions := func(change func(*call, object)) fault {
		return after(cni.CommandVersion, func(c *call) {
			if answer := parse(c.stdout); c.exit == 0 && answer != nil {
				change(c, answer)
				c.answer(answer)
			}
		})
	}
	return map[string]fault{
		"version-number-in-list": versions(func(_ *call, answer object) {
			answer.set("supportedVersions", append(anyVersions(), 1))
		}),
		"version-of-its-own": versions(func(_ *call, answer object) {
			answer.set("cniVersion", "1.1.0")
		}),
		"version-unheard-of": versions(func(_ *call, answer object) {
			answer.set("supportedVersions", append(anyVersions(), "1.0.5"))
		}),
		"version-needs-path": before(cni.CommandVersion, func(c *call) bool {
			return c.env["CNI_PATH"] != ""
		}, "CNI_PATH is missing"),
		"any-version-served": {on: "chained", process: func(c *call, serve func()) {
			if c.command(cni.CommandAdd) && c.version() == "9.9.9" {
				c.configure("cniVersion", "1.1.0")
			}
			serve()
		}},
	}
}

func anyVersions() (list []any) {
	for _, v := range cni.SupportedVersions() {
		list = append(list, v)
	}
	return list
}
