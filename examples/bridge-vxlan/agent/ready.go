package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cnikit/cnikit/cni"
)

func readyCommand() command {
	return command{
		name:  "ready",
		usage: "[flags]",
		about: "say by the exit code whether the node is ready, for probes",
		text: `
Exits with 0 and prints nothing when the status file says that pods can be attached; else
it exits with 1 and prints the reason. It is for probes in an image without a shell.`,
		flags: func(o *options, f *flag.FlagSet, _ environment) {
			o.statusFlag(f, "`file` that the agent keeps")
		},
		checks: []func(options) error{options.validateStatus, func(o options) error {
			if o.status == "" {
				return &cni.FieldError{Key: "-status-file", Value: "", Reason: "is empty", Fix: "name the file that the agent keeps"}
			}
			return nil
		}},
		run: func(_ context.Context, o options, _ environment) error { return ready(o.status) },
	}
}

// maxStatus is the size that a status file has at most, in bytes.
const maxStatus = 16 << 20

// ready returns nil when the status file says ready, else the reason.
func ready(path string) error {
	said, err := readStatus(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("not ready: the agent has not reported yet, %s does not exist", path)
	case err != nil:
		return fmt.Errorf("read status: %w", err)
	case said.Ready:
		return nil
	case said.Reason == "":
		return fmt.Errorf("not ready: the agent gives no reason in %s, see its log", path)
	}
	return fmt.Errorf("not ready: %s", said.Reason)
}

// readStatus reads what a status file says.
func readStatus(path string) (report, error) {
	f, err := os.Open(path)
	if err != nil {
		return report{}, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, maxStatus))
	if err != nil {
		return report{}, err
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return report{}, fmt.Errorf("%s: %w; see whether an agent writes it", path, err)
	}
	return r, nil
}
