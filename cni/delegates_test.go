package cni_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// recorder is an executor that keeps every invocation and answers as told.
type recorder struct {
	calls  []cni.Invocation
	answer func(plugin string, inv cni.Invocation) ([]byte, error)
}

func (x *recorder) Execute(_ context.Context, plugin string, inv cni.Invocation) ([]byte, error) {
	inv.Log = nil
	x.calls = append(x.calls, inv)
	if x.answer != nil {
		return x.answer(plugin, inv)
	}
	return []byte(`{}`), nil
}

func (x *recorder) commands() (commands []string) {
	for _, inv := range x.calls {
		commands = append(commands, fmt.Sprint(inv.Command, " ", inv.IfName))
	}
	return commands
}

// delegating is a plugin that does nothing but delegate.
func delegating(x cni.Executor, delegates func(*request) cni.Delegates) plugin {
	p := testPlugin()
	p.Delegates = x
	p.Add = func(ctx context.Context, r *request) (*cni.Result, error) { return delegates(r).Add(ctx) }
	p.Del = func(ctx context.Context, r *request) error { return delegates(r).Del(ctx) }
	p.Check = func(ctx context.Context, r *request) error { return delegates(r).Check(ctx) }
	p.Status = func(ctx context.Context, r *request) error { return delegates(r).Status(ctx) }
	p.GC = func(ctx context.Context, r *request) error { return delegates(r).GC(ctx) }
	return p
}

// one is a delegate by its options.
func one(o cni.DelegateOptions) func(*request) cni.Delegates {
	return func(r *request) cni.Delegates { return cni.Delegates{r.DelegateWith("", o)} }
}

const (
	ownConfig = `{"type":"macvlan","big":9007199254740993,"Mixed":1.00,"capabilities":{"mac":true,"ips":false},` +
		`"prevResult":{"x":1},"cni.dev/x":1,"CNI.dev/valid-attachments":[]}`
	runtimeGave = `"runtimeConfig":{"mac":"02:00:00:00:00:09","ips":["10.0.0.9"],"aliases":["a"]}`
	prevOfTwo   = `"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"veth1"},{"name":"eth0","sandbox":"/n"},{"name":"net1","sandbox":"/n"}],` +
		`"ips":[{"interface":1,"address":"10.0.0.5/24"},{"interface":2,"address":"10.1.0.5/24"}],"x":1.00}`
)

func TestDelegateWithConfig(t *testing.T) {
	const derived = `"type":"macvlan","big":9007199254740993,"Mixed":1.00,"name":"lan"`
	for command, c := range map[string]struct{ members, want string }{
		"ADD": {runtimeGave + `,"prevResult":{}`, `{` + derived + `,"runtimeConfig":{"mac":"02:00:00:00:00:09"},"cniVersion":"1.1.0"}`},
		"DEL": {prevOfTwo, `{` + derived + `,"cniVersion":"1.1.0","prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"net1","sandbox":"/n"}],` +
			`"ips":[{"interface":0,"address":"10.1.0.5/24"}],"x":1.00}}`},
		"CHECK": {prevOfTwo, `{` + derived + `,"cniVersion":"1.1.0","prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"net1","sandbox":"/n"}],` +
			`"ips":[{"interface":0,"address":"10.1.0.5/24"}],"x":1.00}}`},
		"STATUS": {`"x":1`, `{` + derived + `,"cniVersion":"1.1.0"}`},
		"GC": {`"cni.dev/attachments":[{"containerID":"c1","ifname":"eth0"}]`, `{` + derived + `,"cniVersion":"1.1.0",` +
			`"cni.dev/valid-attachments":[{"containerID":"c1","ifname":"net1"}],"cni.dev/attachments":[{"containerID":"c1","ifname":"net1"}]}`},
	} {
		t.Run(command, func(t *testing.T) {
			x := &recorder{}
			p := delegating(x, one(cni.DelegateOptions{
				Config: json.RawMessage(ownConfig), IfName: "net1", Args: cni.Args{{Key: "A", Value: "1=2"}}, Env: []string{"OTHER=2", "MORE=3"},
			}))
			a := run(p, environment(command, "CNI_ARGS=B=1"), network("1.1.0", c.members))
			assert.Zero(t, a.code, a.stdout)
			require.Len(t, x.calls, 1)
			assert.Equal(t, c.want, string(x.calls[0].Config))
			x.calls[0].Config = nil
			assert.Equal(t, cni.Invocation{
				Command: cni.Command(command), ContainerID: "c1", NetNS: ownNetNS, IfName: "net1", Args: "A=1=2",
				Path: []string{"/nowhere"}, Env: []string{"OTHER=2", "MORE=3"},
			}, x.calls[0])
		})
	}
}

