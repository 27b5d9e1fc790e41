package cni_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// record is what the plugins of a chain were asked, in order.
type record []string

// part is a plugin of a chain. It adds an address to the result, and its answers can
// be replaced.
type part struct {
	name     string
	record   *record
	fail     map[string]error // by command
	versions []string
}

// partConfig is read from the same object as testConfig.
type partConfig struct {
	Addresses map[string]string `json:"addresses"`
}

func (p part) handler() cni.Handler {
	note := func(_ context.Context, r *cni.Request[partConfig]) error {
		previous := "none"
		if r.PrevResult != nil {
			previous = fmt.Sprint(r.PrevResult.Addresses(-1))
		}
		*p.record = append(*p.record, fmt.Sprint(r.Command, " ", p.name, " ", previous))
		return p.fail[string(r.Command)]
	}
	return cni.Plugin[partConfig]{
		Type: p.name, About: "about " + p.name,
		Add: func(ctx context.Context, r *cni.Request[partConfig]) (*cni.Result, error) {
			if err := note(ctx, r); err != nil {
				return nil, err
			}
			result := r.PrevResult.Clone()
			if result == nil {
				result = &cni.Result{}
			}
			result.IPs = append(result.IPs, cni.IP{Address: netip.MustParsePrefix(r.Config.Addresses[p.name])})
			return result, nil
		},
		Del: note, Check: note, Status: note, GC: note,
		AllowHostNetNS: true, Versions: p.versions,
	}.Handler()
}

const chainAddresses = `"addresses":{"a":"10.0.0.1/8","b":"10.0.0.2/8","c":"10.0.0.3/8"}`

// chained makes a chain of three; fail names commands and plugins, "ADD b".
func chained(fail map[string]error) (cni.Handler, *record) {
	var calls record
	var handlers []cni.Handler
	for _, name := range []string{"a", "b", "c"} {
		p := part{name: name, record: &calls, fail: map[string]error{}}
		for key, err := range fail {
			if command, ok := strings.CutSuffix(key, " "+name); ok {
				p.fail[command] = err
			}
		}
		handlers = append(handlers, p.handler())
	}
	return cni.Chain(handlers...), &calls
}

func runHandler(ctx context.Context, h cni.Handler, env []string, stdin string) answer {
	var stdout, stderr bytes.Buffer
	code := cni.Process{Env: env, Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr}.Run(ctx, h)
	return answer{code, stdout.String(), stderr.String()}
}

func TestChainOrder(t *testing.T) {
	const final = `"prevResult":{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.9/8"}]}`
	for command, c := range map[string]struct {
		members string
		calls   record
		stdout  string
	}{
		"ADD": {`"x":1`, record{"ADD a none", "ADD b [10.0.0.1/8]", "ADD c [10.0.0.1/8 10.0.0.2/8]"},
			`{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.1/8"},{"address":"10.0.0.2/8"},{"address":"10.0.0.3/8"}]}`},
		"DEL":    {final, record{"DEL c [10.0.0.9/8]", "DEL b [10.0.0.9/8]", "DEL a [10.0.0.9/8]"}, ""},
		"CHECK":  {final, record{"CHECK a [10.0.0.9/8]", "CHECK b [10.0.0.9/8]", "CHECK c [10.0.0.9/8]"}, ""},
		"STATUS": {`"x":1`, record{"STATUS a none", "STATUS b none", "STATUS c none"}, ""},
		"GC":     {`"x":1`, record{"GC a none", "GC b none", "GC c none"}, ""},
	} {
		t.Run(command, func(t *testing.T) {
			h, calls := chained(nil)
			runHandler(t.Context(), h, environment(command), network("1.1.0", chainAddresses, c.members)).succeeded(t, c.stdout)
			assert.Equal(t, c.calls, *calls)
		})
	}
	t.Run("behind another plugin", func(t *testing.T) {
		h, calls := chained(nil)
		assert.Zero(t, runHandler(t.Context(), h, environment("ADD"), network("1.1.0", chainAddresses, final)).code)
		assert.Equal(t, "ADD a [10.0.0.9/8]", (*calls)[0])
	})
	t.Run("a chain in a chain", func(t *testing.T) {
		inner, calls := chained(map[string]error{"ADD c": errors.New("no")})
		outer := cni.Chain(part{name: "a", record: calls}.handler(), inner)
		e := runHandler(t.Context(), outer, environment("ADD"), network("1.1.0", chainAddresses)).failed(t)
		assert.Equal(t, "no", e.Msg)
		assert.Equal(t, record{
			"ADD a none", "ADD a [10.0.0.1/8]", "ADD b [10.0.0.1/8 10.0.0.1/8]", "ADD c [10.0.0.1/8 10.0.0.1/8 10.0.0.2/8]",
			"DEL b [10.0.0.1/8 10.0.0.1/8 10.0.0.2/8]", "DEL a [10.0.0.1/8 10.0.0.1/8 10.0.0.2/8]", "DEL a [10.0.0.1/8]",
		}, *calls)
	})
}

