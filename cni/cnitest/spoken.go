package cnitest

import (
	"fmt"
	"slices"

	"github.com/cnikit/cnikit/cni"
)

// chooseVersion asks the plugin what versions it speaks, and picks that of the requests:
// that of the configuration, else the newest that the plugin and those it calls speak.
func (p *probe) chooseVersion() error {
	x := p.exam
	answer := p.do(p.versionRequest("1.1.0"))
	if answer.late {
		return fmt.Errorf("VERSION got no answer within %s, so that nothing else is tried", x.o.Timeout)
	}
	x.versions, x.version = answer.spoken(), x.net.version
	x.limit = p.limit()
	switch {
	case len(x.versions) == 0:
		x.note("VERSION told no versions (%s); those of the configuration are taken for spoken", answer)
		if x.version == "" {
			x.version = "1.0.0"
		}
		x.versions = []string{x.version}
	case x.version == "":
		if x.version = newest(x.versions); x.version == "" {
			return fmt.Errorf("it speaks %v, and the kit %v", x.versions, cni.SupportedVersions())
		}
		if x.limit.below(x.version) {
			x.version, x.because = x.limit.version, ": "+x.limit.String()
			x.note("the requests have version %s%s", x.version, x.because)
		}
	case !slices.Contains(x.versions, x.version):
		x.note("the configuration has cniVersion %s, which the requests have too, and VERSION lists %v only: one of the two is wrong", x.version, x.versions)
	case x.version < newest(x.versions):
		x.because = ", as the configuration says; leave its cniVersion out for the newest that the plugin speaks"
	}
	return nil
}

// limit finds the one of those that the plugin calls that speaks the oldest versions only.
func (p *probe) limit() (l limit) {
	for _, delegate := range p.delegates() {
		if _, err := find(delegate, p.path); err != nil {
			continue // cases tell of it
		}
		r := p.versionRequest("1.1.0")
		r.plugin = delegate
		version := newest(slices.DeleteFunc(p.do(r).spoken(), func(v string) bool { return !slices.Contains(p.versions, v) }))
		if version != "" && (l.version == "" || version < l.version) {
			l = limit{delegate, version}
		}
	}
	return l
}

// limit is the newest version that a delegate speaks; the zero value is none.
type limit struct{ delegate, version string }

func (l limit) below(v string) bool { return l.version != "" && l.version < v }

func (l limit) String() string {
	return fmt.Sprintf("%s is the newest version that %s speaks, which the plugin calls", l.version, l.delegate)
}

// spoken are the versions that an answer to VERSION lists.
func (r reply) spoken() (versions []string) {
	for _, v := range r.document().list("supportedVersions") {
		if text, ok := v.(string); ok {
			versions = append(versions, text)
		}
	}
	return versions
}

// newest is the last version of the specification that is in a list, "" if none is.
func newest(versions []string) (last string) {
	for _, v := range cni.SupportedVersions() {
		if slices.Contains(versions, v) {
			last = v
		}
	}
	return last
}

// since says that the requests have a version in which the commands are there.
func since(v, commands string) need {
	return func(x *exam) string {
		switch {
		case x.version >= v:
			return ""
		case newest(x.versions) < v:
			return version(v)(x)
		}
		return fmt.Sprintf("%s there since version %s, and the requests have %s%s", commands, v, x.version, x.because)
	}
}

// served says that the plugin and those it calls speak a version.
func served(v string) need {
	return func(x *exam) string {
		if reason := version(v)(x); reason != "" || !x.limit.below(v) {
			return reason
		}
		return x.limit.String()
	}
}

// What came with a version.
func listsInterfaces(x *exam) string { return since("0.3.0", "interfaces in a result are")(x) }
func checks(x *exam) string          { return since("0.4.0", "CHECK is")(x) }
func newCommands(x *exam) string     { return since("1.1.0", "STATUS and GC are")(x) }