func TestDelegateWithOneOption(t *testing.T) {
	result := parse(t, `{"ips":[{"address":"10.5.0.5/24"}]}`)
	for name, c := range map[string]struct {
		o       cni.DelegateOptions
		command string
		config  string // of the request
		want    string // what the delegate gets; "": the very text of the request
	}{
		"none":                  {cni.DelegateOptions{}, "DEL", network("1.1.0", prevOfTwo), ""},
		"environment":           {cni.DelegateOptions{Env: []string{"A=1"}}, "GC", network("1.1.0"), ""},
		"arguments, to none":    {cni.DelegateOptions{Args: cni.Args{}}, "ADD", network("1.1.0", prevOfTwo), ""},
		"interface/DEL":         {cni.DelegateOptions{IfName: "net1"}, "DEL", `{"cniVersion":"1.1.0","name":"n",` + prevOfTwo + `}`, `{"cniVersion":"1.1.0","name":"n","prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"net1","sandbox":"/n"}],"ips":[{"interface":0,"address":"10.1.0.5/24"}],"x":1.00}}`},
		"interface/ADD":         {cni.DelegateOptions{IfName: "net1"}, "ADD", `{"cniVersion":"1.1.0","name":"n","prevResult":{"x":1.00}}`, `{"cniVersion":"1.1.0","name":"n","prevResult":{"cniVersion":"1.1.0","x":1.00}}`},
		"prevResult/ADD":        {cni.DelegateOptions{PrevResult: result}, "ADD", `{"cniVersion":"1.0.0","name":"n"}`, `{"cniVersion":"1.0.0","name":"n","prevResult":{"cniVersion":"1.0.0","ips":[{"address":"10.5.0.5/24"}]}}`},
		"prevResult/CHECK":      {cni.DelegateOptions{PrevResult: result}, "CHECK", `{"cniVersion":"1.0.0","name":"n",` + prevOfTwo + `}`, `{"cniVersion":"1.0.0","name":"n","prevResult":{"cniVersion":"1.0.0","ips":[{"address":"10.5.0.5/24"}]}}`},
		"prevResult, interface": {cni.DelegateOptions{PrevResult: result, IfName: "net1"}, "CHECK", `{"cniVersion":"1.0.0","name":"n",` + prevOfTwo + `}`, `{"cniVersion":"1.0.0","name":"n","prevResult":{"cniVersion":"1.0.0","ips":[{"address":"10.5.0.5/24"}]}}`},
		"interface/STATUS":      {cni.DelegateOptions{IfName: "net1"}, "STATUS", `{"cniVersion":"1.1.0","name":"n",` + prevOfTwo + `}`, `{"cniVersion":"1.1.0","name":"n"}`},
		"no capability given":   {cni.DelegateOptions{Config: []byte(`{"type":"x","capabilities":{"bandwidth":true}}`)}, "ADD", network("1.1.0", runtimeGave), `{"type":"x","name":"lan","cniVersion":"1.1.0"}`},
		"valid":                 {cni.DelegateOptions{Valid: []cni.Attachment{{ContainerID: "a", IfName: "b"}}}, "GC", `{"cniVersion":"1.1.0","name":"n","cni.dev/attachments":[]}`, `{"cniVersion":"1.1.0","name":"n","cni.dev/attachments":[{"containerID":"a","ifname":"b"}],"cni.dev/valid-attachments":[{"containerID":"a","ifname":"b"}]}`},
		"valid, none":           {cni.DelegateOptions{Valid: []cni.Attachment{}}, "GC", `{"cniVersion":"1.1.0","name":"n","cni.dev/attachments":[{"containerID":"a","ifname":"b"}]}`, `{"cniVersion":"1.1.0","name":"n","cni.dev/attachments":[],"cni.dev/valid-attachments":[]}`},
		"a name of its own":     {cni.DelegateOptions{Config: []byte(`{"type":"x","name":"other"}`)}, "STATUS", network("1.1.0"), `{"type":"x","name":"other","cniVersion":"1.1.0"}`},
		"versions of its own":   {cni.DelegateOptions{Config: []byte(`{"type":"x","cniVersion":"0.4.0","cniVersions":["1.0.0","9.9.9"]}`)}, "ADD", network("1.1.0"), `{"type":"x","cniVersion":"1.0.0","cniVersions":["1.0.0","9.9.9"],"name":"lan"}`},
		"its own capabilities":  {cni.DelegateOptions{Config: []byte(`{"type":"x","name":"n","capabilities":{"mac":true},"runtimeConfig":{"ips":[1]}}`)}, "ADD", network("1.1.0", runtimeGave), `{"type":"x","name":"n","runtimeConfig":{"ips":[1]},"cniVersion":"1.1.0"}`},
		"a DEL of any version":  {cni.DelegateOptions{Config: []byte(`{"type":"x","name":"n"}`)}, "DEL", network("9.9.9", prevOfTwo), `{"type":"x","name":"n","cniVersion":"9.9.9","prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"veth1"},{"name":"eth0","sandbox":"/n"},{"name":"net1","sandbox":"/n"}],"ips":[{"interface":1,"address":"10.0.0.5/24"},{"interface":2,"address":"10.1.0.5/24"}],"x":1.00}}`},
		"alone, without the interfaces of others": {cni.DelegateOptions{IfName: "eth0"}, "CHECK", `{"cniVersion":"1.1.0","name":"n",` + prevOfTwo + `}`, `{"cniVersion":"1.1.0","name":"n","prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"veth1"},{"name":"eth0","sandbox":"/n"}],"ips":[{"interface":1,"address":"10.0.0.5/24"}],"x":1.00}}`},
	} {
		t.Run(name, func(t *testing.T) {
			x := &recorder{}
			p := delegating(x, func(r *request) cni.Delegates { return cni.Delegates{r.DelegateWith("pool", c.o)} })
			if c.command == "GC" { // the group has the list in any case
				p.GC = func(ctx context.Context, r *request) error { return r.DelegateWith("pool", c.o).GC(ctx) }
			}
			if strings.HasPrefix(name, "alone") {
				p.Check = func(ctx context.Context, r *request) error { return r.DelegateWith("pool", c.o).Check(ctx) }
			}
			a := run(p, environment(c.command), c.config)
			assert.Zero(t, a.code, a.stdout)
			if c.want == "" {
				c.want = c.config
			}
			require.Len(t, x.calls, 1)
			assert.Equal(t, c.want, string(x.calls[0].Config))
		})
	}
}

