// Package wire is what the host's side of a guest and the guest's first process agree on:
// where the order is, how the report comes back. It is for package guest and its command
// init alone.
package wire
