//go:build unix

package cni_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// patience is how long a test waits for what takes a moment, or for the rest of what must
// not take for ever.
const patience = 30 * time.Second

// script makes an executable shell script and returns its directory.
func script(t *testing.T, name, body string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o700))
	return dir
}

func invocation(command cni.Command, dirs ...string) cni.Invocation {
	return cni.Invocation{
		Command: command, ContainerID: "c1", NetNS: "/run/netns/a", IfName: "eth0",
		Path: dirs, Config: []byte(network("1.0.0")), Env: []string{"PATH=" + os.Getenv("PATH")},
	}
}

func TestExecPassesTheRequestAndNothingElse(t *testing.T) {
	t.Setenv("SECRET", "1")
	ctx, search := context.Background(), "PATH="+os.Getenv("PATH")
	dir := script(t, "p", `printf '{"env":"%s","stdin":%s}' "$(env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= | sort | tr '\n' ' ')" "$(cat)"`)
	inv := invocation(cni.CommandAdd, dir)
	inv.Args = "A=1"
	inv.Env = append(inv.Env, "OTHER=1", "CNI_NETNS=/wrong", "CNI_FUTURE=2")
	inv.Path = append(inv.Path, "/second")
	out, err := cni.Exec{}.Execute(ctx, "p", inv)
	require.NoError(t, err)
	want := strings.Join([]string{
		"CNI_ARGS=A=1", "CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "CNI_FUTURE=2", "CNI_IFNAME=eth0",
		"CNI_NETNS=/run/netns/a", "CNI_PATH=" + dir + ":/second", "OTHER=1", search, "",
	}, " ")
	assert.Equal(t, `{"env":"`+want+`","stdin":`+network("1.0.0")+`}`, string(out))

	// What a command has no value for is not there at all, not even from Env.
	out, err = cni.Exec{}.Execute(ctx, "p", cni.Invocation{
		Command: cni.CommandVersion, Path: []string{dir}, Config: []byte(`{}`), Env: []string{"CNI_IFNAME=eth9", search},
	})
	require.NoError(t, err)
	assert.Equal(t, `{"env":"CNI_COMMAND=VERSION CNI_PATH=`+dir+` `+search+` ","stdin":{}}`, string(out))
}

func TestExecFind(t *testing.T) {
	ctx := context.Background()
	good := script(t, "p", `echo '{"found":"good"}'`)
	plain := script(t, "p", `echo '{"found":"plain"}'`)
	require.NoError(t, os.Chmod(filepath.Join(plain, "p"), 0o600))
	directory := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(directory, "p"), 0o700))

	t.Run("what cannot be executed is passed over", func(t *testing.T) {
		out, err := cni.Exec{}.Execute(ctx, "p", invocation(cni.CommandAdd, "/nowhere", directory, plain, good))
		require.NoError(t, err)
		assert.Equal(t, `{"found":"good"}`, string(out))
	})
	t.Run("a relative directory is one, not $PATH", func(t *testing.T) {
		t.Chdir(good)
		out, err := cni.Exec{}.Execute(ctx, "p", invocation(cni.CommandAdd, "."))
		require.NoError(t, err)
		assert.Equal(t, `{"found":"good"}`, string(out))
		_, err = cni.Exec{}.Execute(ctx, "sh", invocation(cni.CommandAdd, "."))
		assert.ErrorIs(t, err, cni.ErrPluginNotFound)
	})
	for name, c := range map[string]struct {
		dirs []string
		want string
	}{
		"not executable": {[]string{plain}, filepath.Join(plain, "p") + " is not executable"},
		"a directory":    {[]string{directory}, "in no directory of CNI_PATH (" + directory + ")"},
		"nowhere":        {[]string{"/nowhere"}, "in no directory of CNI_PATH (/nowhere)"},
		"no path":        {nil, "CNI_PATH is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cni.Exec{}.Execute(ctx, "p", invocation(cni.CommandAdd, c.dirs...))
			require.ErrorIs(t, err, cni.ErrPluginNotFound)
			assert.ErrorContains(t, err, c.want)
		})
	}
	t.Run("a path is no type", func(t *testing.T) {
		_, err := cni.Exec{}.Execute(ctx, "../"+filepath.Base(good)+"/p", invocation(cni.CommandAdd, good))
		assert.ErrorContains(t, err, "path characters are not allowed")
		assert.NotErrorIs(t, err, cni.ErrPluginNotFound)
	})
}

