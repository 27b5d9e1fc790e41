// Command broken is a CNI plugin with one fault, to test the conformance kit with. Under
// the names broken-chained, broken-bridge and broken-ipam it is a sound plugin of that
// kind; the fault that FAULT names in the environment breaks one rule of the
// specification, and no other as far as rules can be told apart. With the argument
// "faults" it lists the faults and the kinds of plugin that have them.
//
// Package cnitest is tested with it: each fault must be found by the case about its rule.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

// variable names the fault.
const variable = "FAULT"

func main() {
	if len(os.Args) > 1 && os.Args[1] == "faults" {
		list(os.Stdout)
		return
	}
	ctx := context.Background() //nolint:forbidigo // the program's own
	os.Exit(run(ctx, filepath.Base(os.Args[0]), os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

func list(to io.Writer) {
	all := faults()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintln(to, name, all[name].on)
	}
}

// call is one call of the plugin as the operating system has it.
type call struct {
	env                   map[string]string
	stdin, stdout, stderr []byte
	exit                  int
}

// fault is what is wrong with a plugin. A function that is nil changes nothing.
type fault struct {
	on string // the kind of plugin that has it

	process  func(c *call, serve func())
	handle   func(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error)
	delegate func(ctx context.Context, plugin string, inv cni.Invocation, next cni.Executor) ([]byte, error)
}

// faults are all faults by name.
func faults() map[string]fault {
	all := map[string]fault{}
	for _, group := range []map[string]fault{
		protocolFaults(), versionFaults(), resultsFaults(), addFaults(), delFaults(), checkFaults(), statusFaults(), gcFaults(),
		chainingFaults(), delegationFaults(), ipamFaults(), concurrencyFaults(), killFaults(), worldFaults(),
	} {
		maps.Copy(all, group)
	}
	return all
}

func run(ctx context.Context, name string, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	kind := strings.TrimPrefix(name, "broken-")
	c := &call{env: map[string]string{}}
	for _, entry := range env {
		key, value, _ := strings.Cut(entry, "=")
		c.env[key] = value
	}
	f := faults()[c.env[variable]]
	if f.on != kind {
		f = fault{}
	}
	handler, ok := f.plugin(kind)
	if !ok {
		fmt.Fprintf(stderr, "there is no plugin %q\n", name)
		return 2
	}
	var err error
	if c.stdin, err = io.ReadAll(stdin); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	if f.process == nil {
		c.serve(ctx, handler)
	} else {
		f.process(c, func() { c.serve(ctx, handler) })
	}
	_, _ = stderr.Write(c.stderr)
	_, _ = stdout.Write(c.stdout)
	return c.exit
}

// serve is the call to the plugin without what is around it.
func (c *call) serve(ctx context.Context, h cni.Handler) {
	var env []string
	for key, value := range c.env {
		env = append(env, key+"="+value)
	}
	var stdout, stderr bytes.Buffer
	c.exit = cni.Process{Env: env, Stdin: bytes.NewReader(c.stdin), Stdout: &stdout, Stderr: &stderr}.Run(ctx, h)
	c.stdout, c.stderr = stdout.Bytes(), stderr.Bytes()
}

// command reports whether the call is one of those.
func (c *call) command(commands ...cni.Command) bool {
	return slices.Contains(commands, cni.Command(c.env["CNI_COMMAND"]))
}

// fail makes the call fail with an error document.
func (c *call) fail(code cni.Code, format string, args ...any) {
	c.answer(map[string]any{"cniVersion": c.version(), "code": code, "msg": fmt.Sprintf(format, args...)})
	c.exit = 1
}
