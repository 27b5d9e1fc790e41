package datapath

import (
	"fmt"
	"strings"
)

// String renders the plan for people.
func (p *Plan) String() string {
	var b strings.Builder
	for _, e := range p.entrypoints {
		fmt.Fprintf(&b, "%s (%s)\n", e.name, e.typ.name)
		for _, h := range e.hooks {
			fmt.Fprintf(&b, "  %s %s\n", h.Kind, h.ID())
		}
	}
	return b.String()
}
