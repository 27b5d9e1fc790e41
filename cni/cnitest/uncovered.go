package cnitest

import "slices"

// Uncovered is a rule for plugins that no case looks at.
type Uncovered struct {
	Rule   Rule
	Reason string
}

// UncoveredRules returns the rules for plugins, of any kind, that no case names, with the
// reason.
func UncoveredRules() []Uncovered {
	covered := map[int]bool{}
	for _, c := range groups() {
		for _, row := range c.Rows {
			covered[row] = true
		}
	}
	reasons := uncoveredReasons()
	var out []Uncovered
	for _, r := range Rules() {
		forPlugins := slices.ContainsFunc(r.Actors, func(actor string) bool { return actor != "runtime" })
		if forPlugins && !covered[r.Number] {
			out = append(out, Uncovered{r, reasons[r.Number]})
		}
	}
	return out
}

// uncoveredReasons says why there is no case, by the number of the rule.
func uncoveredReasons() map[int]string {
	const (
		permission = "permits something; a plugin that does not make use of it breaks nothing"
		inside     = "is about what a plugin knows, which cannot be seen from outside"
		others     = "needs a service of the plugin's own that the kit would have to stop"
	)
	return map[int]string{
		23:  permission,
		55:  "is about plugins like dhcp, which need their daemon and a server",
		65:  inside + ": how the container is reached is the plugin's",
		80:  others,
		94:  permission + "; what GC removes is looked at under rule 95",
		98:  "needs an object that cannot be removed, which differs from plugin to plugin; that GC passes on the error of a delegate is looked at under rule 164",
		169: "needs devices (sockets, PCI functions) that the kit's node does not have; the form of the keys is looked at with the results",
		171: permission,
		176: permission,
		183: "depends on the keys of each plugin: no key is unsupported by all",
		184: "is for plugins that know containers by themselves",
		186: "is looked at where a disk is full, by the message and not by the code: the specification does not demand the code",
		189: inside + ": which of its conditions pass",
		190: "repeats rules 82 and 83",
		191: permission,
	}
}
