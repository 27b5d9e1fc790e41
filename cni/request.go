package cni

import (
	"context"
	"encoding/json"
	"log/slog"
)

// Request is one call to a [Plugin] with configuration type C. It is used by one
// goroutine.
type Request[C any] struct {
	Command     Command
	ContainerID string // empty for STATUS and GC
	IfName      string // empty for STATUS and GC
	NetNS       NetNS
	Args        Args
	Path        []string // directories with plugins

	CNIVersion string // of the configuration, and so of the result
	Network    string // the "name" key
	Type       string // the "type" key; of the delegating plugin when this one is a delegate
	Config     C
	RawConfig  json.RawMessage // all of it, unknown keys included
	PrevResult *Result         // nil: none, or one that cannot be read while cleaning up
	Valid      []Attachment    // GC: the attachments that must stay; everything else is stale

	// Log has the plugin, the command, the network and the attachment as attributes. It
	// leads to Invocation.Log, standard error in a program, and where Plugin.Log says.
	// Set by the handler, never nil then.
	Log *slog.Logger

	inv       Invocation
	delegates Executor
	undo      []undoStep
}

// Undo registers how to take back a step of an ADD. When the handler fails,
// panics or is cancelled, the steps run, the last first, each on a context of its
// own that outlives the request. A step has ten seconds, all together have thirty;
// after slow ones the next still has two, or its share of the thirty if there are
// more than fifteen. What names the step in errors, as in "undo veth pair: …".
// Steps must tolerate that there is nothing to undo.
// Commands other than ADD have no undo.
func (r *Request[C]) Undo(what string, fn func(context.Context) error) {
	r.undo = append(r.undo, undoStep{what, fn})
}

// RequirePrevResult returns PrevResult, or the error of a plugin that cannot do
// without it, with [CodeInvalidConfig] and the way out. What is returned is the
// request's own, which an ADD may change and return.
func (r *Request[C]) RequirePrevResult() (*Result, error) {
	switch {
	case r.PrevResult != nil:
		return r.PrevResult, nil
	case r.Command == CommandAdd:
		return nil, Errorf(CodeInvalidConfig,
			"prevResult is missing; put the plugin %q behind one that makes an interface, it cannot be the first of a list", r.Type)
	}
	return nil, Errorf(CodeInvalidConfig, "prevResult is missing; %s needs the result of the ADD, give it with the request", r.Command)
}
