package cni_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// scripted is an executor that records invocations and answers as told.
type scripted struct {
	t      *testing.T
	calls  []string // command and plugin
	answer func(command cni.Command) ([]byte, error)
	last   cni.Invocation
}

func (s *scripted) Execute(ctx context.Context, plugin string, inv cni.Invocation) ([]byte, error) {
	s.calls = append(s.calls, string(inv.Command)+" "+plugin)
	s.last = inv
	if inv.Command == cni.CommandDel {
		assert.NoError(s.t, ctx.Err(), "a DEL that undoes has a context of its own")
	}
	return s.answer(inv.Command)
}

func success(cni.Command) ([]byte, error) {
	return []byte(`{"ips":[{"address":"10.0.0.5/24"}]}`), nil
}

func TestDelegateCommands(t *testing.T) {
	type call func(context.Context, *cni.Delegate) error
	for command, c := range map[string]call{
		"ADD":    func(ctx context.Context, d *cni.Delegate) error { _, err := d.Add(ctx); return err },
		"DEL":    func(ctx context.Context, d *cni.Delegate) error { return d.Del(ctx) },
		"CHECK":  func(ctx context.Context, d *cni.Delegate) error { return d.Check(ctx) },
		"STATUS": func(ctx context.Context, d *cni.Delegate) error { return d.Status(ctx) },
		"GC":     func(ctx context.Context, d *cni.Delegate) error { return d.GC(ctx) },
	} {
		t.Run(command+"/the same request with the same environment", func(t *testing.T) {
			s := &scripted{t: t, answer: success}
			p := testPlugin()
			p.Delegates = s
			fn := func(ctx context.Context, r *request) error { return c(ctx, r.Delegate("pool")) }
			p.Del, p.Check, p.Status, p.GC = fn, fn, fn, fn
			p.Add = func(ctx context.Context, r *request) (*cni.Result, error) { return &cni.Result{}, fn(ctx, r) }
			stdin := network("1.1.0", `"x":9007199254740993`)
			assert.Zero(t, run(p, environment(command, "CNI_ARGS=A=1"), stdin).code)
			assert.Equal(t, []string{command + " pool"}, s.calls)
			s.last.Log = nil
			assert.Equal(t, cni.Invocation{
				Command: cni.Command(command), ContainerID: "c1", NetNS: ownNetNS, IfName: "eth0", Args: "A=1",
				Path: []string{"/nowhere"}, Config: []byte(stdin), Env: []string{"OTHER=1"},
			}, s.last)
		})
		t.Run(command+"/an error keeps its code", func(t *testing.T) {
			s := &scripted{t: t, answer: func(cni.Command) ([]byte, error) {
				return nil, &cni.Error{Code: cni.CodeTryAgain, Msg: "later"}
			}}
			p := testPlugin()
			p.Delegates = s
			fn := func(ctx context.Context, r *request) error { return c(ctx, r.Delegate("pool")) }
			p.Del, p.Check, p.Status, p.GC = fn, fn, fn, fn
			p.Add = func(ctx context.Context, r *request) (*cni.Result, error) { return &cni.Result{}, fn(ctx, r) }
			e := run(p, environment(command), network("1.1.0")).failed(t)
			assert.Equal(t, cni.CodeTryAgain, e.Code)
			assert.Equal(t, fmt.Sprintf("plugin %q %s: later", "pool", command), e.Msg)
		})
	}
}

