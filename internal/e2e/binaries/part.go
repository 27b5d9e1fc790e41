package binaries

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// part is a directory of programs that one run of "go build" makes.
type part struct {
	name     string   // prefix of its programs in [Set.Path]
	module   string   // directory of the Go module, relative to the repository
	packages []string // main packages: a program is named after the last element
	inputs   []string // files and directories, relative to the repository, that make the outcome
	stamps   []string // values for -X
	aliases  []string // further names of the first program, which looks at its own
}

// The modules that pin what is built.
const (
	e2e          = "internal/e2e"
	components   = e2e + "/components"
	containerd16 = e2e + "/containerd16"
	peers        = "internal/peers"
)

// flags are those of every build. Without the optimiser it takes a third less, and without
// debugging information another tenth, which counts for more than how fast the programs
// then run.
func flags() []string {
	return []string{"-buildvcs=false", "-trimpath", "-gcflags=all=-N -l -dwarf=false"}
}

// allParts describes what Ensure builds, in the order of building: what takes long
// comes last, so that mistakes show early.
func allParts(repository string) ([]part, error) {
	kubernetes, err := pinned(repository, components, "k8s.io/kubernetes")
	if err != nil {
		return nil, err
	}
	containerd, err := pinned(repository, components, "github.com/containerd/containerd/v2")
	if err != nil {
		return nil, err
	}
	old, err := pinned(repository, containerd16, "github.com/containerd/containerd")
	if err != nil {
		return nil, err
	}
	return []part{
		ownPart("pause"),
		ownPart("trace"),
		pluginsPart(),
		containerdPart("containerd-1.6", containerd16, "github.com/containerd/containerd", old),
		containerdPart("containerd-2.4", components, "github.com/containerd/containerd/v2", containerd),
		kubernetesPart(kubernetes),
	}, nil
}

// ownPart is a program of this module, which imports the standard library alone: no
// other file and no module makes the outcome.
func ownPart(name string) part {
	return part{name: name, module: e2e, packages: []string{"./" + name}, inputs: []string{e2e + "/" + name}}
}

func pluginsPart() part {
	const plugins = "github.com/containernetworking/plugins/plugins/"
	return part{
		name: "cni", module: peers, inputs: []string{peers},
		packages: []string{plugins + "main/bridge", plugins + "ipam/host-local", plugins + "main/loopback"},
	}
}

func containerdPart(name, module, containerd, version string) part {
	return part{
		name: name, module: module, inputs: []string{module + "/go.mod", module + "/go.sum"},
		packages: []string{
			containerd + "/cmd/containerd", containerd + "/cmd/containerd-shim-runc-v2", containerd + "/cmd/ctr",
		},
		stamps: []string{containerd + "/version.Version=" + version},
	}
}

// kubernetesPart is one program for all of Kubernetes: linking it once instead of six
// times saves minutes. Its components take their version from what the linker stamps.
func kubernetesPart(version string) part {
	const stamp = "k8s.io/component-base/version.git"
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return part{
		name: "kube", module: components, packages: []string{"./kube"}, inputs: []string{components},
		stamps:  []string{stamp + "Version=" + version, stamp + "Major=" + major, stamp + "Minor=" + minor},
		aliases: []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"},
	}
}

// pinned returns the version of a module that another requires by its go.mod.
func pinned(repository, module, required string) (string, error) {
	name := filepath.Join(repository, filepath.FromSlash(module), "go.mod")
	content, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read the pinned version of %s: %w", required, err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == required && strings.HasPrefix(fields[1], "v") {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("read the pinned version of %s: %s does not require it", required, name)
}

// programs are the names of the files in the part's directory.
func (p part) programs() []string {
	names := make([]string, 0, len(p.packages)+len(p.aliases))
	for _, pkg := range p.packages {
		names = append(names, path.Base(pkg))
	}
	return append(names, p.aliases...)
}
