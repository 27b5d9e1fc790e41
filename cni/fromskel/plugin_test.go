package fromskel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/fromskel"
)

// funcs are callbacks that succeed, the result of ADD aside, for a test to replace.
func funcs() skel.CNIFuncs {
	ok := func(*skel.CmdArgs) error { return nil }
	return skel.CNIFuncs{Add: printing(plainResult), Del: ok, Check: ok, Status: ok, GC: ok}
}

const plainResult = `{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.5/24"}]}`

func printing(text string) func(*skel.CmdArgs) error {
	return func(*skel.CmdArgs) error { fmt.Print(text); return nil }
}

// plugin may work in the namespace of the test, so that tests need no rights.
func plugin(f skel.CNIFuncs) cni.Plugin[struct{}] {
	p := fromskel.Plugin[struct{}](f, version.All, "about")
	p.AllowHostNetNS = true
	return p
}

func invocation(command cni.Command, config string) cni.Invocation {
	return cni.Invocation{
		Command: command, ContainerID: "c1", NetNS: "/proc/self/ns/net", IfName: "eth0",
		Args: "A=1;;B=2;", Path: []string{"/a", "/b"}, Config: []byte(config),
	}
}

const plainConfig = `{"cniVersion":"1.1.0","name":"lan","type":"t","cni.dev/valid-attachments":[]}`

func handle(f skel.CNIFuncs, command cni.Command, config string) (string, *cni.Error) {
	out, err := plugin(f).Handler().Handle(context.Background(), invocation(command, config))
	return string(out), cni.AsError(err)
}

// stdout replaces os.Stdout for the test and returns what came there.
func stdout(t *testing.T) func() string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	require.NoError(t, err)
	before := os.Stdout
	os.Stdout = file
	t.Cleanup(func() { os.Stdout = before; file.Close() })
	return func() string {
		content, err := os.ReadFile(file.Name())
		require.NoError(t, err)
		return string(content)
	}
}

func TestNilCallbackIsRefused(t *testing.T) {
	for name, remove := range map[string]func(*skel.CNIFuncs){
		"Add": func(f *skel.CNIFuncs) { f.Add = nil }, "Del": func(f *skel.CNIFuncs) { f.Del = nil },
		"Check": func(f *skel.CNIFuncs) { f.Check = nil }, "Status": func(f *skel.CNIFuncs) { f.Status = nil },
		"GC": func(f *skel.CNIFuncs) { f.GC = nil },
	} {
		f := funcs()
		remove(&f)
		for _, command := range []cni.Command{"ADD", "DEL", "CHECK", "STATUS", "GC", "VERSION"} {
			_, err := handle(f, command, plainConfig)
			require.NotNil(t, err, "%s %s", name, command)
			assert.Contains(t, err.Msg, "has no function "+name)
		}
	}
}

func TestCallbackArguments(t *testing.T) {
	var got skel.CmdArgs
	var environment []string
	f := funcs()
	f.Check = func(args *skel.CmdArgs) error {
		got = *args
		for _, variable := range variables() {
			environment = append(environment, os.Getenv(variable))
		}
		return nil
	}
	t.Setenv("CNI_PATH", "before")
	_, err := handle(f, "CHECK", plainConfig)
	require.Nil(t, err)
	path := "/a" + string(os.PathListSeparator) + "/b"
	assert.Equal(t, skel.CmdArgs{
		ContainerID: "c1", Netns: "/proc/self/ns/net", IfName: "eth0", Args: "A=1;B=2", Path: path, StdinData: []byte(plainConfig),
	}, got)
	assert.Equal(t, []string{"CHECK", "c1", "eth0", "/proc/self/ns/net", path, "A=1;B=2", ""}, environment)
	assert.Equal(t, "before", os.Getenv("CNI_PATH"))
	assert.Empty(t, os.Getenv("CNI_COMMAND"))
}

