package main

import (
	"fmt"
	"slices"
	"strings"
)

// lookForWarnings notes what is wrong with this host that the agent does not mend, and
// that is no reason to call the node not ready: pods can be attached, or the runtime does
// not ask our plugin at all. It is called with each topology, and by the engine's rounds
// that looked, so at the latest after a resync. What is new, or over, is logged once.
func (a *agent) lookForWarnings() {
	a.updating.Lock()
	defer a.updating.Unlock()
	found := slices.Concat(a.strictFilters(), a.opts.precedence(), a.opts.missingPlugins())
	for _, text := range found {
		if !slices.Contains(a.warnings, text) {
			a.log.Warn("this host needs attention", "reason", text)
		}
	}
	for _, text := range a.warnings {
		if !slices.Contains(found, text) {
			a.log.Info("this is over", "reason", text)
		}
	}
	a.warnings = found
}

// strictFilters says where the kernel drops packets between pods and other nodes, see
// [vxlan.Backend.StrictFilters]. Where something masquerades pods to nodes it drops none,
// which cannot be seen from here.
func (a *agent) strictFilters() (found []string) {
	for _, link := range a.backend.StrictFilters() {
		lost := "what pods of other nodes send to addresses of this node"
		if link == a.opts.device {
			lost = "what other nodes answer to pods of this node from their own addresses"
		}
		// sysctl(8) writes the dots of a name as slashes.
		key := "net.ipv4.conf." + strings.ReplaceAll(link, ".", "/") + ".rp_filter"
		found = append(found, fmt.Sprintf("%s: its reverse path filter is strict and drops %s; set sysctl %s=2", link, lost, key))
	}
	return found
}
