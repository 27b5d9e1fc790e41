package peers_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// suite is a package of the reference repository whose tests execute host-local.
type suite struct {
	pkg    string
	passed int    // specs, at least, with our executable; some need what a kernel may lack
	slow   string // regular expression: what waits long, and is left out of a short run
}

var suites = []suite{
	{pkg: "plugins/main/bridge", passed: 60},
	{pkg: "plugins/main/dummy"},
	{pkg: "plugins/main/ipvlan"},
	{pkg: "plugins/main/macvlan"},
	{pkg: "plugins/main/ptp", passed: 8},
	{pkg: "plugins/main/tap", passed: 3},
	{pkg: "plugins/main/vlan"},
	{pkg: "plugins/meta/bandwidth", passed: 1},
	{pkg: "plugins/meta/firewall", passed: 1, slow: "should prevent communication"},
	{pkg: "plugins/meta/portmap", passed: 5},
	{pkg: "integration", passed: 2, slow: "limits traffic only on the restricted"},
}

// TestSuites runs the reference repository's suites, as they are, with our executable under
// the name host-local. What fails then is run again with the original: a spec that fails with
// both needs what this machine lacks, and runs in a guest when CNIKIT_SCALE is above 1.
func TestSuites(t *testing.T) {
	testenv.Root(t)
	testenv.Tool(t, "ping") // of the suites of ptp
	b := newBench(t)
	t.Run("of", func(t *testing.T) {
		for _, s := range suites {
			t.Run(s.pkg, func(t *testing.T) {
				t.Parallel()
				b.compare(t, s)
			})
		}
	})
}

// bench is where suites are run: a copy of their module, and a directory of plugins with
// each host-local.
type bench struct {
	dir      string // module, ours, reference
	binaries string // <name>.test of each suite
}

func newBench(t *testing.T) bench {
	b := bench{dir: t.TempDir(), binaries: cacheDir(t, "suites")}
	source := command(t, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/containernetworking/plugins")
	module := filepath.Join(b.dir, "module")
	require.NoError(t, os.CopyFS(module, os.DirFS(source)))
	require.NoError(t, os.Mkdir(filepath.Join(module, "bin"), 0o755))

	tests := []string{"test", "-C", module, "-c", "-trimpath", "-o", b.binaries + "/"}
	for _, s := range suites {
		tests = append(tests, "./"+s.pkg)
	}
	command(t, "go", tests...)
	peers := testenv.Peers(t, pluginPackages()...)
	ours := buildOurs(t)
	for _, kind := range []string{"ours", "reference"} {
		dir := filepath.Join(b.dir, kind)
		require.NoError(t, os.CopyFS(dir, os.DirFS(peers)))
	}
	program, err := os.ReadFile(ours)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "ours/host-local"), program, 0o755))
	return b
}

// pluginPackages are the programs that the suites execute.
func pluginPackages() []string {
	pkgs := []string{"github.com/containernetworking/cni/cnitool"}
	for _, p := range []string{"ipam/host-local", "main/bridge", "main/macvlan", "main/ptp", "meta/bandwidth", "meta/firewall", "meta/portmap"} {
		pkgs = append(pkgs, "github.com/containernetworking/plugins/plugins/"+p)
	}
	return pkgs
}

// Specs that wait for the network fail on a busy machine now and then, whoever gives out
// the addresses. So one that fails is run by turns with each, until it passes with ours: it
// is ours that is to blame when it has failed in every round until host-local had passed
// so often; it is the machine, which may lack what the spec needs, when it has passed with
// neither in the first rounds. A spec that fails every third time, with either, is blamed
// on ours once in 12,000 runs.
const (
	blamed  = 6 // rounds that host-local has passed
	lacking = 3 // rounds
)

// trial is what is known of a spec that fails with ours.
type trial struct {
	rounds, theirs int // in how many host-local has passed
	message        string
}

// compare runs one suite and looks at what fails.
func (b bench) compare(t *testing.T, s suite) {
	ours := b.run(t, "ours", s, nil)
	suspects, all := ours.failed(), len(ours)
	trials := map[string]*trial{}
	for _, name := range suspects {
		trials[name] = &trial{message: ours[name].Failure.Message}
	}
	for len(suspects) > 0 {
		b.round(t, s, suspects, trials)
		suspects = slices.DeleteFunc(suspects, func(name string) bool { return trials[name] == nil || trials[name].judged() })
	}
	assert.GreaterOrEqual(t, all-len(trials), s.passed, "specs that pass with ours")
	var neither []string
	for name, trial := range trials {
		if trial.theirs == 0 {
			neither = append(neither, name)
			continue
		}
		t.Errorf("passes with host-local, not with ours, in %d rounds: %s\n%s", trial.rounds, name, trial.message)
	}
	t.Logf("%d specs that can be started here, %d of them pass", all, all-len(trials))
	if len(neither) > 0 && testenv.Scale(t, 1) > 1 {
		b.passInGuest(t, s, neither)
	}
}

