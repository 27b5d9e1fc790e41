package fromskel

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"

	"github.com/cnikit/cnikit/cni"
)

// call is one call of a callback.
type call struct {
	command cni.Command
	args    skel.CmdArgs
}

// callOf is the call of a request for callbacks that speak the versions.
func callOf[C any](r *cni.Request[C], speaks []string) call {
	args := skel.CmdArgs{
		ContainerID:   r.ContainerID,
		Netns:         r.NetNS.Path,
		IfName:        r.IfName,
		Args:          r.Args.String(),
		Path:          strings.Join(r.Path, string(os.PathListSeparator)),
		NetnsOverride: os.Getenv("CNI_NETNS_OVERRIDE"),
		StdinData:     stdinFor(r, speaks),
	}
	if r.NetNS.Gone {
		args.Netns = ""
	}
	return call{r.Command, args}
}

// turn is taken while a callback runs. It guards standard output and the environment
// of the process, of which there is one, however many plugins there are.
var turn = make(chan struct{}, 1)

// inTurn calls fn when no callback runs.
func inTurn(ctx context.Context, fn func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("run callback: %w", err)
	}
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for another callback in this process: %w", context.Cause(ctx))
	}
	defer func() { <-turn }()
	return fn()
}

// run calls a callback with the environment that the call would have in a process of
// its own. It is called in turn.
//
// A variable that is not set is empty meanwhile, and afterwards, which means the same
// to the protocol: each Unsetenv would leave a gap in the environment for ever.
func run(c call, fn callback) error {
	for _, v := range []struct{ key, value string }{
		{"CNI_COMMAND", string(c.command)},
		{"CNI_CONTAINERID", c.args.ContainerID},
		{"CNI_NETNS", c.args.Netns},
		{"CNI_IFNAME", c.args.IfName},
		{"CNI_ARGS", c.args.Args},
		{"CNI_PATH", c.args.Path},
	} {
		before := os.Getenv(v.key)
		if before == v.value {
			continue
		}
		if err := os.Setenv(v.key, v.value); err != nil {
			return cni.Errorf(cni.CodeInvalidEnvironment, "%s=%q cannot stand in an environment: %w", v.key, v.value, err)
		}
		defer os.Setenv(v.key, before) //nolint:errcheck // it stood there before
	}
	args := c.args
	return translate(fn(&args))
}