func TestDelegateWithRefuses(t *testing.T) {
	for want, o := range map[string]cni.DelegateOptions{
		`IfName="a/b": contains '/'`:           {Config: []byte(`{"type":"x"}`), IfName: "a/b"},
		`Args="A=1;B=2": argument`:             {Config: []byte(`{"type":"x"}`), Args: cni.Args{{Key: "A", Value: "1;B=2"}}},
		`Config=[]: is no JSON object`:         {Config: []byte(`[]`)},
		`type of a delegate: "" is missing`:    {Config: []byte(`{}`)},
		`type of a delegate: "../x" is not th`: {Config: []byte(`{"type":"../x"}`)},
		`IfName="..": is not an interface`:     {Config: []byte(`[]`), IfName: "..", Args: cni.Args{{}}},
	} {
		for _, command := range []string{"ADD", "DEL", "CHECK", "STATUS", "GC"} {
			x := &recorder{}
			a := run(delegating(x, one(o)), environment(command), network("1.1.0"))
			e := a.failed(t)
			assert.Equal(t, cni.CodeInvalidConfig, e.Code, e.Msg)
			assert.Empty(t, e.Details, "there is nothing to undo")
			assert.Empty(t, a.stderr)
			assert.Contains(t, e.Msg, want)
			assert.Empty(t, x.calls)
		}
	}
}

