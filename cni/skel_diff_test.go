//go:build linux

package cni_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/testenv"
)

// The names under which the test binary is one and the same plugin, made with this
// package and with containernetworking/cni's skel.
const (
	nameOurs = "cnikit-test-ours"
	nameSkel = "cnikit-test-skel"
)

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case nameOurs:
		mainOurs()
	case nameSkel:
		mainSkel()
	default:
		os.Exit(m.Run())
	}
}

// diffConfig makes the plugin fail in different ways.
type diffConfig struct {
	Do  string `json:"do"`
	Num int    `json:"num"`
}

func (c diffConfig) act(command string) error {
	fmt.Fprintln(os.Stderr, "ran", command)
	switch c.Do {
	case "fail":
		return errors.New("failed")
	case "panic":
		panic("panicked")
	case "print":
		fmt.Println("hello")
	}
	return nil
}

func mainOurs() {
	fn := func(_ context.Context, r *cni.Request[diffConfig]) error { return r.Config.act(string(r.Command)) }
	cni.Main(cni.Plugin[diffConfig]{
		Type: nameOurs, About: "about",
		Add: func(ctx context.Context, r *cni.Request[diffConfig]) (*cni.Result, error) {
			if err := fn(ctx, r); err != nil {
				return nil, err
			}
			return cni.FromTypes(diffResult())
		},
		Del: fn, Check: fn, Status: fn, GC: fn,
	}.Handler())
}

func mainSkel() {
	fn := func(command string) func(*skel.CmdArgs) error {
		return func(args *skel.CmdArgs) error {
			var c diffConfig
			if err := json.Unmarshal(args.StdinData, &c); err != nil {
				return types.NewError(types.ErrInvalidNetworkConfig, err.Error(), "")
			}
			return c.act(command)
		}
	}
	add := func(args *skel.CmdArgs) error {
		if err := fn("ADD")(args); err != nil {
			return err
		}
		version, err := create.DecodeVersion(args.StdinData)
		if err != nil {
			return err
		}
		return types.PrintResult(diffResult(), version)
	}
	skel.PluginMainFuncs(skel.CNIFuncs{
		Add: add, Del: fn("DEL"), Check: fn("CHECK"), Status: fn("STATUS"), GC: fn("GC"),
	}, version.All, "about")
}

func diffResult() *types100.Result {
	return &types100.Result{
		CNIVersion: "1.1.0",
		Interfaces: []*types100.Interface{{Name: "eth0", Mac: "02:00:00:00:00:01", Sandbox: "/n"}},
		IPs: []*types100.IPConfig{{
			Interface: types100.Int(0), Gateway: net.IPv4(10, 0, 0, 1),
			Address: net.IPNet{IP: net.IPv4(10, 0, 0, 5), Mask: net.CIDRMask(24, 32)},
		}},
		Routes: []*types.Route{{Dst: net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}}},
	}
}

// outcome is what a runtime can observe, without the wording of errors. Two things
// always differ and are left out: our errors carry cniVersion, and one line of JSON
// stands for several.
type outcome struct {
	Failed bool   // exit code not 0
	Ran    bool   // the plugin's function ran
	Code   string // of the error document
	Result string // the result document; "junk" for anything that is not one document
}

