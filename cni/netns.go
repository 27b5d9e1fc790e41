package cni

// NetNS is the network namespace of a request.
type NetNS struct {
	Path string // CNI_NETNS

	// Gone says for a DEL that there is nothing to enter: the path is empty, absent, no
	// network namespace or the plugin's own. An ADD or CHECK is refused then; STATUS and
	// GC are about no namespace.
	Gone bool
}

// netnsKind is what a path turns out to be.
type netnsKind int

const (
	netnsOther  netnsKind = iota // a network namespace that is not the caller's
	netnsOwn                     // the network namespace of the calling thread
	netnsNone                    // something else
	netnsAbsent                  // nothing
)

// guardNetNS decides what a request may do with its namespace, before a handler
// could touch the wrong one. It looks at the namespace of the calling thread.
func guardNetNS(inv Invocation, allowOwn bool) (NetNS, error) {
	ns := NetNS{Path: inv.NetNS}
	if !inv.Command.attaches() {
		return ns, nil
	}
	if ns.Path == "" {
		ns.Gone = true
		return ns, nil
	}
	kind, err := lookNetNS(ns.Path)
	if err != nil {
		return ns, Errorf(codeOfLook(err), "look at CNI_NETNS=%q: %w", ns.Path, err)
	}
	if kind == netnsOther || kind == netnsOwn && allowOwn {
		return ns, nil
	}
	if inv.Command == CommandDel {
		ns.Gone = true
		return ns, nil
	}
	return ns, Errorf(CodeInvalidEnvironment, "CNI_NETNS=%q %s", ns.Path, map[netnsKind]string{
		netnsOwn: "is the network namespace that the plugin itself runs in, usually the host's; " +
			"give the container a namespace of its own, or do not run the plugin for a container on the host network",
		netnsNone:   "is not a network namespace; pass the path of one, such as /run/netns/NAME or /proc/PID/ns/net",
		netnsAbsent: "does not exist; create the namespace before the ADD",
	}[kind])
}

// codeOfLook keeps a passing condition; what remains is a failure to read.
func codeOfLook(err error) Code {
	if code := codeOf(err); code != CodeInternal {
		return code
	}
	return CodeIO
}