func TestDelegateWithName(t *testing.T) {
	var asked []string
	x := &recorder{answer: func(plugin string, inv cni.Invocation) ([]byte, error) {
		asked = append(asked, plugin)
		return nil, nil
	}}
	p := delegating(x, func(r *request) cni.Delegates {
		config := json.RawMessage(`{"type":"configured"}`)
		return cni.Delegates{r.DelegateWith("named", cni.DelegateOptions{Config: config}), r.DelegateWith("", cni.DelegateOptions{Config: config})}
	})
	assert.Zero(t, run(p, environment("CHECK"), network("1.1.0")).code)
	assert.Equal(t, []string{"named", "configured"}, asked)
}

// A request that cannot be made is an error before anything runs.
func TestDelegateWithoutRequest(t *testing.T) {
	x := &recorder{}
	p := delegating(x, one(cni.DelegateOptions{Config: []byte(`{"type":"x"}`), PrevResult: &cni.Result{IPs: []cni.IP{{}}}}))
	e := run(p, environment("CHECK"), network("1.1.0")).failed(t)
	assert.Contains(t, e.Msg, `plugin "x" CHECK: convert prevResult: encode result: ips[0].address: is missing`)
	assert.Empty(t, x.calls)

	bare := &request{} // as a unit test of a handler function makes it
	err := bare.DelegateWith("pool", cni.DelegateOptions{IfName: "net1"}).Del(t.Context())
	assert.ErrorContains(t, err, `plugin "pool" DEL: read configuration: the document: is empty`)
}

// A plugin may take back itself what the delegates of an ADD did.
func TestDelegatesDelAfterAdd(t *testing.T) {
	x := &recorder{answer: func(_ string, inv cni.Invocation) ([]byte, error) {
		return fmt.Appendf(nil, `{"interfaces":[{"name":"%s","sandbox":"/n"}]}`, inv.IfName), nil
	}}
	p := delegating(x, three)
	p.Add = func(ctx context.Context, r *request) (*cni.Result, error) {
		ds := three(r)
		if _, err := ds.Add(ctx); err != nil {
			return nil, err
		}
		return &cni.Result{}, ds.Del(ctx)
	}
	assert.Zero(t, run(p, environment("ADD"), network("1.1.0")).code)
	assert.Equal(t, []string{"ADD eth0", "ADD net1", "ADD net2", "DEL net2", "DEL net1", "DEL eth0"}, x.commands())
	for _, inv := range x.calls[3:] {
		assert.Contains(t, string(inv.Config), `"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"`+inv.IfName+`"`, "each gets its own result")
	}
}

// two delegates in networks of their own; the third shares the network of the second.
func three(r *request) (ds cni.Delegates) {
	for i, name := range []string{"front", "back", "back"} {
		o := cni.DelegateOptions{Config: fmt.Appendf(nil, `{"type":"%s%d","name":"%s"}`, name, i, name)}
		if i > 0 {
			o.IfName = fmt.Sprint("net", i)
		}
		ds = append(ds, r.DelegateWith("", o))
	}
	return ds
}