func TestStdinOfCallback(t *testing.T) {
	const head, tail = `{"cniVersion":"1.0.0","name":"lan","type":"t"`, `,"x":9007199254740993}`
	const ip = `"ips":[{"address":"10.0.0.5/24"}]`
	for _, tt := range []struct {
		name    string
		command cni.Command
		config  string
		want    string
	}{
		{"nothing to change", "ADD", head + `, "prevResult":{"cniVersion":"1.0.0",` + ip + `}` + tail, ""},
		{"a prevResult without a version", "ADD", head + `, "prevResult":{` + ip + `}` + tail, ""},
		{"null", "ADD", head + `, "prevResult":null` + tail, ""},
		{
			"a prevResult of another version", "CHECK", head + `,"prevResult":{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.5/24"}}` + tail,
			`{"cniVersion":"1.0.0","name":"lan","prevResult":{"cniVersion":"1.0.0",` + ip + `},"type":"t","x":9007199254740993}`,
		},
		{"a prevResult that cannot be read", "DEL", head + `,"prevResult":{"ips":7}` + tail, `{"cniVersion":"1.0.0","name":"lan","type":"t","x":9007199254740993}`},
		{
			"a version that the callback does not speak", "DEL", `{"cniVersion":"9.9.9","name":"lan","type":"t","prevResult":{"cniVersion":"9.9.9",` + ip + `}}`,
			`{"cniVersion":"1.1.0","name":"lan","prevResult":{"cniVersion":"1.1.0",` + ip + `},"type":"t"}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got string
			f := funcs()
			f.Add = func(args *skel.CmdArgs) error {
				got = string(args.StdinData)
				conf := &types.PluginConf{}
				if err := json.Unmarshal(args.StdinData, conf); err != nil {
					return err
				}
				fmt.Print(plainResult)
				return version.ParsePrevResult(conf)
			}
			f.Check = f.Add
			f.Del = f.Add
			_, err := handle(f, tt.command, tt.config)
			require.Nil(t, err)
			want := tt.want
			if want == "" {
				want = tt.config
			}
			assert.Equal(t, want, got)
		})
	}
}

func TestResultAmongText(t *testing.T) {
	const log = `{"level":"info","msg":"attached","code":200,"args":{"ips":[]}}`
	for _, tt := range []struct {
		name, printed, want, shown string
		code                       cni.Code
	}{
		{"alone", plainResult, plainResult, "", 0},
		{"between text", "a {b} {\n" + plainResult + "\n} c", plainResult, "a {b} {\n} c\n", 0},
		{"among a log in JSON", log + "\n" + plainResult + "\n" + log, plainResult, log + "\n" + log + "\n", 0},
		{"behind a brace", "{" + plainResult, plainResult, "{\n", 0},
		{"among a log that could be a result", `{"msg":"attached","ips":[]}` + plainResult, plainResult, `{"msg":"attached","ips":[]}` + "\n", 0},
		{"without a version", `{"ips":[{"address":"10.0.0.5/24"}]}`, plainResult, "", 0},
		{"without a version, among a log in JSON", log + `{"ips":[{"address":"10.0.0.5/24"}]}`, plainResult, log + "\n", 0},
		{"of another version", `{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.5/24"}}`, plainResult, "", 0},
		{"with unknown members", `{"cniVersion":"1.1.0","x":9007199254740993}`, `{"cniVersion":"1.1.0","x":9007199254740993}`, "", 0},
		{"none", "text", "", "text\n", cni.CodeInternal},
		{"nothing", "", "", "", cni.CodeInternal},
		{"two", plainResult + plainResult, "", plainResult + plainResult + "\n", cni.CodeInternal},
		{"a result and an error", plainResult + `{"code":7,"msg":"m"}`, "", plainResult + `{"code":7,"msg":"m"}` + "\n", cni.CodeInternal},
		{"an error", `{"code":7,"msg":"m","details":"d"}`, "", "", cni.CodeInvalidConfig},
		{"an error among text", "text\n" + `{"code":11,"msg":"m"}`, "", "text\n", cni.CodeTryAgain},
		{"malformed", `{"cniVersion":"1.1.0","ips":[{"address":"x"}]}`, "", "", cni.CodeInternal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shown := stdout(t)
			removed := false
			f := funcs()
			f.Add = printing(tt.printed)
			f.Del = func(args *skel.CmdArgs) error {
				removed = os.Getenv("CNI_COMMAND") == "DEL" && args.ContainerID == "c1"
				return nil
			}
			out, err := handle(f, "ADD", plainConfig)
			assert.Equal(t, tt.want, out)
			assert.Equal(t, tt.shown, shown())
			assert.Equal(t, tt.code != 0, removed, "an ADD that is not answered is taken back")
			if tt.code != 0 {
				require.NotNil(t, err)
				assert.Equal(t, tt.code, err.Code, err.Error())
			}
		})
	}
}

func TestErrorsKeepWhatTheySay(t *testing.T) {
	var none *types.Error
	for _, tt := range []struct {
		name string
		err  error
		want *cni.Error
	}{
		{"an error", types.NewError(7, "m", "d"), &cni.Error{CNIVersion: "1.1.0", Code: 7, Msg: "m", Details: "d"}},
		{"a wrapped one", fmt.Errorf("w: %w", types.NewError(11, "m", "d")), &cni.Error{CNIVersion: "1.1.0", Code: 11, Msg: "w: m; d"}},
		{"one that is nil", none, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := funcs()
			f.Del = func(*skel.CmdArgs) error { return tt.err }
			_, err := handle(f, "DEL", plainConfig)
			if tt.want == nil {
				require.Nil(t, err)
				return
			}
			require.NotNil(t, err)
			got := *err
			assert.Equal(t, []any{tt.want.CNIVersion, tt.want.Code, tt.want.Msg, tt.want.Details}, []any{got.CNIVersion, got.Code, got.Msg, got.Details})
			var theirs *types.Error
			assert.ErrorAs(t, err, &theirs)
		})
	}
}