func observe(t *testing.T, executable string, c diffCase) outcome {
	t.Helper()
	cmd := exec.Command(executable)
	cmd.Env = append([]string{"GORACE=atexit_sleep_ms=0"}, c.env...) // a race-enabled test binary sleeps at its end
	cmd.Stdin = strings.NewReader(c.stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	o := outcome{Failed: err != nil, Ran: strings.Contains(stderr.String(), "ran ")}
	o.Code, o.Result = documentIn(stdout.Bytes())
	return o
}

func documentIn(stdout []byte) (code, result string) {
	if len(stdout) == 0 {
		return "", ""
	}
	var doc map[string]any
	decoder := json.NewDecoder(bytes.NewReader(stdout))
	decoder.UseNumber()
	if decoder.Decode(&doc) != nil {
		return "", "junk"
	}
	if _, err := decoder.Token(); err != io.EOF {
		return "", "junk"
	}
	if code, ok := doc["code"]; ok {
		return fmt.Sprint(code), ""
	}
	if dns, ok := doc["dns"].(map[string]any); ok && len(dns) == 0 {
		delete(doc, "dns") // they print an empty one before 1.0.0
	}
	out, _ := json.Marshal(doc) // sorts the keys
	return "", string(out)
}

type diffCase struct {
	env   []string
	stdin string
}

// differences between the two, by case (a pattern of package path), with the reason.
// First match counts.
var differences = []struct{ cases, why string }{
	{"VERSION/without a command", "skel prints the about text and exits with 0; ours prints it too, but a missing CNI_COMMAND is an error"},
	{"VERSION/stdin *", "skel does not read the request; ours answers with its version, and a malformed one is an error"},
	{"VERSION/version *", "skel always answers 1.1.0; the specification wants the version of the request back"},
	{"DEL/version 9.9.9", "ours serves a DEL of any version: an attachment must not outlive the plugin's support for its version"},
	{"DEL/version 1.0.5", "ours serves a DEL of any version"},
	{"DEL/version none of semver", "ours serves a DEL of any version"},
	{"*/version none of semver", "skel reports a version that does not parse as a decoding failure (6), ours as unsupported (1)"},
	{"*/without CNI_PATH", "CNI_PATH is optional in the specification"},
	{"STATUS/nothing but the command", "CNI_PATH is optional in the specification"},
	{"GC/nothing but the command", "skel wants CNI_PATH; a plugin that has no delegates can do without"},
	{"*/without a command", "skel prints the about text and exits with 0; ours prints it too, but a missing CNI_COMMAND is an error"},
	{"ADD/host namespace", "skel notices after the function has worked in the host, with two documents on standard output; ours refuses before, with code 4"},
	{"DEL/host namespace", "skel notices after the function has deleted in the host, with an undefined code; for ours the namespace is gone"},
	{"CHECK/host namespace", "skel does not look at the namespace of a CHECK"},
	{"*/missing namespace", "skel takes a namespace that it cannot open for one that is not the host's"},
	{"*/file for a namespace", "skel takes a namespace that it cannot identify for one that is not the host's"},
	{"*/arguments that do not parse", "skel leaves parsing to the plugin; ours names CNI_ARGS, except on DEL"},
	{"*/stdin null", "null is no object (6); for skel it is a configuration without a name (7)"},
	{"*/stdin panic", "a panic leaves no document and exit code 2; ours reports it"},
	{"*/stdin print", "skel leaves standard output to everybody; ours leads it to standard error"},
	{"*/stdin version no string", "a wrong type is an invalid configuration (7), not a decoding failure (6)"},
	{"DEL/stdin wrong type", "the plugin's own decoding fails; ours cleans up with the rest of the configuration"},
	{"GC/stdin wrong type", "the plugin's own decoding fails; ours cleans up with the rest of the configuration"},
	{"ADD/stdin prevResult malformed", "skel does not look at prevResult; ours refuses what cannot be handed on (6)"},
	{"CHECK/stdin prevResult malformed", "skel does not look at prevResult; ours refuses what cannot be compared with (6)"},
	{"GC/stdin no list", "skel hands on a request without a list of valid attachments, for which everything is stale; ours refuses it"},
	{"STATUS/stdin fail", "an error of STATUS without a code says that no ADD can be served, which is code 50"},
	{"UPDATE/stdin *", "skel looks at the configuration before it looks whether it knows the command"},
}

func TestAgainstSkel(t *testing.T) {
	testenv.NetAdmin(t)
	ns, err := netns.New()
	require.NoError(t, err)
	defer ns.Close()
	ours, theirs := disguise(t, nameOurs), disguise(t, nameSkel)

	used := map[string]bool{}
	for name, c := range diffCases(t, ns.Path()) {
		t.Run(name, func(t *testing.T) {
			o, s := observe(t, ours, c), observe(t, theirs, c)
			pattern, why := differenceOf(name)
			if o == s {
				return
			}
			used[pattern] = true
			assert.NotEmpty(t, why, "an unlisted difference\nskel %+v\nours %+v", s, o)
			assert.NotEqual(t, "junk", o.Result, "ours must print one document")
			t.Logf("skel %+v\nours %+v\n%s", s, o, why)
		})
	}
	t.Run("every listed difference is one", func(t *testing.T) {
		for _, d := range differences {
			assert.True(t, used[d.cases], "there is none: %s", d.cases)
		}
	})
}

func differenceOf(name string) (pattern, why string) {
	for _, d := range differences {
		if ok, _ := path.Match(d.cases, name); ok {
			return d.cases, d.why
		}
	}
	return "", ""
}

// disguise makes the test binary available under another name.
func disguise(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.Symlink(self, link))
	return link
}

