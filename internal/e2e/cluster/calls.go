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

// Call is a call of a CNI plugin, made by the runtime or by a plugin that delegates. As JSON
// it is a line of the file that the program of package trace appends to.
type Call struct {
	Plugin   string            `json:"plugin"` // the name of the executable
	Env      map[string]string `json:"env"`    // the environment
	Config   []byte            `json:"stdin"`
	Stdout   []byte            `json:"stdout"`
	Stderr   []byte            `json:"stderr"`
	Start    time.Time         `json:"start"`
	End      time.Time         `json:"end"`
	ExitCode int               `json:"exitCode"` // 128 plus its number after a signal

	// Of the environment.
	Command     string `json:"-"` // CNI_COMMAND
	ContainerID string `json:"-"` // CNI_CONTAINERID
	NetNS       string `json:"-"` // CNI_NETNS
	IfName      string `json:"-"` // CNI_IFNAME
	Args        string `json:"-"` // CNI_ARGS
}

func (c *Call) readEnv() {
	c.Command, c.ContainerID = c.Env["CNI_COMMAND"], c.Env["CNI_CONTAINERID"]
	c.NetNS, c.IfName, c.Args = c.Env["CNI_NETNS"], c.Env["CNI_IFNAME"], c.Env["CNI_ARGS"]
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
		var c Call
		err := decoder.Decode(&c)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // a line that is being written
			return calls, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read calls of %s: %w", n.options.Name, err)
		}
		c.readEnv()
		calls = append(calls, c)
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