func TestExecVerdict(t *testing.T) {
	const document = `{"cniVersion":"1.0.0","code":11,"msg":"later","details":"d"}`
	received := &cni.Error{CNIVersion: "1.0.0", Code: cni.CodeTryAgain, Msg: "later", Details: "d"}
	for name, c := range map[string]struct {
		command cni.Command
		body    string
		out     string
		err     *cni.Error // received as it is
		code    cni.Code
		want    []string // parts of an error that Exec makes
		log     string
	}{
		"add/result":                     {command: "ADD", body: `echo ' {"a":1} '`, out: `{"a":1}`},
		"add/stdin need not be read":     {command: "ADD", body: `exec <&-; echo '{}'`, out: `{}`},
		"add/null":                       {command: "ADD", body: `echo null`, code: cni.CodeDecode, want: []string{`plugin "p": read its result: the document: is null`}},
		"add/nothing":                    {command: "ADD", body: `:`, code: cni.CodeDecode, want: []string{"is empty, want an object"}},
		"add/noise before the result":    {command: "ADD", body: `echo hello; echo '{}'`, code: cni.CodeDecode, want: []string{"is not JSON"}},
		"add/result and error":           {command: "ADD", body: `echo '{}'; echo '` + document + `'`, code: cni.CodeDecode, want: []string{"is not JSON"}},
		"add/error document":             {command: "ADD", body: `echo '` + document + `'; exit 1`, err: received},
		"add/error document, but exit 0": {command: "ADD", body: `echo '` + document + `'`, err: received},
		"add/a result may have a msg":    {command: "ADD", body: `echo '{"msg":"x"}'`, out: `{"msg":"x"}`},
		"add/nor is a code an error":     {command: "ADD", body: `echo '{"code":5}'`, out: `{"code":5}`},
		"add/message without a code":     {command: "ADD", body: `echo '{"msg":"no"}'; exit 1`, err: &cni.Error{Msg: "no"}},
		"add/exit code, result":          {command: "ADD", body: `echo '{"ips":[]}'; exit 3`, code: cni.CodeInternal, want: []string{"exit status 3 without an error document", `standard output: {"ips":[]}`}},
		"add/exit code, silent":          {command: "ADD", body: `exit 3`, code: cni.CodeInternal, want: []string{`execute plugin "p": exit status 3`}},
		"add/crash":                      {command: "ADD", body: `echo 'panic: boom' >&2; exit 2`, code: cni.CodeInternal, want: []string{"exit status 2", "standard error: panic: boom"}},
		"add/killed by a signal":         {command: "ADD", body: `kill -9 $$`, code: cni.CodeInternal, want: []string{"signal: killed"}},
		"version/result":                 {command: "VERSION", body: `echo '{"a":1}'`, out: `{"a":1}`},
		"del/silence":                    {command: "DEL", body: `:`},
		"del/noise is logged":            {command: "DEL", body: `echo hello`, log: "output=hello"},
		"del/error document":             {command: "DEL", body: `echo '` + document + `'; exit 1`, err: received},
		"del/error document, but exit 0": {command: "DEL", body: `echo '` + document + `'`, err: received},
		"status/code without a message":  {command: "STATUS", body: `echo '{"code":50}'; exit 1`, err: &cni.Error{Code: 50}},
	} {
		t.Run(name, func(t *testing.T) {
			var log, stderr bytes.Buffer
			inv := invocation(c.command, script(t, "p", c.body))
			inv.Log = slog.New(slog.NewTextHandler(&log, nil))
			out, err := cni.Exec{Stderr: &stderr}.Execute(context.Background(), "p", inv)
			assert.Equal(t, c.out, string(out))
			assert.Contains(t, log.String(), c.log)
			assert.Equal(t, c.log == "", log.Len() == 0, "%s", &log)
			if c.err == nil && c.want == nil {
				require.NoError(t, err)
				return
			}
			var e *cni.Error
			require.ErrorAs(t, err, &e)
			if c.err != nil {
				assert.Equal(t, c.err, e)
				return
			}
			assert.Equal(t, c.code, e.Code)
			for _, part := range c.want {
				assert.Contains(t, e.Error(), part)
			}
			if !strings.Contains(c.body, "echo") {
				assert.Empty(t, e.Details, "it said nothing")
			}
		})
	}
}

// A plugin that got SIGTERM and still was done has done what it was asked for.
func TestExecSucceedsThoughItsContextEnded(t *testing.T) {
	dir := script(t, "p", `trap 'echo "{\"done\":true}"; exit 0' TERM; : >$READY; while :; do sleep 0.05; done`)
	inv := invocation(cni.CommandAdd, dir)
	ready := filepath.Join(dir, "ready")
	inv.Env = append(inv.Env, "READY="+ready)
	ctx, cancelled := cancelWhenReady(t, ready)
	out, err := cni.Exec{Grace: time.Minute}.Execute(ctx, "p", inv)
	cancelled()
	require.NoError(t, err)
	assert.Equal(t, `{"done":true}`, string(out))
}

