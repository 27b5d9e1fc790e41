package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
)

// verdict makes the outcome of a process, which ended with err, into a result or
// an error. A process that exits with 0 has succeeded, also after the end of the
// context.
func (r *run) verdict(ctx context.Context, err error, inv Invocation) ([]byte, error) {
	plugin := filepath.Base(r.cmd.Path)
	out := bytes.TrimSpace(r.stdout.Bytes())
	reported := errorIn(out)
	if r.cmd.ProcessState.Success() && (err == nil || ctx.Err() != nil) {
		return r.success(plugin, out, reported, inv)
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		if reported != nil {
			return nil, fmt.Errorf("execute plugin %q: %w: it said: %w", plugin, ctxErr, reported)
		}
		return nil, fmt.Errorf("execute plugin %q: %w: %s", plugin, ctxErr, r.cmd.ProcessState)
	}
	if reported != nil {
		return nil, reported
	}
	e := Errorf(CodeInternal, "execute plugin %q: %w without an error document", plugin, err)
	if len(out) > 0 {
		e.addDetail("standard output: " + describeJSON(out))
	}
	if text := r.stderr.String(); text != "" {
		e.addDetail("standard error: " + text)
	}
	return nil, e
}

func (r *run) success(plugin string, out []byte, reported *Error, inv Invocation) ([]byte, error) {
	if reported != nil && reported.Code != 0 && reported.Msg != "" {
		return nil, reported // and forgot to exit with a code
	}
	if inv.Command != CommandAdd && inv.Command != CommandVersion {
		if len(out) > 0 {
			inv.logger().Warn("plugin printed where the specification has no result",
				"plugin", plugin, "command", string(inv.Command), "output", shorten(string(out), 200))
		}
		return nil, nil
	}
	if _, err := readFields("", out); err != nil {
		return nil, Errorf(CodeDecode, "execute plugin %q: read its result: %w", plugin, err)
	}
	return out, nil
}

// errorIn is the error document in the output of a plugin; nil if it is none.
func errorIn(out []byte) *Error {
	var e Error
	if json.Unmarshal(out, &e) != nil || e.Code == 0 && e.Msg == "" {
		return nil
	}
	return &e
}