func TestChainFailures(t *testing.T) {
	later, limited := cni.Errorf(cni.CodeTryAgain, "later"), cni.Errorf(cni.CodeLimitedConnectivity, "limited")
	for name, c := range map[string]struct {
		fail    map[string]error
		command string
		calls   record
		want    cni.Error
	}{
		"ADD is undone, the last first": {map[string]error{"ADD b": later}, "ADD",
			record{"ADD a none", "ADD b [10.0.0.1/8]", "DEL a [10.0.0.1/8]"}, cni.Error{Code: 11, Msg: "later"}},
		"ADD that the first refuses, of an attachment that is there": {map[string]error{"ADD a": later}, "ADD", record{"ADD a none"}, cni.Error{Code: 11, Msg: "later"}},
		"ADD reports what remained": {map[string]error{"ADD c": later, "DEL b": errors.New("stuck")}, "ADD",
			record{"ADD a none", "ADD b [10.0.0.1/8]", "ADD c [10.0.0.1/8 10.0.0.2/8]",
				"DEL b [10.0.0.1/8 10.0.0.2/8]", "DEL a [10.0.0.1/8 10.0.0.2/8]"},
			cni.Error{Code: 11, Msg: "later", Details: "undo ADD of plugin 2 of 3: stuck"}},
		"DEL goes on": {map[string]error{"DEL c": later, "DEL a": errors.New("stuck")}, "DEL",
			record{"DEL c none", "DEL b none", "DEL a none"}, cni.Error{Code: 11, Msg: "later\nstuck"}},
		"CHECK stops": {map[string]error{"CHECK b": later, "CHECK c": limited}, "CHECK",
			record{"CHECK a none", "CHECK b none"}, cni.Error{Code: 11, Msg: "later"}},
		"STATUS goes on, and the worst code counts": {map[string]error{"STATUS a": later, "STATUS c": limited}, "STATUS",
			record{"STATUS a none", "STATUS b none", "STATUS c none"}, cni.Error{Code: 51, Msg: "later\nlimited"}},
		"what all say is said once": {map[string]error{"GC a": later, "GC b": later, "GC c": errors.New("stuck")}, "GC",
			record{"GC a none", "GC b none", "GC c none"}, cni.Error{Code: 11, Msg: "later\nstuck"}},
		"one error is reported as it is": {map[string]error{"DEL b": &cni.Error{Code: 150, Msg: "m", Details: "d"}}, "DEL",
			record{"DEL c none", "DEL b none", "DEL a none"}, cni.Error{Code: 150, Msg: "m", Details: "d"}},
		"GC goes on": {map[string]error{"GC a": errors.New("stuck"), "GC b": later}, "GC",
			record{"GC a none", "GC b none", "GC c none"}, cni.Error{Code: 999, Msg: "stuck\nlater"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, calls := chained(c.fail)
			e := runHandler(t.Context(), h, environment(c.command), network("1.1.0", chainAddresses)).failed(t)
			assert.Equal(t, c.calls, *calls)
			c.want.CNIVersion = "1.1.0"
			assert.Equal(t, c.want, e)
		})
	}
}

func TestChainUndoOutlivesItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var deleted error
	first := handlerFunc(func(ctx context.Context, inv cni.Invocation) ([]byte, error) {
		if inv.Command == cni.CommandDel {
			deleted = errors.Join(ctx.Err(), errors.New("ran"))
			return nil, nil
		}
		cancel()
		return []byte(`{}`), nil
	})
	second := handlerFunc(func(_ context.Context, inv cni.Invocation) ([]byte, error) {
		assert.Fail(t, "the request is cancelled", "%s", inv.Command)
		return nil, nil
	})
	e := runHandler(ctx, cni.Chain(first, second), environment("ADD"), network("1.1.0")).failed(t)
	assert.Equal(t, cni.CodeTryAgain, e.Code)
	assert.EqualError(t, deleted, "ran")
}

// What fails while the request is being cancelled keeps its own code.
func TestChainFailsAndIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	full := handlerFunc(func(_ context.Context, inv cni.Invocation) ([]byte, error) {
		cancel()
		return nil, failure(inv, cni.Errorf(cni.CodeIO, "disk is full"))
	})
	e := runHandler(ctx, cni.Chain(full), environment("ADD"), network("1.1.0")).failed(t)
	assert.Equal(t, cni.Error{CNIVersion: "1.1.0", Code: cni.CodeIO, Msg: "disk is full"}, e)
}

