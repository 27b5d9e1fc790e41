package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory is what all processes of the cluster, pods included, have in memory, in bytes.
// What several share counts once (PSS, proc(5)).
func (c *Cluster) Memory() (int, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, process := range all {
		// A process that has ended meanwhile has no files, and no memory.
		cgroup, _ := os.ReadFile(filepath.Join(process, "cgroup"))
		if !strings.Contains(string(cgroup), c.home.name) {
			continue
		}
		rollup, _ := os.ReadFile(filepath.Join(process, "smaps_rollup"))
		for line := range strings.Lines(string(rollup)) {
			value, found := strings.CutPrefix(line, "Pss:")
			if !found {
				continue
			}
			kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			if err != nil {
				return 0, fmt.Errorf("read memory of %s: %w", process, err)
			}
			sum += kib << 10
		}
	}
	return sum, nil
}
