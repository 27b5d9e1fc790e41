package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

const (
	// readyDir is emptied by a reboot, so that the node's last life vouches for nothing.
	readyDir = "/run/"

	// maxReport in bytes is beyond what an agent says of thousands of nodes.
	maxReport = 16 << 20
)

// report is what the plugin reads of the agent's file. Other keys are the agent's own.
type report struct {
	Ready  *bool  `json:"ready"`
	Reason string `json:"reason"`
}

// validateReady refuses values with which STATUS could never mean anything.
func (c Config) validateReady() error {
	if c.ReadyFile != "" && (path.Clean(c.ReadyFile) != c.ReadyFile || !strings.HasPrefix(c.ReadyFile, readyDir)) {
		return &cni.FieldError{Key: "readyFile", Value: c.ReadyFile, Reason: "is no plain path of a file under /run, which a reboot empties",
			Fix: "use one such as /run/cnikit/status.json, or leave it out"}
	}
	if c.TunnelDevice == "" {
		return nil
	}
	if err := netif.CheckName(c.TunnelDevice); err != nil {
		return &cni.FieldError{Key: "tunnelDevice", Value: c.TunnelDevice, Reason: err.Error(),
			Fix: "use the name of the interface to other nodes, or leave it out"}
	}
	if c.TunnelDevice == c.bridge() {
		return &cni.FieldError{Key: "tunnelDevice", Value: c.TunnelDevice, Reason: "is the bridge, which is not there before the first container",
			Fix: "use the name of the interface to other nodes, or leave it out"}
	}
	return nil
}

// checkReady asks what the node agent said last, then looks at what it set up: an agent
// that is gone cannot say that its tunnel is, too.
func checkReady(node *netif.Namespace, c Config) error {
	if c.ReadyFile != "" {
		if err := checkReport(c.ReadyFile); err != nil {
			return err
		}
	}
	if c.TunnelDevice != "" {
		return checkTunnel(node, c.TunnelDevice)
	}
	return nil
}

func checkReport(file string) error {
	data, err := readReport(file)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the node agent has not reported yet: %s does not exist; see whether the agent runs on this node, and its log", file)
	}
	if err != nil {
		return fmt.Errorf("the node agent's report cannot be read: %w; see whether the agent writes to that path", err)
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return notReport(file, err.Error())
	}
	switch {
	case r.Ready == nil:
		return notReport(file, `it has no "ready"`)
	case *r.Ready:
		return nil
	case r.Reason == "":
		return fmt.Errorf("the node agent is not ready and gives no reason in %s; see its log", file)
	}
	return fmt.Errorf("the node agent is not ready: %s (from %s)", r.Reason, file)
}

func notReport(file, reason string) error {
	return fmt.Errorf(`the node agent's report %s is no JSON object with "ready" and "reason": %s; see whether the agent writes to that path, and its log`, file, reason)
}

// readReport does not wait, as opening a named pipe does, and reads no more than a report
// can have.
func readReport(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", file)
	case info.Size() > maxReport:
		return nil, tooLong(file)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	if len(data) > maxReport {
		return nil, tooLong(file)
	}
	return data, err
}

func tooLong(file string) error {
	return fmt.Errorf("%s has more than %d bytes", file, maxReport)
}

func checkTunnel(node *netif.Namespace, name string) error {
	link, err := node.Link(name)
	switch {
	case errors.Is(err, netif.ErrNotFound):
		return fmt.Errorf("the tunnel device %s does not exist, so that containers reach no other node; "+
			"the node agent makes it: see whether the agent runs on this node, and its log", name)
	case err != nil:
		return err
	case !link.Up:
		return fmt.Errorf("the tunnel device %s is down, so that containers reach no other node; "+
			"switch it on (ip link set %s up), or see whether the node agent, which does so, runs on this node", name, name)
	}
	return nil
}