// diffCases crosses the commands with versions, environments and inputs.
func diffCases(t *testing.T, ns string) map[string]diffCase {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	environments := map[string][]string{
		"complete":                    {},
		"without container ID":        {"CNI_CONTAINERID"},
		"without interface name":      {"CNI_IFNAME"},
		"without namespace":           {"CNI_NETNS"},
		"without CNI_PATH":            {"CNI_PATH"},
		"without CNI_ARGS":            {"CNI_ARGS"},
		"without a command":           {"CNI_COMMAND"},
		"nothing but the command":     {"CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS", "CNI_PATH"},
		"bad container ID":            {"CNI_CONTAINERID=a/b"},
		"bad interface name":          {"CNI_IFNAME=a/b"},
		"long interface name":         {"CNI_IFNAME=abcdefghijklmnop"},
		"bad container ID and name":   {"CNI_CONTAINERID=-", "CNI_IFNAME=.."},
		"host namespace":              {"CNI_NETNS=" + ownNetNS},
		"missing namespace":           {"CNI_NETNS=/nowhere"},
		"file for a namespace":        {"CNI_NETNS=" + file},
		"arguments":                   {"CNI_ARGS=A=1;B=2"},
		"arguments that do not parse": {"CNI_ARGS=A"},
	}
	inputs := map[string]string{
		"empty":                ``,
		"malformed":            `{`,
		"null":                 `null`,
		"no object":            `[]`,
		"two documents":        network("1.1.0") + network("1.1.0"),
		"version no string":    `{"cniVersion":1,"name":"lan"}`,
		"no version":           `{"name":"lan","cni.dev/valid-attachments":[]}`,
		"no name":              `{"cniVersion":"1.1.0"}`,
		"bad name":             `{"cniVersion":"1.1.0","name":"../lan"}`,
		"no list":              `{"cniVersion":"1.1.0","name":"lan"}`,
		"list":                 network("1.1.0", `"cni.dev/valid-attachments":[{"containerID":"a","ifname":"b"}]`),
		"unknown members":      network("1.1.0", `"x":{"y":1}`),
		"wrong type":           network("1.1.0", `"num":"x"`),
		"fail":                 network("1.1.0", `"do":"fail"`),
		"panic":                network("1.1.0", `"do":"panic"`),
		"print":                network("1.1.0", `"do":"print"`),
		"prevResult":           network("1.1.0", `"prevResult":{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/8"}}`),
		"prevResult null":      network("1.1.0", `"prevResult":null`),
		"prevResult malformed": network("1.1.0", `"prevResult":{"ips":[null]}`),
	}
	versions := append(cni.SupportedVersions(), "1.0.5", "9.9.9", "none of semver")

	cases := map[string]diffCase{}
	for _, command := range []string{"ADD", "DEL", "CHECK", "STATUS", "GC", "VERSION"} {
		env := func(changes ...string) []string {
			return environment(command, append([]string{"CNI_NETNS=" + ns}, changes...)...)
		}
		for name, changes := range environments {
			cases[command+"/"+name] = diffCase{env(changes...), network("1.1.0")}
		}
		for name, stdin := range inputs {
			cases[command+"/stdin "+name] = diffCase{env(), stdin}
		}
		for _, version := range versions {
			cases[command+"/version "+version] = diffCase{env(), network(version)}
		}
	}
	cases["UPDATE/complete"] = diffCase{environment("UPDATE", "CNI_NETNS="+ns), network("1.1.0")}
	cases["UPDATE/stdin malformed"] = diffCase{environment("UPDATE", "CNI_NETNS="+ns), "{"}
	return cases
}
