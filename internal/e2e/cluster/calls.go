package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// referencePlugins are what a node has from the start.
func referencePlugins() []string { return []string{"bridge", "host-local", "loopback"} }

// tracedPlugins are the names whose calls are recorded. A name need not be there when
// the node starts.
func tracedPlugins() []string {
	return append(referencePlugins(), "cnikit-bridge", "cnikit-ipam", "portmap", "bandwidth", "firewall", "tuning")
}

// Call is a call of a CNI plugin, made by the runtime or by a plugin that delegates.
type Call struct {
	Plugin      string            // the name of the executable
	Command     string            // CNI_COMMAND
	ContainerID string            // CNI_CONTAINERID
	NetNS       string            // CNI_NETNS
	IfName      string            // CNI_IFNAME
	Args        string            // CNI_ARGS
	Env         map[string]string // the environment, with the above
	Config      []byte            // standard input
	Start, End  time.Time
	ExitCode    int // 128 plus its number after a signal
	Stdout      []byte
	Stderr      []byte
}

// record is a line of the file that the program of package trace appends to.
type record struct {
	Plugin   string            `json:"plugin"`
	Env      map[string]string `json:"env"`
	Stdin    []byte            `json:"stdin"`
	Stdout   []byte            `json:"stdout"`
	Stderr   []byte            `json:"stderr"`
	Start    time.Time         `json:"start"`
	End      time.Time         `json:"end"`
	ExitCode int               `json:"exitCode"`
}

func (r record) call() Call {
	return Call{
		Plugin: r.Plugin, Command: r.Env["CNI_COMMAND"], ContainerID: r.Env["CNI_CONTAINERID"],
		NetNS: r.Env["CNI_NETNS"], IfName: r.Env["CNI_IFNAME"], Args: r.Env["CNI_ARGS"], Env: r.Env,
		Config: r.Stdin, Start: r.Start, End: r.End, ExitCode: r.ExitCode, Stdout: r.Stdout, Stderr: r.Stderr,
	}
}

// Calls returns the calls that ended on this node so far, since the cluster started, in
// the order in which they ended. A call that was killed with the node is not there.
func (n *Node) Calls(context.Context) ([]Call, error) {
	f, err := os.Open(n.callsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read calls of %s: %w", n.options.Name, err)
	}
	defer func() { _ = f.Close() }()
	var calls []Call
	decoder := json.NewDecoder(bufio.NewReader(f))
	for {
		var r record
		err := decoder.Decode(&r)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // a line that is being written
			return calls, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read calls of %s: %w", n.options.Name, err)
		}
		calls = append(calls, r.call())
	}
}

// trace puts the wrapper in front of each plugin. It finds everything by its own path:
// it runs /opt/cni/bin/NAME and appends to ../calls.
func (n *Node) trace(plugins []string) error {
	wrapper := filepath.Join(n.traceDir(), ".trace")
	if err := copyProgram(n.binaries.Path("trace"), wrapper); err != nil {
		return fmt.Errorf("trace plugins of %s: %w", n.options.Name, err)
	}
	for _, name := range plugins {
		err := os.Link(wrapper, filepath.Join(n.traceDir(), name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("trace plugins of %s: %w", n.options.Name, err)
		}
	}
	return nil
}

func (n *Node) traceDir() string  { return filepath.Join(n.dir, "trace") }
func (n *Node) callsFile() string { return filepath.Join(n.dir, "calls") }

// copyProgram makes a copy that is another file: whoever replaces or removes it leaves
// the original alone.
func copyProgram(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}