// A callback of DEL does not learn of a namespace that it must not enter.
func TestNetnsThatIsGone(t *testing.T) {
	for _, netns := range []string{"/nowhere", "/proc/self/ns/net", ""} {
		ran := false
		f := funcs()
		f.Del = func(args *skel.CmdArgs) error {
			ran = args.Netns == "" && os.Getenv("CNI_NETNS") == ""
			return nil
		}
		p := plugin(f)
		p.AllowHostNetNS = false
		inv := invocation("DEL", plainConfig)
		inv.NetNS = netns
		_, err := p.Handler().Handle(context.Background(), inv)
		require.NoError(t, err)
		assert.True(t, ran, netns)
	}
}

// A callback that failed has cleaned up as it knows to, and the runtime calls DEL. One
// that succeeded would not know that its ADD came to nothing.
func TestUndo(t *testing.T) {
	removed := 0
	f := funcs()
	f.Del = func(*skel.CmdArgs) error { removed++; return nil }
	shown := stdout(t)
	f.Add = func(args *skel.CmdArgs) error {
		if err := printing(plainResult)(args); err != nil {
			return err
		}
		return types.NewError(11, "m", "")
	}
	out, err := handle(f, "ADD", plainConfig)
	require.NotNil(t, err)
	assert.Empty(t, out)
	assert.Zero(t, removed)
	assert.Equal(t, plainResult+"\n", shown(), "what was printed is not lost")

	ctx, cancel := context.WithCancel(context.Background())
	f.Add = func(args *skel.CmdArgs) error { cancel(); return printing(plainResult)(args) }
	_, failed := plugin(f).Handler().Handle(ctx, invocation("ADD", plainConfig))
	assert.Equal(t, cni.CodeTryAgain, cni.AsError(failed).Code)
	assert.Equal(t, 1, removed)
}

func TestPanicShowsWhatWasPrinted(t *testing.T) {
	shown := stdout(t)
	f := funcs()
	f.Add = func(*skel.CmdArgs) error { fmt.Println("before"); panic("boom") }
	_, err := handle(f, "ADD", plainConfig)
	require.NotNil(t, err)
	assert.Equal(t, "panic: boom", err.Msg)
	assert.Contains(t, err.Details, "fromskel_test.TestPanicShowsWhatWasPrinted")
	fmt.Println("after")
	assert.Equal(t, "before\nafter\n", shown())
}

