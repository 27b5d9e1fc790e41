package cni

import (
	"context"
	"errors"
	"slices"
)

// negotiate looks for another version after a delegate refused a command, and
// reports whether it found one. Asking costs a process, so it is done for a reason
// only.
func (d *Delegate) negotiate(ctx context.Context, command Command, refusal error) bool {
	if d.negotiated || ctx.Err() != nil || !refusesVersion(command, refusal) {
		return false
	}
	d.negotiated = true
	log := d.inv.logger().With("delegate", d.plugin)
	inv := d.inv
	inv.Command = CommandVersion
	var request object
	request.value("cniVersion", d.version)
	inv.Config = request.bytes()
	out, err := d.executor.Execute(ctx, d.plugin, inv)
	if err != nil {
		log.Warn("the delegate refuses the version of its configuration and does not tell which it speaks", "version", d.version, "error", err)
		return false
	}
	theirs, err := readVersions(out)
	if err != nil || slices.Contains(theirs, d.version) {
		return false // it was about something else
	}
	version := common(command, d.version, theirs)
	if version == "" {
		return false
	}
	log.Info("the delegate speaks another version", "version", d.version, "speaks", version)
	d.version = version
	return true
}

// common is the version in which a delegate that speaks theirs is asked instead of in
// another; "" for none. It is the highest below, and for a DEL, which nobody else would
// carry out, else the lowest above.
func common(command Command, version string, theirs []string) string {
	both := slices.DeleteFunc(SupportedVersions(), func(v string) bool { return !slices.Contains(theirs, v) })
	for _, lower := range slices.Backward(both) {
		if atLeast(version, lower) || !slices.Contains(SupportedVersions(), version) {
			return lower
		}
	}
	if command == CommandDel && len(both) > 0 {
		return both[0]
	}
	return ""
}

// refusesVersion reports whether an error may be due to the version: it says so, or
// the plugin does not know a command, which it takes for a bad environment.
func refusesVersion(command Command, err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Code == CodeIncompatibleVersion ||
		e.Code == CodeInvalidEnvironment && (command == CommandStatus || command == CommandGC)
}
