package main

import (
	"slices"

	"github.com/cnikit/cnikit/cni"
)

func resultsFaults() map[string]fault {
	all := map[string]fault{
		"result-of-1.0.0-with-mtu": result("chained", func(c *call, result object) {
			if c.version() == "1.0.0" {
				eachIn(result, "interfaces", func(i map[string]any) { i["mtu"] = 1500 })
			}
		}),
		"result-without-mac-of-the-host": result("bridge", func(_ *call, result object) {
			eachIn(result, "interfaces", func(i map[string]any) {
				if i["sandbox"] == nil {
					delete(i, "mac")
				}
			})
		}),
		"sandbox-rewritten": rewritten(func(c *call, result object) {
			eachIn(result, "interfaces", func(i map[string]any) {
				if i["name"] == c.env["CNI_IFNAME"] {
					i["sandbox"] = c.env["CNI_NETNS"] + "/."
				}
			})
		}, func(c *call, result object) {
			eachIn(result, "interfaces", func(i map[string]any) {
				if i["name"] == c.env["CNI_IFNAME"] {
					i["sandbox"] = c.env["CNI_NETNS"]
				}
			})
		}),
		"address-made-up": madeUp("ips", map[string]any{"address": "192.0.2.77/24"}),
		"route-made-up":   madeUp("routes", map[string]any{"dst": "192.0.2.128/25"}),
		"ipam-lists-interfaces": result("ipam", func(c *call, result object) {
			if c.version() >= "0.3.0" {
				result.set("interfaces", []any{})
			}
		}),
		"nameservers-turned-round": result("chained", func(c *call, result object) {
			var dns map[string]any
			if decode(c.config()["dns"], &dns); dns == nil {
				return
			}
			if list, ok := dns["nameservers"].([]any); ok {
				slices.Reverse(list)
			}
			result.set("dns", dns)
		}),
	}
	for _, v := range cni.SupportedVersions() {
		on := "chained"
		if v < "0.3.0" {
			on = "ipam"
		}
		all["result-without-version-in-"+v] = result(on, func(c *call, result object) {
			if c.version() == v {
				delete(result, "cniVersion")
			}
		})
	}
	return all
}

// result is an ADD that succeeds with a changed result.
func result(on string, change func(c *call, result object)) fault {
	return fault{on: on, process: func(c *call, serve func()) {
		serve()
		if result := parse(c.stdout); c.command(cni.CommandAdd) && c.exit == 0 && result != nil {
			change(c, result)
			c.answer(result)
		}
	}}
}

// rewritten is a bridge whose result is changed, and changed back when it comes as
// prevResult: it is wrong, but what follows is right.
func rewritten(there, back func(c *call, result object)) fault {
	f := result("bridge", there)
	change := f.process
	f.process = func(c *call, serve func()) {
		if previous := parse(c.config()["prevResult"]); previous != nil && c.command(cni.CommandCheck, cni.CommandDel) {
			back(c, previous)
			c.configure("prevResult", previous)
		}
		change(c, serve)
	}
	return f
}

// madeUp is a bridge whose result has a further entry in a list.
func madeUp(key string, entry map[string]any) fault {
	return rewritten(func(c *call, result object) {
		if c.version() < "1.0.0" {
			return // their form is another one
		}
		var list []any
		decode(result[key], &list)
		result.set(key, append(list, entry))
	}, func(_ *call, result object) {
		var list []any
		decode(result[key], &list)
		result.set(key, slices.DeleteFunc(list, func(v any) bool { return string(marshal(v)) == string(marshal(entry)) }))
	})
}

// eachIn changes the objects in a list.
func eachIn(o object, key string, change func(map[string]any)) {
	var list []map[string]any
	if decode(o[key], &list); list == nil {
		return
	}
	for _, entry := range list {
		change(entry)
	}
	o.set(key, list)
}