func TestDelegateAdd(t *testing.T) {
	failing := errors.New("the rest of the ADD failed")
	for name, c := range map[string]struct {
		answer func(cni.Command) ([]byte, error)
		then   error // of the handler, after a successful ADD
		calls  []string
		code   cni.Code
		want   string
	}{
		"success":                       {success, nil, []string{"ADD pool"}, 0, ""},
		"undone when the handler fails": {success, failing, []string{"ADD pool", "DEL pool"}, cni.CodeInternal, failing.Error()},
		"failure is followed by DEL": {func(c cni.Command) ([]byte, error) {
			return nil, cni.Errorf(cni.CodeNotAvailable, "empty pool")
		}, nil, []string{"ADD pool", "DEL pool"}, cni.CodeNotAvailable, "empty pool"},
		"a missing plugin has nothing to delete": {func(cni.Command) ([]byte, error) {
			return nil, fmt.Errorf("x: %w", cni.ErrPluginNotFound)
		}, nil, []string{"ADD pool"}, cni.CodeInvalidConfig, "plugin not found"},
		"null is no result": {func(cni.Command) ([]byte, error) { return []byte("null"), nil }, nil,
			[]string{"ADD pool", "DEL pool"}, cni.CodeDecode, "the document: is null, want an object"},
		"nothing is no result": {func(cni.Command) ([]byte, error) { return nil, nil }, nil,
			[]string{"ADD pool", "DEL pool"}, cni.CodeDecode, "the document: is empty"},
		"junk is no result": {func(cni.Command) ([]byte, error) { return []byte(`{"ips":[{}]}`), nil }, nil,
			[]string{"ADD pool", "DEL pool"}, cni.CodeDecode, "ips[0].address"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{t: t, answer: c.answer}
			p := testPlugin()
			p.Delegates = s
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			p.Add = func(ctx context.Context, r *request) (*cni.Result, error) {
				result, err := r.Delegate("pool").Add(ctx)
				if c.then != nil {
					cancel() // the undo must not care
					return nil, errors.Join(c.then, cni.Errorf(cni.CodeInternal, "and"))
				}
				return result, err
			}
			a := runContext(ctx, p, environment("ADD"), strings.NewReader(network("1.0.0")))
			assert.Equal(t, c.calls, s.calls)
			if c.code == 0 {
				a.succeeded(t, `{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.5/24"}]}`)
				return
			}
			e := a.failed(t)
			assert.Equal(t, c.code, e.Code)
			assert.Contains(t, e.Msg, c.want)
		})
	}
}

func TestDelegateAddCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &scripted{t: t, answer: func(command cni.Command) ([]byte, error) {
		if command == cni.CommandAdd {
			cancel()
			return nil, ctx.Err()
		}
		return nil, nil
	}}
	p := testPlugin()
	p.Delegates = s
	p.Add = func(ctx context.Context, r *request) (*cni.Result, error) { return r.Delegate("pool").Add(ctx) }
	e := runContext(ctx, p, environment("ADD"), strings.NewReader(network("1.0.0"))).failed(t)
	assert.Equal(t, cni.CodeTryAgain, e.Code)
	assert.Equal(t, []string{"ADD pool", "DEL pool"}, s.calls, "scripted checks that the DEL could run")
}

func TestDelegateAddThatCannotBeUndone(t *testing.T) {
	for name, fails := range map[string]bool{"the DEL fails": true, "the DEL succeeds": false} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{t: t, answer: func(command cni.Command) ([]byte, error) {
				if command == cni.CommandAdd {
					return nil, cni.Errorf(cni.CodeNotAvailable, "empty pool")
				}
				if fails {
					return nil, cni.Errorf(cni.CodeIO, "stuck")
				}
				return nil, nil
			}}
			p := testPlugin()
			p.Delegates = s
			p.Add = func(ctx context.Context, r *request) (*cni.Result, error) { return r.Delegate("pool").Add(ctx) }
			a := run(p, environment("ADD"), network("1.0.0"))
			e := a.failed(t)
			assert.Equal(t, cni.CodeNotAvailable, e.Code)
			assert.Equal(t, `plugin "pool" ADD: empty pool`, e.Msg, "the first error is the one reported")
			if !fails {
				assert.Empty(t, e.Details)
				assert.NotContains(t, a.stderr, "undo failed")
				return
			}
			assert.Equal(t, `undo ADD of plugin pool: plugin "pool" DEL: stuck`, e.Details)
			assert.Contains(t, a.stderr, "undo failed")
		})
	}
}

func TestDelegateName(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", `a\b`, "../bridge"} {
		s := &scripted{t: t, answer: success}
		p := testPlugin()
		p.Delegates = s
		p.Del = func(ctx context.Context, r *request) error { return r.Delegate(name).Del(ctx) }
		e := run(p, environment("DEL"), network("1.0.0")).failed(t)
		assert.Equal(t, cni.CodeInvalidConfig, e.Code)
		assert.Contains(t, e.Msg, fmt.Sprintf("type of a delegate: %q", name))
		assert.Empty(t, s.calls)
	}
}

