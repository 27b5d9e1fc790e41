// Package chain is the runtime side of CNI: it reads network configurations and runs their plugins as section 3 of the specification tells a
// container runtime to. It is for programs that attach containers to networks: runtimes, laboratories, tests of plugins. Plugins themselves are
// written with package cni.
//
// # Where to start
//
// [LoadNetwork] finds a network in a configuration directory, [Load] reads one file, [Parse] one document; each gives a [List]. A [Runner] runs
// it for an [Attachment]:
//
//	list, err := chain.LoadNetwork("/etc/cni/net.d", "pods")
//	…
//	runner := chain.Runner{Path: []string{"/opt/cni/bin"}}
//	pod := chain.Attachment{ContainerID: "c1", NetNS: "/run/netns/c1", IfName: "eth0"}
//	result, err := runner.Add(ctx, list, pod)
//	…
//	err = runner.Check(ctx, list, pod)
//	err = runner.Del(ctx, list, pod)
//
// [Runner.Status] asks whether an ADD would work, [Runner.GC] cleans up what no attachment needs, [Runner.Cached] lists what is attached. The
// executor may be one with plugins in the same process, a [cni.Builtin], for tests and for hosts that link theirs.
//
// # What it promises
//
//   - What plugins read is derived by the letter: nothing is lost or reformatted, numbers included, and what only the runtime may say is taken
//     from the runtime alone. Results go from plugin to plugin as the text that was printed, if they have the version of the list.
//   - An ADD that fails leaves nothing behind, or says what it left ([RollbackError]).
//   - A result is on disk before ADD returns, or the attachment is undone. A killed process or a power failure leaves the old state or the new.
//     Files have names without collisions, made of validated parts.
//   - DEL works without the cache, and without the namespace. CHECK never runs without a result to check against.
//   - No plugin blocks for ever: each call has a deadline, and executables are ended with all their children.
//   - The error of a plugin arrives whole: errors.As finds its [cni.Error], and [PluginError] names the plugin.
//
// # Versions
//
// Requests carry the highest version that the configuration names, in cniVersion or cniVersions, and package cni speaks. Plugins are not asked
// what they speak.
//
// # What it is not for
//
// The package makes and removes no network namespaces and takes no locks: operations on one container must not overlap, nor GC with ADD and
// DEL. [Runner] says more about that, and about namespaces of the calling thread.
package chain
