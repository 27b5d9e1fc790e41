package cni

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
)

// Process is what the operating system gives to a plugin that is executed: [Main]
// with everything injected, for tests and for programs that are plugins only
// sometimes.
type Process struct {
	Env            []string  // "KEY=value"; of two entries the first counts
	Stdin          io.Reader // nil: empty
	Stdout, Stderr io.Writer // nil: discarded
}

// Run serves one invocation: it reads the environment and Stdin, calls the handler
// and writes exactly one JSON document to Stdout: its result, which only ADD and
// VERSION have, or an error document. It returns the exit code, 0 for success.
//
// Without CNI_COMMAND, Stdin is not read, and a person at a terminal gets an
// explanation on Stderr. Invocation.Log writes to Stderr.
func (p Process) Run(ctx context.Context, h Handler) int {
	p = p.withDefaults()
	inv := p.invocation()
	doc, err := p.serve(ctx, h, &inv)
	if err != nil {
		failed := reported(err, inv)
		doc, _ = json.Marshal(failed) // strings and a number
		if inv.Command == "" {
			fmt.Fprintf(p.Stderr, "%s\n%s\n", failed.Msg, failed.Details)
		}
	}
	if len(doc) > 0 {
		if _, err := p.Stdout.Write(append(doc, '\n')); err != nil {
			fmt.Fprintf(p.Stderr, "write result: %v\n", err)
			return 1
		}
	}
	if err != nil {
		return 1
	}
	return 0
}

// reported is the error in the form that the runtime gets; most have it already.
func reported(err error, inv Invocation) *Error {
	e := AsError(err)
	version := e.CNIVersion
	if version == "" {
		all := SupportedVersions()
		version = peekVersion(inv.Config, all[len(all)-1])
	}
	return e.report(version)
}

func (p Process) withDefaults() Process {
	if p.Stdin == nil {
		p.Stdin = strings.NewReader("")
	}
	if p.Stdout == nil {
		p.Stdout = io.Discard
	}
	if p.Stderr == nil {
		p.Stderr = io.Discard
	}
	return p
}

func (p Process) serve(ctx context.Context, h Handler, inv *Invocation) (doc []byte, err error) {
	if inv.Command != "" {
		if inv.Config, err = runRead(ctx, p.Stdin); err != nil {
			return nil, err
		}
		if err := inv.Validate(); err != nil {
			return nil, err
		}
	}
	err = protect(inv.Log, func() (err error) {
		doc, err = h.Handle(ctx, *inv)
		return err
	})
	if err != nil {
		return nil, err
	}
	return doc, checkDocument(doc, inv.Command)
}

// checkDocument makes sure that what a handler returned can go to standard output.
func checkDocument(doc []byte, command Command) error {
	hasResult := command == CommandAdd || command == CommandVersion
	if hasResult != (len(doc) > 0) {
		return Errorf(CodeInternal, "the handler answered %s with %d bytes; ADD and VERSION have a document, other commands have none", command, len(doc))
	}
	if hasResult && !json.Valid(doc) {
		return Errorf(CodeInternal, "the handler answered %s with %s", command, describeJSON(doc))
	}
	return nil
}

// runRead reads a stream to its end, or until the context ends, for a runtime may
// never close it.
func runRead(ctx context.Context, from io.Reader) ([]byte, error) {
	type outcome struct {
		data []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		data, err := io.ReadAll(from)
		done <- outcome{data, err}
	}()
	select {
	case read := <-done:
		if read.err != nil {
			return nil, Errorf(CodeIO, "read standard input: %w", read.err)
		}
		return read.data, nil
	case <-ctx.Done():
		return nil, Errorf(CodeTryAgain, "read standard input: %w", context.Cause(ctx))
	}
}

// invocation reads the environment. What is not part of the protocol is kept for
// delegates.
func (p Process) invocation() Invocation {
	vars := map[string]string{}
	inv := Invocation{Log: slog.New(slog.NewTextHandler(p.Stderr, nil))}
	for _, entry := range p.Env {
		key, value, _ := strings.Cut(entry, "=")
		if !isProtocolVariable(key) {
			inv.Env = append(inv.Env, entry)
		} else if _, seen := vars[key]; !seen {
			vars[key] = value
		}
	}
	inv.Command = Command(vars["CNI_COMMAND"])
	inv.ContainerID, inv.NetNS = vars["CNI_CONTAINERID"], vars["CNI_NETNS"]
	inv.IfName, inv.Args = vars["CNI_IFNAME"], vars["CNI_ARGS"]
	inv.Path = slices.DeleteFunc(filepath.SplitList(vars["CNI_PATH"]), func(dir string) bool { return dir == "" })
	return inv
}
