package install

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/reconcile"
)

// TestMain lets the test binary be the process that a test starts: $CNIKIT_INSTALL says what to do, followed by its arguments.
func TestMain(m *testing.M) {
	words := strings.Fields(os.Getenv("CNIKIT_INSTALL"))
	if len(words) == 0 {
		os.Exit(m.Run())
	}
	if err := child(words[0], words[1:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func child(what string, args []string) error {
	if what == "wait" { // a plugin that runs
		fmt.Println("running")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	e, err := NewExecutables("executables", args[0], ExecutablesOptions{From: args[1], Names: []string{plugin, other}, Owner: "test"})
	if err != nil {
		return err
	}
	ctx := context.Background()
	switch what {
	case "replace", "install", "cleanup": // killed before the given change of the disk
		e.store.replace = what == "replace"
		last, _ := strconv.Atoi(args[2])
		e.store.step = killAt(last)
		if what == "cleanup" {
			return e.Cleanup(ctx)
		}
		return e.Install(ctx)
	case "read-only":
		err := errors.Join(
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount(args[0], args[0], "", unix.MS_BIND, ""),
			unix.Mount("", args[0], "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		if err != nil {
			return fmt.Errorf("mount: %w", err)
		}
		return e.Install(ctx)
	case "alternate": // between two sources, for ever
		for i := 0; ; i++ {
			e.store.from = args[1+i%2]
			if err := e.Install(ctx); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%q: not known", what)
}

// killAt returns a step that kills the process before the change of that number.
func killAt(last int) func(string) error {
	n := 0
	return func(string) error {
		if n++; n == last {
			return errors.Join(syscall.Kill(os.Getpid(), syscall.SIGKILL), errors.New("not killed"))
		}
		return nil
	}
}

func command(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), "CNIKIT_INSTALL="+strings.Join(words, " "))
	return cmd
}

// killed runs a child and reports whether it was killed rather than done.
func killed(t *testing.T, words ...string) bool {
	t.Helper()
	out, err := command(t, words...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	require.NoError(t, err, string(out))
	return false
}

func TestInstallSurvivesKill(t *testing.T) {
	for _, tc := range []struct {
		rule, how string
		prepare   func(t *testing.T, s site)
		before    string
	}{
		{"fresh", "install", func(*testing.T, site) {}, ""},
		{"upgrade", "install", func(t *testing.T, s site) { s.install(t) }, script("one")},
		{"repair", "install", func(t *testing.T, s site) {
			s.install(t)
			put(t, filepath.Join(s.dir, plugin), "drift", 0o755)
			put(t, filepath.Join(s.dir, other), "drift", 0o755)
		}, "drift"},
		{"foreign", "replace", func(t *testing.T, s site) {
			put(t, filepath.Join(s.dir, plugin), "theirs", 0o755)
			put(t, filepath.Join(s.dir, other), "theirs", 0o755)
		}, "theirs"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			steps := 0
			for n, more := 1, true; more; n++ {
				s := newSite(t)
				tc.prepare(t, s)
				s.source(t, "two")
				if more = killed(t, tc.how, s.dir, s.from, strconv.Itoa(n)); more {
					steps++
				}
				for _, name := range []string{plugin, other} {
					content, err := os.ReadFile(filepath.Join(s.dir, name))
					if !errors.Is(err, fs.ErrNotExist) {
						require.NoError(t, err)
					}
					require.Contains(t, []string{tc.before, script("two")}, string(content), "killed at %d", n)
				}
				// The next start may have yet another version, may not replace anything but in the foreign case, and finishes.
				s.source(t, "three")
				e := s.open(t)
				e.store.replace = tc.how == "replace"
				require.NoError(t, e.Install(t.Context()), "killed at %d", n)
				s.has(t, plugin, script("three"))
				s.has(t, other, script("three"))
				require.NoError(t, s.open(t).Cleanup(t.Context()), "killed at %d", n)
				require.Empty(t, list(t, s.dir), "killed at %d", n)
			}
			require.Equal(t, 8, steps, "stage, record, rename, record, for each")
		})
	}
	t.Run("again, before it was noted that the first was complete", func(t *testing.T) {
		s := newSite(t)
		require.True(t, killed(t, "install", s.dir, s.from, "4"), "before the second record of the first program")
		s.source(t, "two")
		require.True(t, killed(t, "install", s.dir, s.from, "3"), "before the rename")
		s.has(t, plugin, script("one"))
		s.source(t, "three")
		s.install(t)
		s.has(t, plugin, script("three"))
	})
	t.Run("cleanup", func(t *testing.T) {
		steps := 0
		for n, more := 1, true; more; n++ {
			s := newSite(t)
			s.install(t)
			if more = killed(t, "cleanup", s.dir, s.from, strconv.Itoa(n)); more {
				steps++
			}
			if n%2 == 0 { // either it goes on, or everything comes back
				s.install(t)
			}
			require.NoError(t, s.open(t).Cleanup(t.Context()), "killed at %d", n)
			require.Empty(t, list(t, s.dir), "killed at %d", n)
		}
		require.Equal(t, 4, steps, "record, two programs, record")
	})
	t.Run("what somebody else puts there afterwards is theirs", func(t *testing.T) {
		for _, tc := range []struct {
			how     string
			last    int
			prepare func(s site)
		}{
			{"install", 3, func(site) {}}, // before the rename of the first program
			{"install", 3, func(s site) { s.install(t); require.NoError(t, os.Remove(filepath.Join(s.dir, plugin))) }},
			{"cleanup", 3, func(s site) { s.install(t) }}, // after its removal
		} {
			s := newSite(t)
			tc.prepare(s)
			require.True(t, killed(t, tc.how, s.dir, s.from, strconv.Itoa(tc.last)))
			require.NoFileExists(t, filepath.Join(s.dir, plugin))
			put(t, filepath.Join(s.dir, plugin), "theirs", 0o755)
			require.ErrorIs(t, s.open(t).Install(t.Context()), ErrForeign)
			require.NoError(t, s.open(t).Cleanup(t.Context()))
			s.has(t, plugin, "theirs")
		}
	})
}

func TestInstallThatFailsLeavesNothingHalf(t *testing.T) {
	broken := errors.New("disk is broken")
	for n := 1; ; n++ {
		s := newSite(t)
		s.install(t)
		s.source(t, "two")
		e, calls := s.open(t), 0
		e.store.step = func(string) error {
			if calls++; calls == n {
				return broken
			}
			return nil
		}
		err := e.Install(t.Context())
		if calls < n {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, broken)
		require.Equal(t, []string{recordFile, plugin, other}, list(t, s.dir), "no temporary file stays")
		s.install(t)
		s.has(t, plugin, script("two"))
		require.NoError(t, s.open(t).Cleanup(t.Context()))
		require.Empty(t, list(t, s.dir))
	}
}

// Two processes install different versions in turn; one of them is killed and started again all the time. Whoever looks sees
// whole programs.
func TestParallelInstallers(t *testing.T) {
	s := newSite(t)
	second := t.TempDir()
	big := map[string]bool{}
	for i, from := range []string{s.from, second} {
		content := strings.Repeat(strconv.Itoa(i), 200_000)
		big[content] = true
		put(t, filepath.Join(from, plugin), content, 0o755)
		put(t, filepath.Join(from, other), content, 0o755)
	}
	s.install(t)
	steady := command(t, "alternate", s.dir, s.from, second)
	var out strings.Builder
	steady.Stdout = &out
	require.NoError(t, steady.Start())
	for range testenv.Scale(t, 20) {
		cmd := command(t, "alternate", s.dir, second, s.from)
		require.NoError(t, cmd.Start())
		end := time.Now().Add(time.Duration(20+rand.IntN(40)) * time.Millisecond)
		for time.Now().Before(end) {
			content, err := os.ReadFile(filepath.Join(s.dir, plugin))
			require.NoError(t, err)
			require.True(t, big[string(content)], "a part was seen")
		}
		require.NoError(t, cmd.Process.Kill())
		require.ErrorContains(t, cmd.Wait(), "killed", "it had no error of its own")
	}
	require.NoError(t, steady.Process.Kill())
	require.ErrorContains(t, steady.Wait(), "killed", out.String())
	s.install(t)
	require.Equal(t, []string{recordFile, plugin, other}, list(t, s.dir))
	require.NoError(t, s.open(t).Cleanup(t.Context()))
	require.Empty(t, list(t, s.dir))
}

func TestInstallWhileExecuted(t *testing.T) {
	s := newSite(t)
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	put(t, filepath.Join(s.from, plugin), string(self), 0o755)
	s.install(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(s.dir, plugin))
	cmd.Env = append(os.Environ(), "CNIKIT_INSTALL=wait")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "running\n", line)
	_, err = os.OpenFile(filepath.Join(s.dir, plugin), os.O_WRONLY, 0)
	require.ErrorIs(t, err, unix.ETXTBSY, "writing to it in place is impossible")

	s.source(t, "two")
	s.install(t)
	s.has(t, plugin, script("two"))
	got, err := exec.CommandContext(t.Context(), filepath.Join(s.dir, plugin)).Output()
	require.NoError(t, err)
	require.Equal(t, "two\n", string(got))
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait(), "the old one went on")
}

func TestInstallIntoAReadOnlyDirectory(t *testing.T) {
	testenv.Root(t)
	s := newSite(t)
	s.install(t)
	readOnly := func() (string, error) {
		cmd := command(t, "read-only", s.dir, s.from)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := readOnly()
	require.NoError(t, err, "nothing to write: %s", out)
	before := s.state(t)
	s.source(t, "two")
	out, err = readOnly()
	require.Error(t, err)
	require.Contains(t, out, "install "+filepath.Join(s.dir, plugin)+": ")
	require.Contains(t, out, "read-only file system")
	require.Equal(t, before, s.state(t))
}

func TestInstallWaitsForTheLock(t *testing.T) {
	s := newSite(t)
	unlock, err := lockDir(t.Context(), s.dir)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lockDir(ctx, s.dir)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "wait for the lock of "+s.dir)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := lockDir(t.Context(), s.dir)
		require.ErrorContains(t, err, "not free within 1m0s")
		require.WithinDuration(t, began.Add(lockPatience), time.Now(), time.Second)
	})
	ended := make(chan error)
	go func() { ended <- s.open(t).Install(t.Context()) }()
	select {
	case err := <-ended:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	require.Empty(t, list(t, s.dir))
	unlock()
	require.NoError(t, <-ended)
}

func TestInstallFollowsADirectoryThatIsReplaced(t *testing.T) {
	s := newSite(t)
	unlock, err := lockDir(t.Context(), s.dir)
	require.NoError(t, err)
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error)
	go func() { ended <- s.open(t).Install(ctx) }()
	select {
	case err := <-ended:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, os.Rename(s.dir, s.dir+".old"))
	require.NoError(t, os.Mkdir(s.dir, 0o755))
	require.NoError(t, <-ended)
	require.NotEmpty(t, list(t, s.dir))
}

func TestDriftOfExecutablesIsRepairedByEvents(t *testing.T) {
	s := newSite(t)
	s.dir = filepath.Join(s.dir, "bin")
	path := filepath.Join(s.dir, plugin)
	h := &host{dir: s.dir, path: path, rounds: make(chan reconcile.Round, 1000)}
	target := s.open(t)
	engine, err := reconcile.New(reconcile.Options{
		Targets: []reconcile.Target{target}, Resync: -1, OnRound: func(r reconcile.Round) { h.rounds <- r },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	parts.Go(func() { _ = engine.Run(ctx) })
	parts.Go(func() { _ = target.Watch(ctx, engine.Trigger) })
	defer parts.Wait()
	defer cancel()

	next := func() reconcile.Round {
		select {
		case r := <-h.rounds:
			return r
		case <-time.After(patience):
			t.Fatalf("no round within %s", patience)
			return reconcile.Round{}
		}
	}
	repaired := func() bool {
		content, err := os.ReadFile(path)
		info, statErr := os.Lstat(path)
		return err == nil && statErr == nil && string(content) == script("one") && info.Mode() == executable
	}
	for r := next(); r.Applied == 0 || !repaired(); r = next() {
	}
	for rule, drift := range map[string]func() error{
		"deleted":      func() error { return os.Remove(path) },
		"truncated":    func() error { return os.Truncate(path, 0) },
		"mode changed": func() error { return os.Chmod(path, 0o644) },
		"renamed over": func() error {
			return errors.Join(os.WriteFile(path+".new", []byte("new"), 0o755), os.Rename(path+".new", path))
		},
		"directory deleted": h.removeDir,
	} {
		h.quiet()
		require.NoError(t, drift(), rule)
		for r := next(); r.Applied == 0 || !repaired(); r = next() {
		}
	}
	h.quiet()
	require.NoError(t, errors.Join(os.Symlink("elsewhere", path+".new"), os.Rename(path+".new", path)))
	for r := next(); len(r.Failed) == 0 || !errors.Is(r.Failed[0], ErrForeign); r = next() {
	}
}