func TestDelegatesAdd(t *testing.T) {
	answer := func(_ string, inv cni.Invocation) ([]byte, error) {
		return fmt.Appendf(nil, `{"cniVersion":"1.0.0","interfaces":[{"name":"host-%[1]s"},{"name":"%[1]s","sandbox":"/n"}],"ips":[{"interface":1,"address":"10.0.0.5/24"}]}`, inv.IfName), nil
	}
	t.Run("results are merged", func(t *testing.T) {
		x := &recorder{answer: answer}
		run(delegating(x, three), environment("ADD"), network("1.1.0")).succeeded(t, `{"cniVersion":"1.1.0","interfaces":[`+
			`{"name":"host-eth0"},{"name":"eth0","sandbox":"/n"},{"name":"host-net1"},{"name":"net1","sandbox":"/n"},{"name":"host-net2"},{"name":"net2","sandbox":"/n"}],`+
			`"ips":[{"interface":1,"address":"10.0.0.5/24"},{"interface":3,"address":"10.0.0.5/24"},{"interface":5,"address":"10.0.0.5/24"}]}`)
		assert.Equal(t, []string{"ADD eth0", "ADD net1", "ADD net2"}, x.commands())
	})
	t.Run("behind another plugin", func(t *testing.T) {
		const prev = `"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"lo","sandbox":"/n"}],"x":1.00}`
		x := &recorder{answer: answer}
		run(delegating(x, one(cni.DelegateOptions{Config: []byte(`{"type":"x"}`)})), environment("ADD"), network("1.1.0", prev)).
			succeeded(t, `{"cniVersion":"1.1.0","interfaces":[{"name":"lo","sandbox":"/n"},{"name":"host-eth0"},{"name":"eth0","sandbox":"/n"}],`+
				`"ips":[{"interface":2,"address":"10.0.0.5/24"}],"x":1.00}`)
		assert.NotContains(t, string(x.calls[0].Config), "prevResult")

		x = &recorder{answer: answer}
		p := delegating(x, func(r *request) cni.Delegates { return cni.Delegates{r.Delegate("pool")} })
		a := run(p, environment("ADD"), network("1.1.0", prev))
		assert.NotContains(t, a.stdout, `"lo"`, "the delegate got it, and what to make of it is its affair")
	})
	t.Run("a failure undoes all, each with its own result", func(t *testing.T) {
		x := &recorder{answer: func(plugin string, inv cni.Invocation) ([]byte, error) {
			if plugin == "back2" && inv.Command == cni.CommandAdd {
				return nil, cni.Errorf(cni.CodeTryAgain, "full")
			}
			return answer(plugin, inv)
		}}
		e := run(delegating(x, three), environment("ADD"), network("1.1.0")).failed(t)
		assert.Equal(t, cni.CodeTryAgain, e.Code)
		assert.Equal(t, []string{"ADD eth0", "ADD net1", "ADD net2", "DEL net2", "DEL net1", "DEL eth0"}, x.commands())
		assert.NotContains(t, string(x.calls[3].Config), "prevResult", "it has none")
		assert.Contains(t, string(x.calls[4].Config), `"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"host-net1"},{"name":"net1","sandbox":"/n"}]`)
		assert.Contains(t, string(x.calls[5].Config), `{"name":"eth0","sandbox":"/n"}`)
	})
	t.Run("one name twice", func(t *testing.T) {
		x := &recorder{}
		p := delegating(x, func(r *request) cni.Delegates { return append(three(r), three(r)[0]) })
		e := run(p, environment("ADD"), network("1.1.0")).failed(t)
		assert.Contains(t, e.Msg, `plugin "front0": the interface name "eth0" is that of another network`)
		assert.Empty(t, x.calls)
	})
	t.Run("no networks", func(t *testing.T) {
		run(delegating(&recorder{}, func(*request) cni.Delegates { return nil }), environment("ADD"), network("1.1.0")).succeeded(t, `{"cniVersion":"1.1.0"}`)
	})
}

func TestDelegatesOrderAndErrors(t *testing.T) {
	const prev = `"prevResult":{"interfaces":[{"name":"h0"},{"name":"eth0","sandbox":"/n"},{"name":"h1"},{"name":"net1","sandbox":"/n"},{"name":"net2","sandbox":"/n"}]}`
	for command, want := range map[string][]string{
		"DEL":   {"DEL net2", "DEL net1", "DEL eth0"},
		"CHECK": {"CHECK eth0", "CHECK net1", "CHECK net2"},
	} {
		t.Run(command, func(t *testing.T) {
			x := &recorder{answer: func(plugin string, inv cni.Invocation) ([]byte, error) {
				return nil, cni.Errorf(cni.CodeTryAgain, "stuck %s", plugin)
			}}
			e := run(delegating(x, three), environment(command), network("1.1.0", prev)).failed(t)
			assert.Equal(t, want, x.commands(), "all run")
			assert.Equal(t, cni.CodeTryAgain, e.Code)
			for _, plugin := range []string{"front0", "back1", "back2"} {
				assert.Contains(t, e.Msg, "stuck "+plugin)
			}
			for _, inv := range x.calls {
				var doc struct{ PrevResult cni.Result }
				require.NoError(t, json.Unmarshal(inv.Config, &doc))
				_, at := doc.PrevResult.Interface(inv.IfName, "/n")
				assert.Equal(t, len(doc.PrevResult.Interfaces)-1, at, "%s", inv.Config)
				host := map[string]int{"eth0": 1, "net1": 1, "net2": 0}
				assert.Equal(t, host[inv.IfName], at, "and those of the host before it")
			}
		})
	}
	t.Run("STATUS", func(t *testing.T) {
		x := &recorder{answer: func(plugin string, inv cni.Invocation) ([]byte, error) {
			if plugin == "back1" {
				return nil, cni.Errorf(cni.CodeLimitedConnectivity, "down")
			}
			return nil, errors.New("x")
		}}
		e := run(delegating(x, three), environment("STATUS"), network("1.1.0")).failed(t)
		assert.Len(t, x.calls, 3)
		assert.Equal(t, cni.CodeLimitedConnectivity, e.Code)
	})
}

