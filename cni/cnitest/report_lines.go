package cnitest

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Where a text begins and ends.
const (
	textIndent = 8
	textWidth  = 100
)

// prose writes a text, broken into lines between words.
func (t *text) prose(label, s string) {
	t.lines(label, strings.Join(strings.Fields(s), " "))
}

// lines writes a text line by line. Long ones are broken between words, but those of a
// comparison, which begin with white space, are left as they are.
func (t *text) lines(label, s string) {
	for line := range strings.SplitSeq(strings.TrimRight(printable(s), "\n"), "\n") {
		pieces := []string{line}
		if strings.TrimLeft(line, " \t") == line {
			pieces = folded(line, textWidth-textIndent)
		}
		for _, piece := range pieces {
			fmt.Fprintln(t, strings.TrimRight(fmt.Sprintf("  %-*s%s", textIndent-2, label, t.change(piece)), " "))
			label = ""
		}
	}
}

// shortened cuts words that are longer than a line, such as a result: JSON documents have
// no spaces. Lines of a comparison stay whole.
func (t *text) shortened(s string) string {
	if t.o.Verbose {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.TrimLeft(line, " \t") != line {
			continue
		}
		words := strings.Split(line, " ")
		for k, word := range words {
			if runes := []rune(word); len(runes) > textWidth-textIndent {
				words[k] = string(runes[:textWidth-textIndent-1]) + "…"
			}
		}
		lines[i] = strings.Join(words, " ")
	}
	return strings.Join(lines, "\n")
}

// change paints a line of a comparison.
func (t *text) change(line string) string {
	switch trimmed := strings.TrimLeft(line, " \t"); {
	case trimmed == line:
		return line
	case strings.HasPrefix(trimmed, "+ "):
		return t.paint("32", line)
	case strings.HasPrefix(trimmed, "- "):
		return t.paint("31", line)
	}
	return line
}

// folded is a line broken between words. A word that is longer stays whole.
func folded(line string, width int) []string {
	var lines []string
	current := ""
	for word := range strings.SplitSeq(line, " ") {
		if current != "" && utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, current)
			current = word
			continue
		}
		if current != "" {
			current += " "
		}
		current += word
	}
	return append(lines, current)
}

// printable replaces what a terminal would obey: a plugin may print anything.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}