// failure is an error of every command but DEL.
func failure(inv cni.Invocation, err error) error {
	if inv.Command == cni.CommandDel {
		return nil
	}
	return err
}

func failWith(err error) func(context.Context, cni.Invocation) ([]byte, error) {
	return func(_ context.Context, inv cni.Invocation) ([]byte, error) { return nil, failure(inv, err) }
}

func TestChainVersion(t *testing.T) {
	answerWith := func(doc string) cni.Handler {
		return handlerFunc(func(context.Context, cni.Invocation) ([]byte, error) { return []byte(doc), nil })
	}
	some := func(versions ...string) cni.Handler {
		return part{record: &record{}, versions: versions}.handler()
	}
	for name, c := range map[string]struct {
		h    cni.Handler
		want string // a document, or a part of an error
	}{
		"the intersection": {cni.Chain(some(), some("0.4.0", "1.0.0"), some("1.0.0", "1.1.0", "0.4.0")),
			`{"cniVersion":"0.3.1","supportedVersions":["0.4.0","1.0.0"]}`},
		"of a chain in a chain": {cni.Chain(cni.Chain(some("1.0.0", "1.1.0")), some("1.0.0")),
			`{"cniVersion":"0.3.1","supportedVersions":["1.0.0"]}`},
		"a list":           {cni.Chain(some(), answerWith(`[]`)), "plugin 2 of 2 of the chain: read the answer to VERSION: the document: is [], want an object"},
		"an error":         {cni.Chain(some(), handlerFunc(failWith(cni.Errorf(cni.CodeIO, "no disk")))), "no disk"},
		"empty":            {cni.Chain(some("0.4.0"), some("1.0.0")), "no version of the specification in common"},
		"junk":             {cni.Chain(some(), answerWith(`{"supportedVersions":1}`)), "plugin 2 of 2 of the chain: read the answer to VERSION: supportedVersions: is 1"},
		"none":             {cni.Chain(some(), answerWith(`{}`)), "no version of the specification in common"},
		"no document":      {cni.Chain(answerWith(``)), "answered VERSION with 0 bytes"},
		"no handlers":      {cni.Chain(), "the chain has no handlers"},
		"a handler is nil": {cni.Chain(some(), nil), "one that is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			a := runHandler(t.Context(), c.h, environment("VERSION"), `{"cniVersion":"0.3.1"}`)
			if strings.HasPrefix(c.want, "{") {
				a.succeeded(t, c.want)
				return
			}
			assert.Contains(t, a.failed(t).Msg, c.want)
		})
	}
}

