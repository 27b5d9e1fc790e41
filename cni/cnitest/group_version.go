package cnitest

import (
	"slices"
	"strings"
)

func versionCases() []kase {
	return inGroup(
		"version",
		kase{
			CaseInfo: CaseInfo{
				Name: "answer", Rows: []int{91, 178}, Strength: Must,
				About: "VERSION prints a result with cniVersion and a list supportedVersions that is not empty.",
				Fix:   `answer CNI_COMMAND=VERSION with exit status 0 and {"cniVersion": "…", "supportedVersions": ["1.0.0", …]} on standard output`,
			},
			run: versionAnswers,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "echo", Rows: []int{178}, Strength: Must,
				About: "The cniVersion of the answer to VERSION is the one that was given.",
				Fix:   "read standard input also for VERSION and copy its cniVersion into the answer, instead of naming the newest version that the plugin speaks",
			},
			run: versionEchoes,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "environment", Rows: []int{93}, Strength: Must,
				About: "VERSION needs no variable but CNI_COMMAND.",
				Fix:   "answer VERSION before CNI_CONTAINERID, CNI_NETNS, CNI_IFNAME and CNI_PATH are looked at",
			},
			run: versionEnvironment,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "unsupported", Rows: []int{182}, Strength: Must,
				About: "A configuration of a version that the plugin does not speak is refused with code 1.",
				Fix:   "compare cniVersion with supportedVersions before anything is set up, and answer with code 1 (incompatible CNI version)",
			},
			run: versionUnsupported,
		},
		kase{
			CaseInfo: CaseInfo{
				Name: "known", Rows: []int{178}, Strength: Should,
				About: "supportedVersions lists versions of the specification, each once.",
				Fix:   "list only versions that the specification has: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0",
			},
			run: versionsKnown,
		},
	)
}

func versionAnswers(p *probe) {
	got := p.do(p.versionRequest(p.version))
	d := got.document()
	switch {
	case !got.succeeded():
		p.broken("VERSION: %s", got)
	case d == nil:
		p.broken("VERSION printed no single JSON object: %s", got)
	case d.text("cniVersion") == "":
		p.fault("the answer has no cniVersion: %s", got)
	}
	if len(d.list("supportedVersions")) == 0 {
		p.fault("the answer has no supportedVersions: %s", got)
	}
	for _, v := range d.list("supportedVersions") {
		if _, ok := v.(string); !ok {
			p.fault("supportedVersions has %v, which is no string", v)
		}
	}
}

func versionEchoes(p *probe) {
	for _, v := range p.versions {
		got := p.do(p.versionRequest(v))
		if !got.succeeded() || got.document() == nil {
			p.skip("VERSION does not answer; see version/answer")
		}
		if answer := got.document().text("cniVersion"); answer != v {
			p.fault("VERSION with cniVersion %q answers cniVersion %q", v, answer)
		}
	}
}

func versionEnvironment(p *probe) {
	p.needed(p.do(p.versionRequest(p.version)))
	r := p.versionRequest(p.version)
	r.env = map[string]string{"CNI_COMMAND": "VERSION"}
	if got := p.do(r); !got.succeeded() || len(got.document().list("supportedVersions")) == 0 {
		p.broken("VERSION with CNI_COMMAND alone: %s", got)
	}
}

func versionUnsupported(p *probe) {
	a := p.container()
	for _, v := range []string{"9.9.9", "0.0.1"} {
		r := p.request("ADD", a)
		r.config["cniVersion"] = v
		got := p.do(r)
		code, _, ok := got.failure()
		switch {
		case got.succeeded():
			p.fault("ADD with cniVersion %q: %s", v, got)
		case !ok || code != 1:
			p.fault("ADD with cniVersion %q fails without code 1: %s", v, got)
		}
	}
}

func versionsKnown(p *probe) {
	known := []string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}
	for i, v := range p.versions {
		if !slices.Contains(known, v) {
			p.fault("supportedVersions has %q; the specification's are %s", v, strings.Join(known, ", "))
		}
		if slices.Contains(p.versions[:i], v) {
			p.fault("supportedVersions has %q twice", v)
		}
	}
}
