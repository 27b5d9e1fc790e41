package cnitest

// The group looks at plugins in a world that misbehaves. What the specification says of
// that is mostly that DEL and GC get along with it (rules 53 to 57 and 97), so most of
// these rules should be kept, and few must.
func faultsCases() []kase {
	var all []kase
	for _, part := range [][]kase{namespaceFaults(), interfaceFaults(), previousFaults(), delegateFaults(), stateFaults(), killCases()} {
		all = append(all, part...)
	}
	return inGroup("faults", all...)
}

// inNamespaces are the profiles of plugins that work in the container's namespace.
func inNamespaces() []Profile { return []Profile{ProfileInterface, ProfileChained, ProfileMeta} }

// attaching are the profiles of plugins that make an interface.
func attaching() []Profile { return []Profile{ProfileInterface, ProfileMeta} }

// unclear says why an answer is neither success nor a failure that says so, "" if it is
// one of these: a plugin may be unable to go on, but it must not hang, crash or be silent.
func unclear(got reply) string {
	_, _, failed := got.failure()
	if got.exit == 0 && !got.late || got.exit > 0 && failed {
		return ""
	}
	return got.String()
}
