package cni_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// loggedConfig lets the operator choose, as the documentation of LogOptions shows.
type loggedConfig struct {
	Log cni.LogOptions `json:"log"`
	MTU int            `json:"mtu"`
}

// logged is a plugin that fails as told.
func logged(fail error) cni.Plugin[loggedConfig] {
	fn := func(_ context.Context, r *cni.Request[loggedConfig]) error {
		r.Log.Debug("looking", "n", 1)
		r.Log.WithGroup("g").With("a", 1).Warn("found", "b", 2)
		return fail
	}
	return cni.Plugin[loggedConfig]{
		Type: "logged", AllowHostNetNS: true,
		Add: func(ctx context.Context, r *cni.Request[loggedConfig]) (*cni.Result, error) {
			return &cni.Result{}, fn(ctx, r)
		},
		Del: fn, Check: fn, Status: fn, GC: fn,
		Log: func(c loggedConfig) cni.LogOptions { return c.Log },
	}
}

// runLogged runs a command with a log file; level is JSON.
func runLogged(t *testing.T, p cni.Plugin[loggedConfig], command, file, level string, members ...string) (answer, string) {
	t.Helper()
	stdin := network("1.1.0", append(members, `"log":{"file":"`+file+`","level":`+level+`}`)...)
	a := runHandler(t.Context(), p.Handler(), environment(command), stdin)
	data, err := os.ReadFile(file)
	if err != nil {
		return a, ""
	}
	return a, string(data)
}

func TestLogFile(t *testing.T) {
	t.Run("gets what standard error gets, and how it ended", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "log")
		a, log := runLogged(t, logged(nil), "ADD", file, `"info"`)
		a.succeeded(t, `{"cniVersion":"1.1.0"}`)
		const attributes = "plugin=logged command=ADD network=lan container=c1 ifname=eth0"
		for _, where := range []string{log, a.stderr} {
			assert.Contains(t, where, "level=WARN msg=found "+attributes+" g.a=1 g.b=2\n")
			assert.NotContains(t, where, "looking")
		}
		assert.Contains(t, log, `level=INFO msg="request served" `+attributes+" took=")
		assert.NotContains(t, a.stderr, "served", "a runtime has its own log")
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	})
	t.Run("its level is its own", func(t *testing.T) {
		dir := t.TempDir()
		a, log := runLogged(t, logged(nil), "DEL", filepath.Join(dir, "debug"), `"debug"`)
		assert.Contains(t, log, "msg=looking")
		assert.NotContains(t, a.stderr, "looking")
		_, log = runLogged(t, logged(nil), "DEL", filepath.Join(dir, "error"), `"error"`)
		assert.Empty(t, log)
	})
	t.Run("gets the error, and appends", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "log")
		for _, command := range []string{"ADD", "DEL", "CHECK", "STATUS", "GC"} {
			a, log := runLogged(t, logged(cni.Errorf(cni.CodeTryAgain, "pool is empty")), command, file, `"info"`)
			assert.Equal(t, cni.CodeTryAgain, a.failed(t).Code)
			last := log[strings.LastIndex(log, "time="):]
			assert.Contains(t, last, `level=ERROR msg="request failed" plugin=logged command=`+command)
			assert.Contains(t, last, `code=11 error="pool is empty"`)
		}
		_, log := runLogged(t, logged(nil), "DEL", file, `"info"`)
		assert.Equal(t, 5, strings.Count(log, "request failed"))
	})
	t.Run("gets what was refused before the handler ran", func(t *testing.T) {
		for want, members := range map[string]string{"mtu=": `"mtu":"x"`, "read prevResult": `"prevResult":1`, "invalid configuration: type": `"type":7`} {
			_, log := runLogged(t, logged(nil), "ADD", filepath.Join(t.TempDir(), "log"), `"info"`, members)
			assert.Contains(t, log, "request failed")
			assert.Contains(t, log, want)
		}
		_, log := runLogged(t, logged(nil), "DEL", filepath.Join(t.TempDir(), "log"), `"info"`, `"mtu":"x"`)
		assert.Contains(t, log, "configuration key is ignored")
	})
	t.Run("gets a panic with its stack", func(t *testing.T) {
		p := logged(nil)
		p.Del = func(context.Context, *cni.Request[loggedConfig]) error { panic("boom") }
		_, log := runLogged(t, p, "DEL", filepath.Join(t.TempDir(), "log"), `"info"`)
		assert.Contains(t, log, "log_test.go")
		assert.Contains(t, log, `error="panic: boom`)
	})
	t.Run("is no matter for VERSION", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "log")
		a, _ := runLogged(t, logged(nil), "VERSION", file, `"info"`)
		assert.Zero(t, a.code)
		assert.NoFileExists(t, file)
	})
}

func TestLogFileThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"relative":        {"log", "the path is not absolute"},
		"a directory":     {os.TempDir(), "it is no regular file, but d"},
		"in no directory": {"/nowhere/log", "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := runLogged(t, logged(nil), "ADD", c.file, `"info"`)
			assert.Zero(t, a.code, "the request is served")
			assert.Contains(t, a.stderr, "there is no log file")
			assert.Contains(t, a.stderr, c.want)
			assert.Contains(t, a.stderr, "msg=found")
		})
	}
	t.Run("the function panics", func(t *testing.T) {
		p := logged(nil)
		p.Log = func(loggedConfig) cni.LogOptions { panic("boom") }
		a := runHandler(t.Context(), p.Handler(), environment("ADD"), network("1.1.0"))
		assert.Zero(t, a.code)
		assert.Contains(t, a.stderr, "there is no log file")
	})
	t.Run("no file is asked for", func(t *testing.T) {
		a := runHandler(t.Context(), logged(nil).Handler(), environment("ADD"), network("1.1.0"))
		assert.Zero(t, a.code)
		assert.NotContains(t, a.stderr, "log file")
	})
}

func TestLogFileIsShared(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	h := logged(errors.New("failed")).Handler()
	config := []byte(network("1.1.0", `"log":{"file":"`+file+`"}`))
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 20 {
				_, err := h.Handle(t.Context(), cni.Invocation{Command: cni.CommandStatus, Config: config})
				assert.Error(t, err)
			}
		})
	}
	all.Wait()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	assert.Len(t, lines, 640)
	for _, line := range lines {
		assert.Equal(t, 1, strings.Count(line, "time="), "%s", line)
	}
}

// A delegate that is linked in logs where its caller does.
func TestLogOfADelegate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	inner := testPlugin()
	inner.Type = "inner"
	inner.Status = func(_ context.Context, r *request) error { r.Log.Info("inside"); return nil }
	p := logged(nil)
	p.Delegates = cni.Builtin{"inner": inner.Handler()}
	p.Status = func(ctx context.Context, r *cni.Request[loggedConfig]) error { return r.Delegate("inner").Status(ctx) }
	_, log := runLogged(t, p, "STATUS", file, `"info"`)
	assert.Contains(t, log, "msg=inside plugin=inner")
}

// The logger of a program that serves requests itself keeps its attributes.
func TestLogOfTheInvocation(t *testing.T) {
	var log bytes.Buffer
	_, err := logged(nil).Handler().Handle(t.Context(), cni.Invocation{
		Command: cni.CommandStatus, Config: []byte(network("1.1.0")), Log: slog.New(slog.NewTextHandler(&log, nil)).With("agent", 7),
	})
	require.NoError(t, err)
	assert.Contains(t, log.String(), "msg=found agent=7 plugin=logged command=STATUS network=lan g.a=1")
}
