package cnitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/cnikit/cnikit/cni"
)

// reply is what came of one call.
type reply struct {
	plugin, command string
	stdout, stderr  []byte
	exit            int // -1: ended by a signal
	late            bool
	took, limit     time.Duration
}

// do makes a call, inside the node.
func (p *probe) do(r *request) reply {
	got, err := p.call(r)
	p.can(err)
	return got
}

// call makes a call and returns the kit's own trouble. It is safe for concurrent use.
func (p *probe) call(r *request) (reply, error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.o.Timeout)
	defer cancel()
	began := time.Now()
	got := reply{plugin: r.plugin, command: r.env["CNI_COMMAND"], limit: p.o.Timeout}
	err := p.worthwhile(got)
	if err != nil {
		return got, err
	}
	if p.target.Handler != nil && r.plugin == p.target.Plugin {
		err = p.serve(ctx, r, &got)
	} else {
		err = p.execute(ctx, r, &got)
	}
	got.late = ctx.Err() != nil
	got.took = time.Since(began)
	if got.late && p.ctx.Err() == nil {
		p.note("%s gave no answer within %s; if the plugin is slow, and does not hang, give it more time, with -timeout or Options.Timeout", got.what(), got.limit)
	}
	return got, err
}

// serve calls the handler.
func (p *probe) serve(ctx context.Context, r *request, got *reply) error {
	var stdout, stderr capped
	process := cni.Process{Env: p.environ(r), Stdin: bytes.NewReader(r.input()), Stdout: &stdout, Stderr: &stderr}
	err := p.node.Do(func() error {
		got.exit = process.Run(ctx, p.target.Handler)
		return nil
	})
	got.stdout, got.stderr = stdout.Bytes(), stderr.Bytes()
	return err
}

// execute runs the executable, and ends it with all that it started when it is late.
func (p *probe) execute(ctx context.Context, r *request, got *reply) error {
	path, err := p.executable(r)
	if err != nil {
		return err
	}
	cmd := p.node.Command(ctx, path)
	var stdout, stderr capped
	cmd.Env, cmd.Stdin = p.environ(r), bytes.NewReader(r.input())
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	ownGroup(cmd.Cmd)
	err = p.run(cmd)
	got.stdout, got.stderr, got.exit = stdout.Bytes(), stderr.Bytes(), cmd.ProcessState.ExitCode()
	var exited *exec.ExitError
	if errors.As(err, &exited) || errors.Is(err, exec.ErrWaitDelay) || ctx.Err() != nil {
		return nil
	}
	return err
}

// outputLimit is how much of an output is kept, in bytes. A plugin may print for ever.
const outputLimit = 1 << 20

// capped keeps the beginning of what is written to it.
type capped struct{ bytes.Buffer }

func (c *capped) Write(b []byte) (int, error) {
	_, _ = c.Buffer.Write(b[:min(len(b), outputLimit-c.Len())])
	return len(b), nil
}

// ReadFrom would fill the buffer otherwise.
func (c *capped) ReadFrom(from io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, from)
}

// what names the call.
func (r reply) what() string { return strings.TrimSpace(r.plugin + " " + r.command) }

func (r reply) succeeded() bool { return r.exit == 0 && !r.late }

// document is standard output if that is one JSON object and nothing else.
func (r reply) document() document {
	d, err := parseDocument(r.stdout)
	if err != nil {
		return nil
	}
	return d
}

// failure is the error document; false if there is none.
func (r reply) failure() (code int64, msg string, ok bool) {
	d := r.document()
	number, isNumber := d["code"].(json.Number)
	msg, isText := d["msg"].(string)
	if !isNumber || !isText {
		return 0, msg, false
	}
	code, err := number.Int64()
	return code, msg, err == nil
}

// complaint is all that the error says.
func (r reply) complaint() string {
	d := r.document()
	return d.text("msg") + " " + d.text("details")
}

// String is what was seen, shortened.
func (r reply) String() string {
	var s strings.Builder
	switch {
	case r.late:
		fmt.Fprintf(&s, "no answer within %s", r.limit)
	case r.exit < 0:
		s.WriteString("ended by a signal")
	default:
		fmt.Fprintf(&s, "exit status %d", r.exit)
	}
	if out := bytes.TrimSpace(r.stdout); len(out) > 0 {
		fmt.Fprintf(&s, ", stdout %s", shortened(string(out)))
	} else {
		s.WriteString(", nothing on stdout")
	}
	if r.document() == nil && len(bytes.TrimSpace(r.stderr)) > 0 {
		fmt.Fprintf(&s, ", stderr %s", shortened(string(bytes.TrimSpace(r.stderr))))
	}
	return s.String()
}

// seenLimit is how much of a text an outcome has, in bytes.
const seenLimit = 400

// shortened is a text on one line, of a length that can be read.
func shortened(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > seenLimit {
		return strings.ToValidUTF8(s[:seenLimit], "") + "…" // the cut may go through a character
	}
	return s
}
