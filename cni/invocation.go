package cni

import (
	"context"
	"log/slog"
)

// Invocation is one call as the protocol carries it: what an [Executor] sends and
// a [Handler] receives. It is plain data and may be copied.
type Invocation struct {
	Command     Command  // CNI_COMMAND
	ContainerID string   // CNI_CONTAINERID
	NetNS       string   // CNI_NETNS, a path; may be empty for DEL
	IfName      string   // CNI_IFNAME
	Args        string   // CNI_ARGS, unparsed
	Path        []string // CNI_PATH, split: the directories with plugins
	Config      []byte   // the request configuration, which travels on standard input

	// Env is the rest of the environment, as "KEY=value", that executed delegates
	// receive besides the CNI_ variables above. The environment of the process is
	// never added to it.
	Env []string

	Log *slog.Logger // nil discards
}

// Handler answers invocations. The bytes are the one JSON document for standard
// output, nil when the command has none. A non-nil error is always an [*Error].
//
// Handlers are safe for concurrent use.
type Handler interface {
	Handle(ctx context.Context, inv Invocation) ([]byte, error)
}

// Executor runs the plugin of the given type, the file name of an executable.
// It returns the document that the plugin printed. An error that the plugin
// reported is an [*Error]; a plugin that is not there, and nothing else, is an
// error that matches [ErrPluginNotFound].
//
// Executors are safe for concurrent use.
type Executor interface {
	Execute(ctx context.Context, plugin string, inv Invocation) ([]byte, error)
}

func (inv Invocation) logger() *slog.Logger {
	if inv.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return inv.Log
}
