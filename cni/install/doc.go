// Package install puts files on a host for a CNI runtime to find, and keeps them there: conflists, later executables.
//
// [Files] is a target of a [reconcile.Engine]: named files of one directory, with their content and mode. A file that was
// deleted, changed or given another mode is drift like a deleted route, and [Files.Watch] tells the engine of it at once.
// Files appear whole or not at all, also after a power loss, and nothing is touched but the names given.
//
// [Conflist] renders the network configuration list of a network on package bridge, so that an agent has no JSON to
// assemble. [WriteFile] writes a single file in the same way for other purposes.
//
// A runtime takes the existence of a conflist as "pods may be attached now": let the target wait for what pods need (After),
// and leave it out of the wanted state while that is missing.
package install
