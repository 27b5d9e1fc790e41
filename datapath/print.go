package datapath

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// String renders the plan for people: for each entrypoint what runs in which order, how it is composed and why,
// what its verdicts do, and below it what holds for all.
func (p *Plan) String() string {
	var b bytes.Buffer
	if len(p.entrypoints) == 0 {
		b.WriteString("no hooks: the collection stays as it is\n")
	}
	for i, e := range p.entrypoints {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s (%s)\n", printable(e.name), e.typ.name)
		e.printSteps(&b)
		e.printRules(&b)
	}
	for _, c := range p.ignored {
		fmt.Fprintf(&b, "\nignored at %s: %s: no %s hook of that name is there", printable(c.Entrypoint), printable(c.String()), c.Kind)
	}
	if len(p.ignored) > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

func (e *entrypoint) printSteps(to io.Writer) {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, p := range e.parts() {
		h := p.hook
		if h == nil {
			fmt.Fprintf(w, "  original\t%s\t%s\t%s\t\n", e.main.Name, how(p), p.why)
			continue
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", h.Kind, printable(h.ID()), how(p), e.because(h), e.rule(h))
	}
	_ = w.Flush() // to memory
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(to, strings.TrimRight(line, " \n"))
	}
}

// printable quotes a text that would break a line or a column, or that BTF takes for no string.
func printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	return strconv.Quote(text)
}

func how(p *part) string {
	switch {
	case p.follows:
		return "in place"
	case p.composition == Pasted:
		return "pasted"
	default:
		return p.composition.String() + " " + p.symbol
	}
}

func (e *entrypoint) because(h *plannedHook) string {
	if h.composition != Slot {
		return h.why
	}
	return fmt.Sprintf("%s; empty, it returns %s", h.why, e.typ.verdict(h.empty))
}

// rule says what a hook's verdicts do.
func (e *entrypoint) rule(h *plannedHook) string {
	if h.Kind == Observer {
		return "runs always; its verdict is ignored"
	}
	var proceed []string
	for _, v := range h.Proceed {
		proceed = append(proceed, e.typ.verdict(v))
	}
	rule := strings.Join(proceed, " or ")
	switch {
	case h.Kind == Pre:
		return rule + " goes on, others end the run"
	case h.AfterTermination:
		return rule + " keeps the verdict, others replace it; runs also after a pre hook's end"
	default:
		return rule + " keeps the verdict, others replace it"
	}
}

func (e *entrypoint) printRules(w io.Writer) {
	if e.typ.clamp != nil {
		fmt.Fprintf(w, "  verdicts: %s\n", e.typ.clamp)
	}
	if e.frame > 0 {
		fmt.Fprintf(w, "  stack: %d bytes", e.frame)
		if e.shift > 0 {
			fmt.Fprintf(w, ", %d of them to save registers around pasted code", e.shift)
		}
		fmt.Fprintln(w)
	}
	if e.counters {
		fmt.Fprintf(w, "  counted in %s\n", CountersMap)
	}
}
