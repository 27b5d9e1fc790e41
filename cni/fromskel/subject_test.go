package fromskel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"
	"github.com/containernetworking/cni/pkg/version"
)

// subject is a plugin whose configuration says how it behaves. Its callbacks are run
// by skel and by this package; a cni.Plugin does the same in its own way.
type subject struct {
	types.PluginConf
	Do string `json:"do"`
}

// behaviours are the values of "do". Those that are not typedBehaviours are about
// what a callback prints, which a function of cni.Plugin has no part in.
func behaviours() []string {
	return append(typedBehaviours(), "print the result twice", "print only text", "print an error", "print the result and fail",
		"print an error and fail", "print a bad result", "print an empty object", "print another version", "log JSON")
}

func typedBehaviours() []string {
	list := []string{
		"fail", "fail with a nil *types.Error", "fail with EBUSY", "fail with ENOSPC",
		"fail with a wrapped code 11", "panic", "print before", "print after", "no result", "parse prevResult", "load arguments",
	}
	for _, code := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 50, 51, 100, 999} {
		list = append(list, "fail with code "+strconv.Itoa(code))
	}
	return list
}

// exits end the process, so they need one of their own.
func exits() []string {
	return []string{"exit with 0", "exit with 1", "print the result and exit with 0"}
}

func subjectFuncs() skel.CNIFuncs {
	fn := func(command string) func(*skel.CmdArgs) error {
		return func(args *skel.CmdArgs) error {
			fmt.Fprintln(os.Stderr, "ran", command)
			c, err := parseSubject(args.StdinData)
			if err != nil {
				return err
			}
			return c.act(command, args)
		}
	}
	return skel.CNIFuncs{Add: fn("ADD"), Del: fn("DEL"), Check: fn("CHECK"), Status: fn("STATUS"), GC: fn("GC")}
}

func parseSubject(stdin []byte) (*subject, error) {
	c := &subject{}
	if err := json.Unmarshal(stdin, c); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, err.Error(), "")
	}
	return c, nil
}

// act is a callback. Every command behaves as "do" says, ADD with a result.
func (c *subject) act(command string, args *skel.CmdArgs) error {
	if strings.HasPrefix(c.Do, "print the result") && command == "ADD" {
		if err := c.print(args); err != nil {
			return err
		}
	}
	if err := c.fail(args); err != nil {
		return err
	}
	switch c.Do {
	case "fail with a nil *types.Error":
		var none *types.Error
		if command != "ADD" {
			return none
		}
		if err := c.print(args); err != nil {
			return err
		}
		return none
	case "print an error", "print an error and fail":
		_ = types.NewError(types.ErrTryAgainLater, "printed", "").Print()
		if c.Do == "print an error" {
			return nil
		}
		return errors.New("failed")
	case "print the result and fail":
		return errors.New("failed")
	case "print the result and exit with 0":
		os.Exit(0)
	}
	if command != "ADD" {
		if strings.HasPrefix(c.Do, "print") || c.Do == "log JSON" {
			fmt.Println("text")
		}
		return nil
	}
	return c.answer(args)
}

// answer prints what an ADD prints.
func (c *subject) answer(args *skel.CmdArgs) error {
	switch c.Do {
	case "no result":
		return nil
	case "print only text":
		fmt.Println("attached")
		return nil
	case "print a bad result":
		fmt.Print(`{"cniVersion":"1.0.0","ips":[{"address":"nonsense"}]}`)
		return nil
	case "print an empty object":
		fmt.Print(`{}`)
		return nil
	case "print another version":
		return types.PrintResult(subjectResult(), "0.4.0")
	case "print before":
		fmt.Println("attaching {eth0}")
	case "log JSON":
		fmt.Println(`{"level":"info","msg":"attached","code":200}`)
	case "print after":
		defer fmt.Println("\nattached")
	}
	return c.print(args)
}

func (c *subject) print(args *skel.CmdArgs) error {
	wanted, err := create.DecodeVersion(args.StdinData)
	if err != nil {
		return err
	}
	var result types.Result = subjectResult()
	if c.Do == "parse prevResult" && c.RawPrevResult != nil {
		if err := version.ParsePrevResult(&c.PluginConf); err != nil {
			return err
		}
		result = c.PrevResult
	}
	return types.PrintResult(result, wanted)
}

// fail is what fails for any command.
func (c *subject) fail(args *skel.CmdArgs) error {
	switch c.Do {
	case "fail":
		return errors.New("failed")
	case "fail with EBUSY":
		return fmt.Errorf("set up: %w", syscall.EBUSY)
	case "fail with ENOSPC":
		return fmt.Errorf("set up: %w", syscall.ENOSPC)
	case "fail with a wrapped code 11":
		return fmt.Errorf("set up: %w", types.NewError(types.ErrTryAgainLater, "failed", "details"))
	case "panic":
		panic("panicked")
	case "exit with 0":
		os.Exit(0)
	case "exit with 1":
		os.Exit(1)
	case "parse prevResult":
		conf := c.PluginConf
		return version.ParsePrevResult(&conf)
	case "load arguments":
		return types.LoadArgs(args.Args, &struct {
			types.CommonArgs
			A, B types.UnmarshallableString
		}{})
	}
	if number, ok := strings.CutPrefix(c.Do, "fail with code "); ok {
		code, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return err
		}
		return types.NewError(uint(code), "failed", "details")
	}
	return nil
}

func subjectResult() *types100.Result {
	return &types100.Result{
		CNIVersion: "1.1.0",
		Interfaces: []*types100.Interface{{Name: "eth0", Mac: "02:00:00:00:00:01", Sandbox: "/n"}},
		IPs: []*types100.IPConfig{{
			Interface: types100.Int(0), Gateway: net.IPv4(10, 0, 0, 1),
			Address: net.IPNet{IP: net.IPv4(10, 0, 0, 5), Mask: net.CIDRMask(24, 32)},
		}},
		Routes: []*types.Route{{Dst: net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}}},
	}
}

const (
	containerID = "CNI_CONTAINERID"
	ifName      = "CNI_IFNAME"
	netNS       = "CNI_NETNS"
	searchPath  = "CNI_PATH"
	arguments   = "CNI_ARGS"
	override    = "CNI_NETNS_OVERRIDE"
)

// variables are those of the protocol, and skel's own.
func variables() []string {
	return []string{"CNI_COMMAND", containerID, ifName, netNS, searchPath, arguments, override}
}