// judged reports that no more rounds are needed.
func (tr *trial) judged() bool {
	return tr.theirs == blamed || tr.rounds == lacking && tr.theirs == 0
}

// round runs specs with host-local and again with ours. What passes with ours is cleared.
func (b bench) round(t *testing.T, s suite, names []string, trials map[string]*trial) {
	reference := b.run(t, "reference", s, names)
	ours := b.run(t, "ours", s, names)
	for _, name := range names {
		theirs, ran := reference[name]
		require.True(t, ran, "the reference did not run %q", name)
		trials[name].rounds++
		if theirs.passed() {
			trials[name].theirs++
		}
		if again, ran := ours[name]; ran && again.passed() {
			delete(trials, name)
		}
	}
}

// spec is what ginkgo reports of one.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	Failure                 struct{ Message string }
}

func (s spec) passed() bool { return s.State == "passed" }

// report has specs by name, without those that were skipped. Of several with one name
// it has one that failed, if any did.
type report map[string]spec

func (r report) failed() []string {
	var names []string
	for name, s := range r {
		if !s.passed() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// run runs a suite, or the named specs of it, in namespaces of its own: with the plugins
// of kind on PATH, and with empty /run, /tmp and /var/lib.
func (b bench) run(t *testing.T, kind string, s suite, only []string) report {
	const prepare = `set -e
ip link set lo up
mount -t tmpfs tmpfs /run
mkdir /run/netns /run/suite
mount --bind "$1" /run/suite
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /var/lib
mount --bind "/run/suite/$2" /run/suite/module/bin
cd "/run/suite/module/$3"
PATH=/run/suite/module/bin:$PATH
shift 3
exec "$@"`
	name := filepath.Base(s.pkg)
	out := fmt.Sprintf("%s-%s.json", name, kind)
	args := []string{"-mn", "--propagation", "private", "sh", "-c", prepare, "sh", b.dir, kind, s.pkg,
		filepath.Join(b.binaries, name+".test"), "-ginkgo.no-color", "-ginkgo.silence-skips", "-ginkgo.json-report=/run/suite/" + out}
	args = append(args, selection(t, s, only)...)
	run := exec.CommandContext(t.Context(), testenv.Tool(t, "unshare"), args...)
	run.Env = append(os.Environ(), "ACK_GINKGO_DEPRECATIONS=2.34.0", "GOFLAGS=-trimpath", "GOTOOLCHAIN=auto")
	log, runErr := run.CombinedOutput()
	data, err := os.ReadFile(filepath.Join(b.dir, out))
	require.NoError(t, err, "%v\n%s", runErr, log)
	return parseReport(t, data)
}

// selection returns the arguments that choose specs. A short run looks at an old and at
// the newest version of the protocol.
func selection(t *testing.T, s suite, only []string) []string {
	if len(only) > 0 {
		quoted := make([]string, len(only))
		for i, name := range only {
			quoted[i] = " " + regexp.QuoteMeta(name) // behind the name of the suite
		}
		return []string{"-ginkgo.focus=(" + strings.Join(quoted, "|") + ")$"}
	}
	if testenv.Scale(t, 1) > 1 {
		return nil
	}
	args := []string{`-ginkgo.skip=\[(0\.1\.0|0\.3\.0|0\.3\.1|0\.4\.0|1\.0\.0)\]`}
	if s.slow != "" {
		args = append(args, "-ginkgo.skip="+s.slow)
	}
	return args
}

func parseReport(t *testing.T, data []byte) report {
	var documents []struct{ SpecReports []spec }
	require.NoError(t, json.Unmarshal(data, &documents))
	r := report{}
	for _, d := range documents {
		for _, s := range d.SpecReports {
			if s.LeafNodeType != "It" || s.State == "skipped" || s.State == "pending" {
				continue
			}
			name := strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")
			if same, ok := r[name]; !ok || same.passed() {
				r[name] = s
			}
		}
	}
	return r
}
