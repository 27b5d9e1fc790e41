package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// progress shows how far an examination is: on a terminal in one line that is
// overwritten, elsewhere in a line every few seconds. The kit writes a line before each
// case.
type progress struct {
	out    io.Writer
	moving bool
	every  time.Duration

	mu    sync.Mutex
	line  string
	since time.Time // the case runs
}

func newProgress(out io.Writer, moving bool) *progress {
	p := &progress{out: out, moving: moving, every: 10 * time.Second}
	if moving {
		p.every = time.Second
	}
	return p
}

// Write implements [io.Writer].
func (p *progress) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line, p.since = strings.TrimSpace(string(line)), time.Now()
	if p.moving {
		p.show("")
	}
	return len(line), nil
}

// show overwrites the line, or writes another one.
func (p *progress) show(more string) {
	if p.moving {
		fmt.Fprintf(p.out, "\r\x1b[K%s%s", p.line, more)
	} else {
		fmt.Fprintf(p.out, "%s%s\n", p.line, more)
	}
}

// runWith shows progress while work goes on, and takes it away after.
func (p *progress) runWith(ctx context.Context, work func() (*cnitest.Report, error)) (*cnitest.Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	var shown sync.WaitGroup
	shown.Go(func() { p.watch(ctx) })
	report, err := work()
	cancel()
	shown.Wait()
	if p.moving {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	return report, err
}

// watch shows that a case takes long.
func (p *progress) watch(ctx context.Context) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		more := ""
		if took := time.Since(p.since); p.line != "" && took >= 2*time.Second {
			more = fmt.Sprintf(" (%ds)", int(took.Seconds()))
		}
		if p.line != "" {
			p.show(more)
		}
		p.mu.Unlock()
	}
}
