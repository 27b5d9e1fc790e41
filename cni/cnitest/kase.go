package cnitest

import (
	"fmt"
	"slices"
)

// kase is one case. Groups are functions in files group_NAME.go that return theirs.
type kase struct {
	CaseInfo
	profiles []Profile // for which it is; none: all
	needs    []need
	run      func(*probe)
}

// need says why a case does not apply to a target, "" if it does.
type need func(*exam) string

// groups returns all cases, those of a group together.
func groups() []kase {
	var all []kase
	for _, group := range []func() []kase{
		protocolCases, versionCases, resultsCases, addCases, delCases, checkCases, statusCases, gcCases,
		chainingCases, delegationCases, ipamCases, concurrencyCases,
		faultsCases,
	} {
		all = append(all, group()...)
	}
	return all
}

// Cases returns what there is for plugins of a profile, "" for all, in the order in
// which it is run.
func Cases(p Profile) []CaseInfo {
	var infos []CaseInfo
	for _, c := range groups() {
		if p == "" || c.suits(p) {
			infos = append(infos, c.CaseInfo)
		}
	}
	return infos
}

func (c kase) suits(p Profile) bool { return len(c.profiles) == 0 || slices.Contains(c.profiles, p) }

// inGroup puts the cases into a group.
func inGroup(group string, cases ...kase) []kase {
	for i := range cases {
		cases[i].Group = group
	}
	return cases
}

// aProcess: the plugin is executed.
func aProcess(x *exam) string {
	if x.target.Handler != nil {
		return "the plugin is a Handler in this process, and the case needs an executable"
	}
	return ""
}

// version says that the plugin speaks a version.
func version(v string) need {
	return func(x *exam) string {
		if !slices.Contains(x.versions, v) {
			return fmt.Sprintf("the plugin does not speak version %s, only %v", v, x.versions)
		}
		return ""
	}
}

// aDelegate: the configuration has the plugin call others.
func aDelegate(x *exam) string {
	if len(x.delegates()) == 0 {
		return "the plugin delegates to no other: the configuration names no ipam.type"
	}
	return ""
}

// noDelegate: the plugin serves every request itself.
func noDelegate(x *exam) string {
	if d := x.delegates(); len(d) > 0 {
		return fmt.Sprintf("the plugin delegates to %v, which takes CNI_PATH", d)
	}
	return ""
}
