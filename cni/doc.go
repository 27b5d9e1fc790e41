// Package cni is for writing CNI plugins: programs that a container runtime
// executes to attach a container to a network (the Container Network Interface
// specification, versions 0.1.0 to 1.1.0).
//
// A plugin is one value, a [Plugin], whose fields are the functions that answer
// ADD, DEL, CHECK, STATUS and GC. They receive a [Request] with everything that
// the protocol carries, already decoded and checked, and return a [Result] or an
// error. A program is that value handed to [Main]:
//
//	type Config struct {
//		Bridge string `json:"bridge"`
//	}
//
//	func main() {
//		cni.Main(cni.Plugin[Config]{
//			Type:   "example",
//			Add:    add,
//			Del:    del,
//			Check:  cni.CheckWith[Config](netif.Verify),
//			Status: cni.Ready[Config],
//			GC:     cni.NoState[Config],
//		}.Handler())
//	}
//
// What the package does around those functions:
//
//   - It reads environment and configuration, and refuses what the specification
//     does not allow with the code that the specification gives for it. All bad
//     variables are reported at once.
//   - It refuses an ADD or CHECK whose namespace is the plugin's own or is no
//     namespace, before the handler runs. A DEL then runs with [NetNS].Gone set.
//   - It runs what [Request.Undo] registered when an ADD fails, panics or is
//     cancelled (SIGTERM, SIGINT, Plugin.Timeout).
//   - It writes exactly one JSON document to standard output, in the version that
//     the request asked for. Whatever else a handler, a library or a child process
//     prints there goes to standard error.
//
// [Request.Delegate] calls another plugin, usually for address management. The
// plugin is an executable or, with [Builtin], a Handler linked into the same
// program, and may speak an older version. A plugin that attaches a container
// to several networks gives each its own configuration and interface with
// [Request.DelegateWith], and calls them together as [Delegates]. [Chain] makes one
// plugin of several.
//
// Errors that a runtime should act on are made with [Errorf]; a bad configuration
// value is a [FieldError]. Any other error gets a code by [AsError]: what may pass is
// [CodeTryAgain], what nobody knows [CodeInternal].
//
// A chained plugin starts with [Request.RequirePrevResult]. [DecodeArgs] reads the
// arguments of the runtime, [Plugin].Log says where to log besides standard error,
// which most runtimes throw away.
//
// The package is not a runtime (package chain is) and touches no network
// interface (package netif does). It depends on nothing but the standard library
// and the result types of containernetworking/cni.
package cni