func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		info version.PluginInfo
		want string
	}{
		{version.PluginSupports("1.0.0", "0.4.0", "7.0.0"), `{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}`},
		{version.All, `{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}`},
		{nil, `{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}`},
	} {
		out, err := fromskel.Plugin[struct{}](funcs(), tt.info, "").Handler().Handle(context.Background(), cni.Invocation{Command: "VERSION"})
		require.NoError(t, err)
		assert.JSONEq(t, tt.want, string(out))
	}
	_, err := fromskel.Plugin[struct{}](funcs(), version.PluginSupports("7.0.0"), "").Handler().Handle(context.Background(), cni.Invocation{Command: "VERSION"})
	assert.ErrorContains(t, err, `"7.0.0"`)
}

// Handlers of several plugins may be called at the same time: the callbacks run one
// after the other, and each has its own environment and result.
func TestConcurrentCalls(t *testing.T) {
	var running atomic.Int32
	f := funcs()
	f.Add = func(args *skel.CmdArgs) error {
		defer running.Add(-1)
		alone := running.Add(1) == 1
		for range 100 {
			runtime.Gosched()
		}
		if !alone || os.Getenv("CNI_CONTAINERID") != args.ContainerID {
			return types.NewError(100, "the environment of another call", "")
		}
		return printing(`{"cniVersion":"1.1.0","container":"` + args.ContainerID + `"}`)(args)
	}
	plugins := []cni.Handler{plugin(f).Handler(), plugin(f).Handler()}
	var calls sync.WaitGroup
	for i := range 64 {
		calls.Go(func() {
			inv := invocation("ADD", plainConfig)
			inv.ContainerID = fmt.Sprint("c", i)
			out, err := plugins[i%2].Handle(context.Background(), inv)
			assert.NoError(t, err)
			assert.JSONEq(t, `{"cniVersion":"1.1.0","container":"`+inv.ContainerID+`"}`, string(out))
		})
	}
	calls.Wait()
}

// A waiting is a context that tells when somebody waits for its end.
type waiting struct {
	context.Context
	waits func()
}

func (w waiting) Done() <-chan struct{} {
	w.waits()
	return w.Context.Done()
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	f := funcs()
	f.Check = func(*skel.CmdArgs) error { close(entered); <-leave; return nil }
	f.Del = func(*skel.CmdArgs) error { t.Error("ran"); return nil }
	var check sync.WaitGroup
	check.Go(func() {
		_, err := handle(f, "CHECK", plainConfig)
		assert.Nil(t, err)
	})
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	_, err := plugin(f).Handler().Handle(waiting{ctx, cancel}, invocation("DEL", plainConfig))
	assert.Equal(t, cni.CodeTryAgain, cni.AsError(err).Code)
	assert.ErrorIs(t, err, context.Canceled)
	close(leave)
	check.Wait()
	for range 10 { // a free turn does not outweigh the context
		_, err := plugin(f).Handler().Handle(ctx, invocation("DEL", plainConfig))
		assert.Equal(t, cni.CodeTryAgain, cni.AsError(err).Code)
	}
}

// One function after the other can be written anew.
func TestReplacedFunctions(t *testing.T) {
	type config struct {
		Bridge string `json:"bridge"`
	}
	f := funcs()
	f.Del, f.GC = nil, nil
	p := fromskel.Plugin[config](f, version.All, "")
	p.AllowHostNetNS = true
	var got string
	p.Del = func(_ context.Context, r *cni.Request[config]) error { got = r.Config.Bridge; return nil }
	p.GC = cni.NoState[config]
	var out bytes.Buffer
	run := func(command string) int {
		process := cni.Process{
			Env:    []string{"CNI_COMMAND=" + command, "CNI_CONTAINERID=c1", "CNI_NETNS=/proc/self/ns/net", "CNI_IFNAME=eth0"},
			Stdin:  strings.NewReader(`{"cniVersion":"1.1.0","name":"lan","type":"t","bridge":"br0"}`),
			Stdout: &out, Stderr: io.Discard,
		}
		return process.Run(context.Background(), p.Handler())
	}
	assert.Zero(t, run("DEL"), out.String())
	assert.Equal(t, "br0", got)
	assert.Zero(t, run("ADD"), out.String())
	assert.Equal(t, plainResult, strings.TrimSpace(out.String()))
}
