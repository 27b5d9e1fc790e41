// Package install puts files on a host for a CNI runtime to find, and keeps them there: conflists and executables.
//
// [Files] is a target of a [reconcile.Engine]: named files of one directory, with their content and mode. A file that was
// deleted, changed or given another mode is drift like a deleted route, and [Files.Watch] tells the engine of it at once.
// Files appear whole or not at all, also after a power loss, and nothing is touched but the names given.
//
// [Executables] is the same for programs that an agent brings with it, such as its plugins. They are compared by digest, can
// be replaced while they run, and what was installed is recorded, so that nothing of somebody else is overwritten or removed.
// [Executables.Install] does it once, for an install command, and [Executables.Cleanup] undoes it.
//
// [Conflist] renders the network configuration list of a network on package bridge, so that an agent has no JSON to
// assemble. A [Template] does so for other plugins, as an operator writes it. [WriteFile] writes a single file in the same way
// as Files for other purposes.
//
// A runtime takes the existence of a conflist as "pods may be attached now": let the target wait for what pods need (After),
// the executables among it, and leave it out of the wanted state while that is missing.
//
// Every file gets its content under a temporary name in its own directory and then its name by rename. containerd reloads its
// configuration on a rename, removal or write in the directory and ignores creation and change of mode (fsnotify's Create and
// Chmod), which is all that it sees of a file that is moved in from another directory: such a conflist would not be noticed.
//
// It is no package manager: it knows no order of versions and no dependencies, and fetches nothing.
package install
