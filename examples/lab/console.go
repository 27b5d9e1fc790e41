package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"
)

// indent is the width of the time in front of a step.
const indent = "         "

// console prints steps with the time since the start, and below each what it found.
type console struct {
	w     io.Writer
	start time.Time
}

func newConsole(w io.Writer) *console { return &console{w: w, start: time.Now()} }

// banner says what is about to happen.
func (c *console) banner(o options) {
	fmt.Fprintf(c.w, "cnikit lab %q: %s with %s each, on %s\n\n", o.name, count(o.nodeCount, "node"), count(o.podCount, "pod"), kernel())
}

// kernel names the kernel that all of this runs on.
func kernel() string {
	version, err := os.ReadFile("/proc/version") // "Linux version 6.1.0 (…) …"
	words := strings.Fields(string(version))
	if err != nil || len(words) < 3 {
		return runtime.GOOS
	}
	return "Linux " + words[2] + ", " + count(runtime.NumCPU(), "CPU")
}

func (c *console) elapsed() time.Duration { return time.Since(c.start) }

// title starts a step.
func (c *console) title(name, about string) {
	fmt.Fprintf(c.w, "[%5.1fs] %s: %s\n", c.elapsed().Seconds(), name, about)
}

// say adds lines to the step.
func (c *console) say(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		fmt.Fprintln(c.w, strings.TrimRight(indent+line, " \n"))
	}
}

// table adds a table to the step: a header and rows of as many cells.
func (c *console) table(header []string, rows [][]string) {
	c.say("%s", formatTable(header, rows))
}

// formatTable lays out columns as wide as their widest cell.
func formatTable(header []string, rows [][]string) string {
	width := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range append([][]string{header}, rows...) {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// milliseconds prints a duration for people.
func milliseconds(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		if strings.HasSuffix(noun, "s") {
			noun += "e"
		}
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
