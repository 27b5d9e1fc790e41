package binaries

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Set is what [Ensure] found or built. Its files are shared: nobody changes them.
type Set struct {
	dirs map[string]string // part: its directory
}

// Path returns the absolute path of a program, all in one directory having one prefix:
//
//	kube/{etcd,kube-apiserver,kube-controller-manager,kube-scheduler,kubelet,kubectl}
//	containerd-1.6/{containerd,containerd-shim-runc-v2,ctr}
//	containerd-2.4/{containerd,containerd-shim-runc-v2,ctr}
//	cni/{bridge,host-local,loopback}
//	pause
//	trace
//
// It panics when there is no such prefix.
func (s *Set) Path(name string) string {
	part, program, nested := strings.Cut(name, "/")
	dir, ok := s.dirs[part]
	if !ok {
		panic(fmt.Sprintf("binaries: no part of the set has %q", name))
	}
	if !nested {
		program = part
	}
	return filepath.Join(dir, program)
}
