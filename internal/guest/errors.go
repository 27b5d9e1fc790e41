package guest

import (
	"bytes"
	"fmt"
	"strings"
)

// Error says that a guest ended without a report: the kernel did not boot or panicked, a
// module could not be loaded, or the time was up. What is known is in it.
type Error struct {
	Release string // of the kernel
	Err     error  // the reason
	Output  []byte // what the program wrote until then
	Console []byte // what the kernel said until then
}

func (e *Error) Error() string {
	return fmt.Sprintf("guest with kernel %s: %v\nthe console's last lines:\n%s\nthe program's last lines:\n%s",
		e.Release, e.Err, lastLines(e.Console), lastLines(e.Output))
}

func (e *Error) Unwrap() error { return e.Err }

// lastLines is enough of a text to see what went wrong at its end.
func lastLines(text []byte) string {
	const (
		mostLines = 80       // a panic of the kernel has up to 60
		mostBytes = 16 << 10 // of a text without lines
	)
	text = bytes.TrimRight(text, "\r\n")
	if len(text) == 0 {
		return "\t(none)"
	}
	if len(text) > mostBytes {
		text = bytes.ToValidUTF8(text[len(text)-mostBytes:], nil)
	}
	lines := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	if len(lines) > mostLines {
		lines = lines[len(lines)-mostLines:]
	}
	return "\t" + strings.Join(lines, "\n\t")
}
