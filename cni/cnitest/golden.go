package cnitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnikit/cnikit/cni"
)

// GoldenUpdate is the variable of the environment that, set to 1, has [Golden] write
// files instead of comparing with them.
const GoldenUpdate = "CNITEST_UPDATE"

// Golden compares a result with a file of the test, such as testdata/add.json. What
// differs from run to run has a name in it: MAC addresses are "mac-1" and so on,
// sandboxes "netns-1", interfaces of the node whose name starts with "veth" "veth-1".
func Golden(t testing.TB, file string, r *cni.Result) {
	t.Helper()
	got, err := golden(r)
	if err != nil {
		t.Fatalf("render result: %v", err)
	}
	if os.Getenv(GoldenUpdate) == "1" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil { //nolint:gosec // a file of the source
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run the test with %s=1 to write it", err, GoldenUpdate)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("the result differs from %s; run the test with %s=1 if it is right\nhave: %s\nwant: %s", file, GoldenUpdate, got, want)
	}
}

// golden renders a result with names for what changes.
func golden(r *cni.Result) ([]byte, error) {
	c := r.Clone()
	macs, sandboxes, veths := names{}, names{}, names{}
	for i := range c.Interfaces {
		iface := &c.Interfaces[i]
		iface.MAC = macs.of("mac", iface.MAC)
		if iface.Sandbox == "" && strings.HasPrefix(iface.Name, "veth") {
			iface.Name = veths.of("veth", iface.Name)
		}
		iface.Sandbox = sandboxes.of("netns", iface.Sandbox)
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// names are given to values in the order in which they come.
type names map[string]string

func (n names) of(kind, value string) string {
	if value == "" {
		return ""
	}
	if _, ok := n[value]; !ok {
		n[value] = fmt.Sprintf("%s-%d", kind, len(n)+1)
	}
	return n[value]
}
