package binaries

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const (
	progressInterval = 15 * time.Second
	tailLines        = 40
)

// progress reads what "go build -v" prints: a line for each package that is compiled,
// which it counts, and complaints, of which it keeps the last.
type progress struct {
	log         io.Writer
	name        string
	began, next time.Time // next is when to say again how far it is
	packages    int
	partial     []byte // the line that is not complete yet
	tail        []string
}

func (p *progress) Write(b []byte) (int, error) {
	p.partial = append(p.partial, b...)
	for {
		line, rest, complete := bytes.Cut(p.partial, []byte("\n"))
		if !complete {
			break
		}
		p.take(string(line))
		p.partial = slices.Clone(rest)
	}
	if now := time.Now(); now.After(p.next) {
		fmt.Fprintf(p.log, "%s: %d packages compiled in %v\n", p.name, p.packages, now.Sub(p.began).Round(time.Second))
		p.next = now.Add(progressInterval)
	}
	return len(b), nil
}

// take handles one line. A package is a word; everything else has blanks in it.
func (p *progress) take(line string) {
	if line != "" && !strings.ContainsAny(line, " \t") {
		p.packages++
		return
	}
	p.tail = append(p.tail, line)
	if len(p.tail) > tailLines {
		p.tail = p.tail[1:]
	}
}
