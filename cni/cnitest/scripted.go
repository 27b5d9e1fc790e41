package cnitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnikit/cnikit/cni"
)

// Scripted is a plugin that answers as it is told and records what it was asked: the
// delegate of a plugin under test, or a plugin for a runtime under test. It is a
// [cni.Handler], for a [cni.Builtin]; [Scripted.Install] makes it an executable. It is
// safe for concurrent use, but for changes of Replies.
type Scripted struct {
	// Replies are the answers by command. Without one, VERSION is answered with all
	// versions, ADD with an error, and every other command succeeds.
	Replies map[cni.Command]Reply

	mu    sync.Mutex
	calls []Call
	home  string // of the executable, "" without one
}

// Reply is one answer.
type Reply struct {
	Stdout string        // the document; whatever else shall be printed for an executable
	Stderr string        // of an executable
	Exit   int           // exit status; a handler reports Stdout as error if it is not 0
	Delay  time.Duration // before the answer
	First  string        // shell command that an executable runs before it answers, such as the real plugin
}

// Call is one call that was recorded.
type Call struct {
	Command cni.Command
	Env     []string // "KEY=value", all that the process had
	Stdin   []byte
}

// Getenv returns the value of a variable of the call.
func (c Call) Getenv(key string) (string, bool) {
	for _, entry := range c.Env {
		if value, ok := strings.CutPrefix(entry, key+"="); ok {
			return value, true
		}
	}
	return "", false
}

var _ cni.Handler = (*Scripted)(nil)

// Handle implements [cni.Handler].
func (s *Scripted) Handle(ctx context.Context, inv cni.Invocation) ([]byte, error) {
	s.mu.Lock()
	s.calls = append(s.calls, Call{Command: inv.Command, Env: environOf(inv), Stdin: slices.Clone(inv.Config)})
	s.mu.Unlock()
	reply := s.reply(inv.Command)
	select {
	case <-ctx.Done():
		return nil, cni.AsError(ctx.Err())
	case <-time.After(reply.Delay):
	}
	if reply.Exit == 0 {
		return []byte(reply.Stdout), nil
	}
	var e cni.Error
	if err := json.Unmarshal([]byte(reply.Stdout), &e); err != nil {
		return nil, cni.Errorf(cni.CodeInternal, "exit status %d: %s", reply.Exit, reply.Stdout)
	}
	return nil, &e
}

func environOf(inv cni.Invocation) []string {
	env := slices.Clone(inv.Env)
	for key, value := range map[string]string{
		"CNI_COMMAND": string(inv.Command), "CNI_CONTAINERID": inv.ContainerID, "CNI_NETNS": inv.NetNS,
		"CNI_IFNAME": inv.IfName, "CNI_ARGS": inv.Args, "CNI_PATH": strings.Join(inv.Path, string(os.PathListSeparator)),
	} {
		if value != "" {
			env = append(env, key+"="+value)
		}
	}
	slices.Sort(env)
	return env
}

func (s *Scripted) reply(command cni.Command) Reply {
	reply, ok := s.Replies[command]
	switch {
	case ok:
		return reply
	case command == cni.CommandVersion:
		doc, _ := json.Marshal(map[string]any{"cniVersion": "1.1.0", "supportedVersions": cni.SupportedVersions()}) // strings
		return Reply{Stdout: string(doc)}
	case command == cni.CommandAdd:
		return Reply{Stdout: `{"cniVersion": "1.0.0", "code": 100, "msg": "no reply to ADD is scripted"}`, Exit: 1}
	}
	return Reply{}
}

// Calls returns the calls so far, those of the executable in the order of their begin.
func (s *Scripted) Calls() ([]Call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := slices.Clone(s.calls)
	for i := 0; s.home != ""; i++ {
		dir := filepath.Join(s.home, "calls", fmt.Sprint(i))
		env, err := os.ReadFile(filepath.Join(dir, "env"))
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read recorded call: %w", err)
		}
		stdin, err := os.ReadFile(filepath.Join(dir, "stdin"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read recorded call: %w", err)
		}
		call := Call{Env: strings.Split(strings.TrimRight(string(env), "\x00"), "\x00"), Stdin: stdin}
		command, _ := call.Getenv("CNI_COMMAND")
		call.Command = cni.Command(command)
		calls = append(calls, call)
	}
	return calls, nil
}