func TestDelegateStatus(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code cni.Code
	}{
		"missing":                 {fmt.Errorf("x: %w", cni.ErrPluginNotFound), cni.CodeNotAvailable},
		"crashed":                 {cni.Errorf(cni.CodeInternal, "exit status 2"), cni.CodeNotAvailable},
		"limited":                 {cni.Errorf(cni.CodeLimitedConnectivity, "x"), cni.CodeLimitedConnectivity},
		"with a code of its own":  {cni.Errorf(150, "x"), 150},
		"a passing condition":     {cni.Errorf(cni.CodeTryAgain, "x"), cni.CodeTryAgain},
		"without the right to it": {cni.Errorf(cni.CodeIO, "x"), cni.CodeIO},
	} {
		t.Run(name, func(t *testing.T) {
			x := &recorder{answer: func(string, cni.Invocation) ([]byte, error) { return nil, c.err }}
			for _, ds := range []func(*request) cni.Delegates{three, func(r *request) cni.Delegates { return cni.Delegates{r.Delegate("pool")} }} {
				assert.Equal(t, c.code, run(delegating(x, ds), environment("STATUS"), network("1.1.0")).failed(t).Code)
			}
		})
	}
}

// A delegate that takes the valid attachments of another for stale would free the
// addresses of running containers.
func TestDelegatesGC(t *testing.T) {
	x := &recorder{}
	run(delegating(x, three), environment("GC", "CNI_IFNAME", "CNI_CONTAINERID", "CNI_NETNS"), network("1.1.0",
		`"cni.dev/attachments":[{"containerID":"a","ifname":"eth0"},{"containerID":"b","ifname":"eth5"}]`)).succeeded(t, "")
	require.Len(t, x.calls, 3)
	for i, want := range []string{"a/eth0 b/eth5", "a/net1 b/net1 a/net2 b/net2", "a/net1 b/net1 a/net2 b/net2"} {
		var doc struct {
			Main []cni.Attachment `json:"cni.dev/valid-attachments"`
			Tag  []cni.Attachment `json:"cni.dev/attachments"`
		}
		require.NoError(t, json.Unmarshal(x.calls[i].Config, &doc))
		var got []string
		for _, a := range doc.Main {
			got = append(got, a.ContainerID+"/"+a.IfName)
		}
		assert.Equal(t, want, strings.Join(got, " "))
		assert.Equal(t, doc.Main, doc.Tag)
	}
	t.Run("what two have in common is listed once", func(t *testing.T) {
		x := &recorder{}
		p := delegating(x, func(r *request) cni.Delegates { return cni.Delegates{r.Delegate("a"), r.Delegate("b")} })
		run(p, environment("GC"), network("1.1.0", `"cni.dev/attachments":[{"containerID":"a","ifname":"eth0"}]`)).succeeded(t, "")
		assert.Contains(t, string(x.calls[1].Config), `"cni.dev/valid-attachments":[{"containerID":"a","ifname":"eth0"}]`)
	})
	t.Run("nothing is valid", func(t *testing.T) {
		x := &recorder{}
		run(delegating(x, three), environment("GC"), network("1.1.0")).succeeded(t, "")
		assert.Contains(t, string(x.calls[0].Config), `"cni.dev/valid-attachments":[]`)
	})
}
