// Command trace stands in front of CNI plugins and records each call. It is found by a
// runtime under the name of a plugin, DIR/trace/NAME; it runs /opt/cni/bin/NAME with the
// same arguments, environment and standard input, appends a line of JSON to DIR/calls,
// and passes on output, exit code and signals.
//
// Everything follows from the path by which it was called, so that the environment of
// the plugin is what the runtime made it.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const plugins = "/opt/cni/bin"

// call is what a line records. Byte slices are in base64: what goes through here need
// not be text.
type call struct {
	Plugin   string            `json:"plugin"`
	Env      map[string]string `json:"env"`
	Stdin    []byte            `json:"stdin"`
	Stdout   []byte            `json:"stdout"`
	Stderr   []byte            `json:"stderr"`
	Start    time.Time         `json:"start"`
	End      time.Time         `json:"end"`
	ExitCode int               `json:"exitCode"`
}

func main() {
	path, err := filepath.Abs(os.Args[0])
	if err != nil {
		fail(err)
	}
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	c := &call{Plugin: filepath.Base(path), Env: environment(), Stdin: stdin, Start: time.Now()}
	var sent syscall.Signal
	if c.ExitCode, sent, err = c.run(); err != nil {
		fail(err)
	}
	c.End = time.Now()
	if err := c.append(filepath.Join(filepath.Dir(path), "..", "calls")); err != nil {
		fmt.Fprintln(os.Stderr, "trace:", err)
	}
	if sent != 0 { // end as the plugin did
		signal.Reset(sent)
		_ = syscall.Kill(os.Getpid(), sent)
	}
	os.Exit(c.ExitCode)
}

// run runs the plugin. Its output is passed on while it runs, and kept.
func (c *call) run() (code int, sent syscall.Signal, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(plugins, c.Plugin), os.Args[1:]...)
	cmd.Args[0] = cmd.Path
	cmd.Stdin = bytes.NewReader(c.Stdin)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, &stdout), io.MultiWriter(os.Stderr, &stderr)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	if err := cmd.Start(); err != nil {
		c.Stdout = absent(c.Plugin)
		_, err := os.Stdout.Write(c.Stdout)
		return 1, 0, err
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // fails only when it has ended
		}
	}()
	err = cmd.Wait()
	c.Stdout, c.Stderr = stdout.Bytes(), stderr.Bytes()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, 0, err
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), status.Signal(), nil
	}
	return cmd.ProcessState.ExitCode(), 0, nil
}

// absent is the error that a runtime would have made itself, had it not found us.
func absent(plugin string) []byte {
	message, _ := json.Marshal(fmt.Sprintf("failed to find plugin %q in path [%s]", plugin, plugins))
	return fmt.Appendf(nil, `{"cniVersion":"1.0.0","code":999,"msg":%s}`+"\n", message)
}

// append writes the line with a single write to a file opened with O_APPEND, which the
// kernel does not mix with those of other processes.
func (c *call) append(file string) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

func environment() map[string]string {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		if key, value, ok := strings.Cut(entry, "="); ok {
			env[key] = value
		}
	}
	return env
}

// fail ends the call without having run the plugin.
func fail(err error) {
	fmt.Fprintln(os.Stderr, "trace:", err)
	os.Exit(1)
}
