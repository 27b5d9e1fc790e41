package chain

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

var (
	// ErrNotAttached says that the cache knows of no such attachment: it was never added, or deleted since.
	ErrNotAttached = errors.New("no such attachment")
	// ErrAttached says that the attachment exists already; DEL it before another ADD.
	ErrAttached = errors.New("already attached")
	// ErrDamaged says that a cache file exists but cannot be used; DEL works without it and removes it.
	ErrDamaged = errors.New("cached attachment damaged")
)

// PluginError says which plugin of a network failed at what. The plugin's own [cni.Error] is found in it by errors.As; errors.Is finds
// [cni.ErrPluginNotFound].
type PluginError struct {
	Command cni.Command
	Network string
	Plugin  string // type
	Index   int    // place in the list, from 0
	Err     error
}

func (e *PluginError) Error() string {
	return fmt.Sprintf("%s network %s: plugin %s (plugins[%d]): %v", e.Command, e.Network, e.Plugin, e.Index, e.Err)
}

func (e *PluginError) Unwrap() error { return e.Err }

// RollbackError says that an ADD failed and that undoing it failed as well, so that something may remain until a DEL of the attachment
// succeeds. An ADD whose rollback succeeded returns the first error alone.
type RollbackError struct {
	Err    error          // why the ADD failed
	Remain []*PluginError // the plugins whose DEL failed, in the order they were tried
}

func (e *RollbackError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v; the rollback could not undo", e.Err)
	for i, r := range e.Remain {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s (plugins[%d]: %v)", r.Plugin, r.Index, r.Err)
	}
	b.WriteString("; what they made may remain until a DEL of the attachment succeeds")
	return b.String()
}

// Unwrap returns the failure of the ADD, then those of the rollback.
func (e *RollbackError) Unwrap() []error {
	all := []error{e.Err}
	for _, r := range e.Remain {
		all = append(all, r)
	}
	return all
}
