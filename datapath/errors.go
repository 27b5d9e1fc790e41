package datapath

import (
	"fmt"
	"strconv"
	"strings"
)

// HookError says why a hook, or an entrypoint because of its hooks, cannot be built. [NewPlan] joins all that
// it finds.
type HookError struct {
	Entrypoint string
	Owner      string // empty when the entrypoint itself is at fault
	Hook       string // name of the hook
	Reason     string // the rule that is broken, as what the hook or entrypoint does: "has no kind"
	Fix        string // a way out
}

func (e *HookError) Error() string {
	who := fmt.Sprintf("entrypoint %q", e.Entrypoint)
	if e.Owner != "" || e.Hook != "" {
		who = fmt.Sprintf("hook %q at %s", e.Owner+"/"+e.Hook, who)
	}
	return fmt.Sprintf("%s: %s: %s", who, e.Reason, e.Fix)
}

// CycleError says that hooks of one kind cannot be ordered. Each group of hooks that hang together by their
// constraints is an error of its own.
type CycleError struct {
	Entrypoint  string
	Kind        Kind
	Hooks       []string     // "owner/name" of exactly those in the cycle, sorted
	Constraints []Constraint // exactly those that make it
}

func (e *CycleError) Error() string {
	var hooks, sides, constraints []string
	itself := len(e.Constraints) > 0
	for _, id := range e.Hooks {
		hooks = append(hooks, printable(id))
	}
	for _, c := range e.Constraints {
		sides, constraints = append(sides, c.side()), append(constraints, strconv.Quote(c.String()))
		itself = itself && c.ofItself()
	}
	what, drop := "cannot come before one another", "drop at least one of"
	switch {
	case itself:
		what, drop = "is told to run "+strings.Join(sides, " and ")+" itself", "drop"
	case len(hooks) == 1:
		what = "cannot come before itself"
	}
	return fmt.Sprintf("order %s hooks of entrypoint %q: %s %s: %s %s", e.Kind, e.Entrypoint, strings.Join(hooks, ", "), what, drop, strings.Join(constraints, ", "))
}