func TestExecStderr(t *testing.T) {
	t.Run("is passed on as it comes, and its end is kept", func(t *testing.T) {
		var stderr bytes.Buffer
		dir := script(t, "p", `i=0; while [ $i -lt 300 ]; do echo "line $i of many" >&2; i=$((i+1)); done; exit 1`)
		start := time.Now()
		_, err := cni.Exec{Stderr: &stderr, Grace: 2 * patience}.Execute(context.Background(), "p", invocation(cni.CommandDel, dir))
		assert.Less(t, time.Since(start), patience, "nothing is waited for when all is written")
		assert.Equal(t, 300, strings.Count(stderr.String(), "\n"))
		var e *cni.Error
		require.ErrorAs(t, err, &e)
		assert.True(t, strings.HasSuffix(e.Details, "line 299 of many"))
		assert.NotContains(t, e.Details, "line 0 of many")
		assert.Less(t, len(e.Details), 3000)
	})
	t.Run("a writer that fails does not fail the plugin", func(t *testing.T) {
		dir := script(t, "p", `echo a >&2; echo b >&2`)
		_, err := cni.Exec{Stderr: brokenWriter{}}.Execute(context.Background(), "p", invocation(cni.CommandDel, dir))
		assert.NoError(t, err)
	})
}

func TestExecStart(t *testing.T) {
	t.Run("no program", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "p"), []byte{0x7f, 'E', 'L', 'F'}, 0o700))
		_, err := cni.Exec{}.Execute(context.Background(), "p", invocation(cni.CommandDel, dir))
		require.ErrorIs(t, err, syscall.ENOEXEC)
		assert.NotErrorIs(t, err, cni.ErrPluginNotFound, "it is there; the next executor must not hide that")
	})
	t.Run("the interpreter is missing", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "p"), []byte("#!/nowhere/sh\n"), 0o700))
		_, err := cni.Exec{}.Execute(context.Background(), "p", invocation(cni.CommandDel, dir))
		require.ErrorIs(t, err, os.ErrNotExist)
		assert.NotErrorIs(t, err, cni.ErrPluginNotFound)
	})
	t.Run("the context has ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		ran := filepath.Join(t.TempDir(), "ran")
		_, err := cni.Exec{}.Execute(ctx, "p", invocation(cni.CommandDel, script(t, "p", "touch "+ran)))
		require.ErrorIs(t, err, context.Canceled)
		assert.NoFileExists(t, ran)
	})
}

func TestExecContext(t *testing.T) {
	// Each script writes its process ID, and those of its children, into the file $PIDS,
	// and opens $READY when it wants to be cancelled.
	const wait = `: >$READY; while :; do sleep 0.05; done`
	const long, short = time.Minute, 200 * time.Millisecond
	for name, c := range map[string]struct {
		body  string
		grace time.Duration
		want  string
	}{
		"SIGTERM is enough for most": {
			`echo $$ >>$PIDS; ` + wait, long, "signal: terminated",
		},
		"SIGTERM lets the plugin report": {
			`trap 'echo "{\"code\":11,\"msg\":\"unwound\"}"; exit 1' TERM; echo $$ >>$PIDS; ` + wait, long, "unwound",
		},
		"Grace is the time to report": {
			`trap 'sleep 1.3; echo "{\"code\":11,\"msg\":\"unwound\"}"; exit 1' TERM; echo $$ >>$PIDS; ` + wait, long, "unwound",
		},
		"SIGKILL follows": {
			`trap '' TERM; echo $$ >>$PIDS; ` + wait, short, "signal: killed",
		},
		"the whole group is ended": {
			`(trap '' TERM; while :; do sleep 0.05; done) & echo $! >>$PIDS; echo $$ >>$PIDS; ` + wait, short, "signal: terminated",
		},
		"a grandchild that left the group and holds stdout does not keep Execute": {
			`setsid sh -c 'echo $$ >$AWAY; exec sleep 1000' & while [ ! -s $AWAY ]; do :; done; echo $$ >>$PIDS; ` + wait, short, "signal: terminated",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := script(t, "p", c.body)
			pids, away := filepath.Join(dir, "pids"), filepath.Join(dir, "away")
			inv := invocation(cni.CommandAdd, dir)
			ready := filepath.Join(dir, "ready")
			inv.Env = append(inv.Env, "PIDS="+pids, "AWAY="+away, "READY="+ready)
			ctx, cancelled := cancelWhenReady(t, ready)
			_, err := cni.Exec{Grace: c.grace}.Execute(ctx, "p", inv)
			took := time.Since(cancelled())
			killListed(t, away)
			require.ErrorIs(t, err, context.Canceled)
			assert.ErrorContains(t, err, c.want)
			assert.Equal(t, cni.CodeTryAgain, cni.AsError(err).Code)
			assert.Less(t, took, patience)
			left := listed(t, pids)
			require.NotEmpty(t, left)
			for _, pid := range left {
				assert.Eventually(t, func() bool { return gone(pid) }, patience, 10*time.Millisecond, "process %d is left", pid)
			}
		})
	}
}