// A handler that is no Plugin may answer with anything.
func TestChainResults(t *testing.T) {
	for name, c := range map[string]struct{ first, config, seen, want string }{
		"the text is kept, in the version of the request": {
			`{"x":9007199254740993,"cniVersion":"1.1.0","ips":[]}`, network("1.1.0", `"big":1.00`),
			`{"x":9007199254740993,"cniVersion":"1.1.0","ips":[]}`, "",
		},
		"without a version it has that of the request": {`{"x":1.00}`, network("1.0.0"), `{"x":1.00,"cniVersion":"1.0.0"}`, ""},
		"another version is converted": {
			`{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/8"},"x":1.00}`, network("1.0.0"),
			`{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.1/8"}],"x":1.00}`, "",
		},
		"no result":             {`{"ips":[null]}`, network("1.0.0"), "", "read the result of an ADD: parse result: ips[0]: is null"},
		"two documents":         {`{}{}`, network("1.0.0"), "", "answered ADD with not JSON"},
		"nothing":               {``, network("1.0.0"), "", "answered ADD with 0 bytes"},
		"a prevResult misspelt": {`{"x":1}`, network("1.0.0", `"PREVRESULT":{"y":1}`), `{"x":1,"cniVersion":"1.0.0"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var commands []cni.Command
			var seen []byte
			first := handlerFunc(func(_ context.Context, inv cni.Invocation) ([]byte, error) {
				commands = append(commands, inv.Command)
				if inv.Command == cni.CommandDel {
					return nil, nil
				}
				return []byte(c.first), nil
			})
			second := handlerFunc(func(_ context.Context, inv cni.Invocation) ([]byte, error) {
				var doc map[string]json.RawMessage
				require.NoError(t, json.Unmarshal(inv.Config, &doc))
				seen = doc["prevResult"]
				assert.NotContains(t, doc, "PREVRESULT")
				delete(doc, "prevResult")
				var given map[string]json.RawMessage
				require.NoError(t, json.Unmarshal([]byte(c.config), &given))
				delete(given, "PREVRESULT")
				assert.Equal(t, given, doc, "the rest of the configuration is untouched")
				return seen, nil
			})
			a := runHandler(t.Context(), cni.Chain(first, second), environment("ADD"), c.config)
			if c.want == "" {
				a.succeeded(t, c.seen)
				assert.Equal(t, c.seen, string(seen))
				return
			}
			assert.Contains(t, a.failed(t).Msg, c.want)
			assert.Equal(t, []cni.Command{cni.CommandAdd, cni.CommandDel}, commands, "what ran is undone")
		})
	}
}

func TestChainPanics(t *testing.T) {
	first, calls := chained(nil)
	boom := handlerFunc(func(_ context.Context, inv cni.Invocation) ([]byte, error) { panic("boom") })
	e := runHandler(t.Context(), cni.Chain(first, boom), environment("ADD"), network("1.1.0", chainAddresses)).failed(t)
	assert.Equal(t, "panic: boom", e.Msg)
	assert.Contains(t, e.Details, "undo ADD of plugin 2 of 2: panic: boom")
	assert.Equal(t, []string{"DEL c", "DEL b", "DEL a"}, commandsOf(*calls)[3:])
}

func commandsOf(calls record) (commands []string) {
	for _, call := range calls {
		commands = append(commands, strings.Join(strings.Fields(call)[:2], " "))
	}
	return commands
}

func TestChainAsADelegate(t *testing.T) {
	h, calls := chained(map[string]error{"DEL b": errors.New("stuck")})
	p := testPlugin()
	p.Delegates = cni.Builtin{"pool": h}
	p.Add = func(ctx context.Context, r *request) (*cni.Result, error) {
		if _, err := r.Delegate("pool").Add(ctx); err != nil {
			return nil, err
		}
		return nil, errors.New("the rest failed")
	}
	e := run(p, environment("ADD"), network("1.1.0", chainAddresses)).failed(t)
	assert.Equal(t, []string{"ADD a", "ADD b", "ADD c", "DEL c", "DEL b", "DEL a"}, commandsOf(*calls))
	assert.Equal(t, "the rest failed", e.Msg)
	assert.Contains(t, e.Details, "stuck")

	t.Run("what a part of it misses is not the chain", func(t *testing.T) {
		_, err := cni.Executors{cni.Builtin{"pool": cni.Chain(missing{})}, cni.Builtin{"pool": h}}.Execute(t.Context(), "pool", cni.Invocation{
			Command: cni.CommandStatus, Config: []byte(network("1.1.0")),
		})
		require.ErrorContains(t, err, "plugin not found")
		assert.NotErrorIs(t, err, cni.ErrPluginNotFound)
		_, err = cni.Chain(missing{}).Handle(t.Context(), cni.Invocation{Command: cni.CommandStatus, Config: []byte(network("1.1.0"))})
		require.ErrorContains(t, err, "plugin not found")
		assert.NotErrorIs(t, err, cni.ErrPluginNotFound)
	})
}

func TestChainRefuses(t *testing.T) {
	h, calls := chained(nil)
	e := runHandler(t.Context(), h, nil, "").failed(t)
	assert.Equal(t, cni.CodeInvalidEnvironment, e.Code)
	assert.Contains(t, e.Msg, "CNI_COMMAND is missing; this is a CNI plugin")
	for _, name := range []string{"a", "b", "c"} {
		assert.Contains(t, e.Details, "about "+name)
	}
	for _, command := range []string{"ADD", "DEL", "CHECK", "STATUS", "GC"} {
		for _, stdin := range []string{``, `[]`, `{`, `{}{}`} {
			assert.Equal(t, cni.CodeDecode, runHandler(t.Context(), h, environment(command), stdin).failed(t).Code)
		}
		e := runHandler(t.Context(), h, environment(command), `{"cni.dev/attachments":[]}`).failed(t)
		assert.Equal(t, cni.Error{CNIVersion: "1.1.0", Code: cni.CodeInvalidConfig, Msg: `invalid configuration: name="": is missing`}, e, "said once, and nothing is undone")
	}
	for _, command := range []string{"CHECK", "STATUS", "GC"} {
		e := runHandler(t.Context(), h, environment(command), network("0.3.1")).failed(t)
		assert.Equal(t, "config version does not allow "+command, e.Error())
	}
	assert.Equal(t, cni.CodeIncompatibleVersion, runHandler(t.Context(), h, environment("ADD"), network("9.9.9")).failed(t).Code)
	assert.Empty(t, *calls)

	called := handlerFunc(func(_ context.Context, inv cni.Invocation) ([]byte, error) {
		assert.Fail(t, "the handler is called", "%s", inv.Command)
		return nil, nil
	})
	for _, inv := range []cni.Invocation{{Command: "NOPE"}, {Command: cni.CommandDel}} {
		inv.Config = []byte(network("1.1.0"))
		_, err := cni.Chain(called).Handle(t.Context(), inv)
		assert.Equal(t, cni.CodeInvalidEnvironment, cni.AsError(err).Code)
	}
}
