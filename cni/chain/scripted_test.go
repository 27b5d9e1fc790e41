package chain

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

const (
	scriptedPrefix = "scripted-"
	// promptExit keeps the race detector from sleeping for a second at the end of each executed plugin.
	promptExit = "GORACE=atexit_sleep_ms=0"
)

// script is how a plugin of a test answers, by command. Without an entry it succeeds: an ADD prints prevResult with a mark of its own.
type script map[cni.Command]reply

type reply struct {
	Print string // instead of the default
	Code  cni.Code
	Msg   string // with Code: an error
	Err   error  `json:"-"` // what the error wraps, in process
}

// seen is one invocation as a plugin received it.
type seen struct {
	Plugin string
	Inv    cni.Invocation
	Env    []string // the whole environment, executed plugins only
}

func (c seen) String() string {
	return string(c.Inv.Command) + " " + strings.TrimPrefix(c.Plugin, scriptedPrefix)
}

func (c seen) config(t testing.TB) object {
	t.Helper()
	o, err := parseDocument(c.Inv.Config)
	require.NoError(t, err)
	return o
}

// key returns a value of the request, "" when it is absent.
func (c seen) key(t testing.TB, key string) string {
	t.Helper()
	for _, m := range c.config(t) {
		if m.key == key {
			return string(m.value)
		}
	}
	return ""
}

func (s script) answer(c seen) (string, *cni.Error) {
	r := s[c.Inv.Command]
	switch {
	case r.Err != nil:
		return "", cni.Errorf(r.Code, "%w", r.Err)
	case r.Msg != "":
		return "", cni.Errorf(r.Code, "%s", r.Msg)
	case r.Print != "" || c.Inv.Command != cni.CommandAdd:
		return r.Print, nil
	}
	config, err := parseDocument(c.Inv.Config)
	if err != nil {
		return "", cni.Errorf(cni.CodeDecode, "%w", err)
	}
	version, _ := config.get("cniVersion")
	result := object{{"cniVersion", version}, {"ips", json.RawMessage(`[{"address":"10.0.0.2/24"}]`)}}
	if previous, ok := config.get("prevResult"); ok {
		if result, err = parseDocument(previous); err != nil {
			return "", cni.Errorf(cni.CodeDecode, "%w", err)
		}
	}
	mark := "x-" + strings.TrimPrefix(c.Plugin, scriptedPrefix)
	return string(result.with(mark, json.RawMessage(`12345678901234567890.0`)).encode()), nil
}

// kit is a runner with scripted plugins, in process or executed, and what they saw.
type kit struct {
	Runner
	t   testing.TB
	dir string // of executables; empty in process

	mu    sync.Mutex
	calls []seen
}

// newKit makes the plugins; their types are the keys with scriptedPrefix in front.
func newKit(t testing.TB, executed bool, plugins map[string]script) *kit {
	t.Helper()
	k := &kit{t: t}
	k.CacheDir = filepath.Join(t.TempDir(), "cache")
	if executed {
		k.dir = t.TempDir()
		k.Path = []string{k.dir}
		k.Env = []string{"PATH=" + os.Getenv("PATH"), promptExit}
		for name, s := range plugins {
			k.install(scriptedPrefix+name, s)
		}
		return k
	}
	builtin := cni.Builtin{}
	for name, s := range plugins {
		builtin[scriptedPrefix+name] = handler{k, scriptedPrefix + name, s}
	}
	k.Executor = builtin
	return k
}

func (k *kit) install(name string, s script) {
	k.t.Helper()
	self, err := os.Executable()
	require.NoError(k.t, err)
	require.NoError(k.t, os.Symlink(self, filepath.Join(k.dir, name)))
	data, err := json.Marshal(s)
	require.NoError(k.t, err)
	require.NoError(k.t, os.WriteFile(filepath.Join(k.dir, name+".script"), data, 0o600))
}

// seen returns the invocations so far.
func (k *kit) seen() []seen {
	k.t.Helper()
	if k.dir == "" {
		k.mu.Lock()
		defer k.mu.Unlock()
		return append([]seen(nil), k.calls...)
	}
	data, err := os.ReadFile(filepath.Join(k.dir, "calls"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(k.t, err)
	var calls []seen
	for line := bufio.NewScanner(bytes.NewReader(data)); line.Scan(); {
		var c seen
		require.NoError(k.t, json.Unmarshal(line.Bytes(), &c))
		calls = append(calls, c)
	}
	return calls
}

// order returns the invocations so far as "ADD a", and forgets them.
func (k *kit) order() []string {
	k.t.Helper()
	order := []string{}
	for _, c := range k.seen() {
		order = append(order, c.String())
	}
	k.forget()
	return order
}

func (k *kit) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls = nil
	if k.dir != "" {
		_ = os.Remove(filepath.Join(k.dir, "calls"))
	}
}

type handler struct {
	kit  *kit
	name string
	script
}

var _ cni.Handler = handler{}

func (h handler) Handle(_ context.Context, inv cni.Invocation) ([]byte, error) {
	c := seen{Plugin: h.name, Inv: inv}
	h.kit.mu.Lock()
	h.kit.calls = append(h.kit.calls, c)
	h.kit.mu.Unlock()
	out, err := h.answer(c)
	if err != nil {
		return nil, err
	}
	return []byte(out), nil
}

// callFromProcess reads the invocation of an executed plugin.
func callFromProcess(name string) (seen, error) {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return seen{}, fmt.Errorf("read standard input: %w", err)
	}
	return seen{Plugin: name, Env: os.Environ(), Inv: cni.Invocation{
		Command:     cni.Command(os.Getenv("CNI_COMMAND")),
		ContainerID: os.Getenv("CNI_CONTAINERID"),
		NetNS:       os.Getenv("CNI_NETNS"),
		IfName:      os.Getenv("CNI_IFNAME"),
		Args:        os.Getenv("CNI_ARGS"),
		Path:        filepath.SplitList(os.Getenv("CNI_PATH")),
		Config:      stdin,
	}}, nil
}

func (c seen) appendTo(path string) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = f.Write(append(data, '\n'))
	return err
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// conflist makes a list called "net" of scripted plugins.
func conflist(t testing.TB, version string, plugins ...string) *List {
	t.Helper()
	var entries []string
	for _, p := range plugins {
		entries = append(entries, fmt.Sprintf(`{"type":%q}`, scriptedPrefix+p))
	}
	return parsed(t, fmt.Sprintf(`{"cniVersion":%q,"name":"net","plugins":[%s]}`, version, strings.Join(entries, ",")))
}

func parsed(t testing.TB, text string) *List {
	t.Helper()
	l, err := Parse([]byte(text))
	require.NoError(t, err)
	return l
}

// pod is the attachment of most tests.
func pod() Attachment { return Attachment{ContainerID: "c1", NetNS: "/run/netns/c1", IfName: "eth0"} }

// both runs a test with plugins in process and with executed ones.
func both(t *testing.T, test func(t *testing.T, executed bool)) {
	t.Run("builtin", func(t *testing.T) { test(t, false) })
	t.Run("exec", func(t *testing.T) { test(t, true) })
}