func TestDelegateIsFoundInPathByDefault(t *testing.T) {
	p := testPlugin()
	p.Del = func(ctx context.Context, r *request) error { return r.Delegate("pool").Del(ctx) }
	e := run(p, environment("DEL"), network("1.0.0")).failed(t)
	assert.Contains(t, e.Msg, "plugin not found: it is in no directory of CNI_PATH")

	bare := &request{} // as a unit test of a handler function makes it
	assert.ErrorIs(t, bare.Delegate("pool").Del(context.Background()), cni.ErrPluginNotFound)
}

func TestExecutors(t *testing.T) {
	ctx := context.Background()
	pool := cni.Builtin{"pool": testPlugin().Handler()}
	inv := cni.Invocation{Command: cni.CommandStatus, Config: []byte(network("1.1.0"))}

	_, err := pool.Execute(ctx, "pool", inv)
	require.NoError(t, err)
	_, err = pool.Execute(ctx, "other", inv)
	require.ErrorIs(t, err, cni.ErrPluginNotFound)
	_, err = cni.Executors(nil).Execute(ctx, "pool", inv)
	require.ErrorIs(t, err, cni.ErrPluginNotFound)

	t.Run("the first that has the plugin decides", func(t *testing.T) {
		refuse := &scripted{t: t, answer: func(cni.Command) ([]byte, error) { return nil, cni.Errorf(cni.CodeIO, "refused") }}
		never := &scripted{t: t, answer: success}
		_, err := cni.Executors{cni.Builtin{}, refuse, never}.Execute(ctx, "pool", inv)
		assert.ErrorContains(t, err, "refused")
		assert.Empty(t, never.calls)
	})
	t.Run("nobody has it: the last explains", func(t *testing.T) {
		_, err := cni.Executors{pool, cni.Exec{}}.Execute(ctx, "other", inv)
		assert.ErrorContains(t, err, "CNI_PATH is empty")
	})
}

func TestMissingDelegateOfAPluginThatRan(t *testing.T) {
	p := testPlugin()
	p.Delegates = cni.Builtin{}
	p.Add = func(ctx context.Context, r *request) (*cni.Result, error) { return r.Delegate("pool").Add(ctx) }
	builtin := cni.Builtin{"test": p.Handler(), "own": missing{}}
	inv := cni.Invocation{
		Command: cni.CommandAdd, ContainerID: "c1", NetNS: ownNetNS, IfName: "eth0", Config: []byte(network("1.1.0")),
	}
	for _, plugin := range []string{"test", "own"} {
		t.Run(plugin+"/is not the plugin asked for", func(t *testing.T) {
			next := &scripted{t: t, answer: success}
			_, err := cni.Executors{builtin, next}.Execute(context.Background(), plugin, inv)
			require.NotErrorIs(t, err, cni.ErrPluginNotFound)
			var e *cni.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, cni.CodeInvalidConfig, e.Code)
			assert.Contains(t, e.Msg, "plugin not found")
			assert.Empty(t, next.calls, "another plugin must not answer for one that ran")
		})
	}
	t.Run("nor to who calls the handler itself", func(t *testing.T) {
		_, err := p.Handler().Handle(context.Background(), inv)
		require.ErrorContains(t, err, "plugin not found")
		assert.NotErrorIs(t, err, cni.ErrPluginNotFound)
	})
	t.Run("a delegate that ran is deleted", func(t *testing.T) {
		var commands []cni.Command
		p := p
		p.Del = func(_ context.Context, r *request) error {
			commands = append(commands, r.Command)
			return nil
		}
		outer := testPlugin()
		outer.Delegates = cni.Builtin{"test": p.Handler()}
		outer.Add = func(ctx context.Context, r *request) (*cni.Result, error) { return r.Delegate("test").Add(ctx) }
		_, err := outer.Handler().Handle(context.Background(), inv)
		require.ErrorContains(t, err, "plugin not found")
		assert.Equal(t, []cni.Command{cni.CommandDel}, commands)
	})
}

// missing is a handler that is not a [cni.Plugin].
type missing struct{}

func (missing) Handle(context.Context, cni.Invocation) ([]byte, error) {
	return nil, cni.AsError(fmt.Errorf("delegate: %w", cni.ErrPluginNotFound))
}