// cancelWhenReady returns a context that is cancelled once a plugin opens the FIFO at
// path for writing, and a function that tells when that was.
func cancelWhenReady(t *testing.T, path string) (context.Context, func() time.Time) {
	t.Helper()
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	at := make(chan time.Time, 1)
	go func() {
		fifo, err := os.Open(path)
		assert.NoError(t, err)
		fifo.Close()
		at <- time.Now()
		cancel()
	}()
	return ctx, func() time.Time { return <-at }
}

func listed(t *testing.T, path string) (pids []int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	for field := range strings.FieldsSeq(string(data)) {
		pid, err := strconv.Atoi(field)
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}

func killListed(t *testing.T, path string) {
	t.Helper()
	for _, pid := range listed(t, path) {
		assert.NoError(t, syscall.Kill(pid, syscall.SIGKILL), "the grandchild should live on, it left the group")
	}
}

// gone reports whether a process has ended, though its parent may not have noticed.
func gone(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ") || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func TestExecChildThatStays(t *testing.T) {
	const body = `(i=0; while [ ! -e $GO ] && [ $i -lt 3000 ]; do sleep 0.02; i=$((i+1)); done; : >$DONE) & echo '{"done":true}'`
	for name, x := range map[string]cni.Exec{"with little time": {Grace: 100 * time.Millisecond}, "by default": {}} {
		t.Run(name, func(t *testing.T) {
			dir := script(t, "p", body)
			goOn, done := filepath.Join(dir, "go"), filepath.Join(dir, "done")
			inv := invocation(cni.CommandAdd, dir)
			inv.Env = append(inv.Env, "GO="+goOn, "DONE="+done)
			start := time.Now()
			out, err := x.Execute(context.Background(), "p", inv)
			require.NoError(t, err)
			assert.Equal(t, `{"done":true}`, string(out))
			assert.Less(t, time.Since(start), patience)
			require.NoError(t, os.WriteFile(goOn, nil, 0o600))
			assert.Eventually(t, func() bool { _, err := os.Stat(done); return err == nil }, patience, 10*time.Millisecond,
				"a daemon that a plugin starts is not ours to end")
		})
	}
}

func TestExecStderrThatBlocks(t *testing.T) {
	const grace = 200 * time.Millisecond
	for name, c := range map[string]struct {
		body string
		want error
	}{
		"when the context ends":   {`echo hello >&2; exec sleep 1000`, context.DeadlineExceeded},
		"when the plugin is done": {`echo hello >&2`, nil},
		"when its pipe is full":   {`while :; do echo hello >&2; done`, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := time.Minute
			if c.want != nil {
				timeout = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			reader, writer := io.Pipe() // nobody reads
			defer reader.Close()
			inv := invocation(cni.CommandDel, script(t, "p", c.body))
			done := make(chan error, 1)
			go func() {
				_, err := cni.Exec{Stderr: writer, Grace: grace}.Execute(ctx, "p", inv)
				done <- err
			}()
			select {
			case err := <-done:
				require.ErrorIs(t, err, c.want)
			case <-time.After(patience):
				assert.Fail(t, "Execute waits for the writer")
			}
		})
	}
	t.Run("what was written is kept for the error", func(t *testing.T) {
		reader, writer := io.Pipe()
		defer reader.Close()
		inv := invocation(cni.CommandDel, script(t, "p", `echo broken >&2; exit 1`))
		done := make(chan error, 1)
		go func() {
			_, err := cni.Exec{Stderr: writer, Grace: time.Second}.Execute(context.Background(), "p", inv)
			done <- err
		}()
		select {
		case err := <-done:
			require.ErrorContains(t, err, "standard error: broken")
		case <-time.After(patience):
			assert.Fail(t, "Execute waits for the writer")
		}
	})
}
