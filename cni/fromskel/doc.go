// Package fromskel runs callbacks that were written for
// containernetworking/cni's skel as a [cni.Plugin], unchanged. It is the first step
// from skel to package cni, and a way to keep a callback that nobody wants to touch.
//
// A program changes one line, skel.PluginMainFuncs to [Main]. It gains what package
// cni does around a plugin: one JSON document on standard output whatever the
// callback prints, errors with a version, the namespace looked at before the
// callback runs and not after, panics and signals reported. docs/compatibility.md
// lists what differs from skel, and why.
//
// [Plugin] returns the same as a value, whose functions can then be replaced, one
// after the other, by functions that get a [cni.Request]. docs/migrating-from-skel.md
// shows the way.
//
// # What a callback gets
//
// A [skel.CmdArgs] as from skel, except for three things that callbacks and their
// libraries stumble over. The prevResult in StdinData has the version of the
// configuration, which version.ParsePrevResult insists on; on DEL, one that cannot
// be read is left out. Netns is empty on DEL when there is nothing to enter, as
// [cni.NetNS].Gone says, so that no DEL cleans up in the host's namespace. Args has
// no empty pieces, which types.LoadArgs refuses.
//
// The variables of the protocol also stand in the environment of the process while
// a callback runs, because libraries such as invoke read them there.
//
// # One at a time
//
// What a callback of ADD prints to os.Stdout becomes its result. Standard output
// and the environment belong to the whole process, so in a process only one
// callback runs at a time, whichever plugin it is of; others wait, or give up when
// their context ends. The handlers are safe for concurrent use in this sense. In an
// executable, where there is one call, none of this matters. A program that serves
// many calls should know:
//
//   - Slow callbacks hold up the others.
//   - What other goroutines print to os.Stdout during an ADD comes out after it, or
//     confuses it if it looks like a result. On systems other than Linux, os.Stdout
//     is replaced meanwhile, which is a data race with them.
//   - Executed delegates of a callback inherit the environment of the program, not
//     [cni.Invocation].Env.
//   - A callback that ends the process, by os.Exit or log.Fatal, ends the program. In
//     an executable too this is the end of the call: nothing is printed, which a
//     runtime takes for the failure of an ADD.
//
// A callback has no context: one that hangs is not interrupted by Plugin.Timeout or
// a signal, and a second signal ends the process. An ADD during which the context
// ended is undone and reported as failed when the callback returns.
package fromskel
