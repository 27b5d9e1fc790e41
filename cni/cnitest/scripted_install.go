package cnitest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

// script is the executable. It is one for the shell, and not this program under another
// name, so that a test binary needs no hook to become a plugin. What it was started with
// is read from /proc, as a shell drops variables whose names it does not like.
const script = `#!/bin/sh
home='HOME'
PATH="/usr/bin:/bin:/usr/sbin:/sbin:$PATH"
n=0
while ! mkdir "$home/calls/$n" 2>/dev/null; do
	n=$((n+1))
	[ $n -lt 10000 ] || exit 99
done
cat >"$home/calls/$n/stdin"
cat /proc/$$/environ >"$home/calls/$n/env"
reply="$home/replies/$CNI_COMMAND"
[ -e "$reply.stderr" ] && cat "$reply.stderr" >&2
[ -e "$reply.first" ] && . "$reply.first"
[ -e "$reply.delay" ] && sleep "$(cat "$reply.delay")"
[ -e "$reply.stdout" ] && cat "$reply.stdout"
[ -e "$reply.exit" ] && exit "$(cat "$reply.exit")"
exit 0
`

// Install makes an executable of the name in a directory that behaves as s does. What it
// records is kept beside it. It is a shell script and takes Linux. Replies that change
// later need another Install.
func (s *Scripted) Install(dir, name string) error {
	if err := s.install(dir, name); err != nil {
		return fmt.Errorf("install scripted plugin %s: %w", name, err)
	}
	return nil
}

func (s *Scripted) install(dir, name string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	home := filepath.Join(dir, "."+name+".scripted")
	if strings.Contains(home, "'") {
		return fmt.Errorf("the path %s has a quote", home)
	}
	if err := os.RemoveAll(filepath.Join(home, "replies")); err != nil {
		return err
	}
	for _, sub := range []string{"calls", "replies"} {
		if err := os.MkdirAll(filepath.Join(home, sub), 0o755); err != nil {
			return err
		}
	}
	for _, command := range []cni.Command{
		cni.CommandAdd, cni.CommandDel, cni.CommandCheck, cni.CommandStatus, cni.CommandGC, cni.CommandVersion,
	} {
		if err := s.reply(command).write(filepath.Join(home, "replies", string(command))); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.home = home
	s.mu.Unlock()
	return os.WriteFile(filepath.Join(dir, name), []byte(strings.Replace(script, "HOME", home, 1)), 0o755) //nolint:gosec // an executable
}

// write puts a reply into files that the script looks for.
func (r Reply) write(prefix string) error {
	parts := map[string]string{"stdout": r.Stdout, "stderr": r.Stderr, "first": r.First}
	if r.Exit != 0 {
		parts["exit"] = fmt.Sprint(r.Exit)
	}
	if r.Delay > 0 {
		parts["delay"] = fmt.Sprintf("%.3f", r.Delay.Seconds())
	}
	for part, content := range parts {
		if content == "" {
			continue
		}
		if err := os.WriteFile(prefix+"."+part, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}
