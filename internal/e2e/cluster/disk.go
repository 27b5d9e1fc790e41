package cluster

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// disk is what a node keeps when it is off: a directory per place in its file system.
type disk struct {
	dir string
}

// kept are the directories of a node that start empty and are kept.
func kept() []string { return []string{"/opt", "/var/lib", "/var/log"} }

// settings are the sysctls that the kubelet writes, with the values that it wants. The
// node has files in their place, because they are the machine's and no namespace's.
func settings() map[string]string {
	return map[string]string{
		"kernel/keys/root_maxbytes": "25000000",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
	}
}

func newDisk(dir string) (disk, error) {
	d := disk{dir}
	for _, place := range append(kept(), "/etc", "/etc.work", "/proc/sys") {
		if err := os.MkdirAll(d.path(place), 0o755); err != nil {
			return d, fmt.Errorf("make disk: %w", err)
		}
	}
	return d, nil
}

// path is where a file of the node is on the disk. Of /etc, the disk has what differs
// from the machine's.
func (d disk) path(p string) string {
	return filepath.Join(d.dir, p)
}

// mount is called inside the mount namespace of the node. /etc is the machine's, with
// what the node writes on the disk; /run is empty at each boot.
func (d disk) mount() error {
	if err := clearRun(); err != nil {
		return err
	}
	if err := unix.Mount("run", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	layers := fmt.Sprintf("lowerdir=/etc,upperdir=%s,workdir=%s", d.path("/etc"), d.path("/etc.work"))
	if err := unix.Mount("etc", "/etc", "overlay", 0, layers); err != nil {
		return fmt.Errorf("mount /etc (%s): %w", layers, err)
	}
	for _, place := range kept() {
		if err := bind(d.path(place), place); err != nil {
			return err
		}
	}
	return d.mountSettings()
}

// mountSettings also gives the node a boot ID of its own.
func (d disk) mountSettings() error {
	files := settings()
	files["kernel/random/boot_id"] = bootID()
	for key, value := range files {
		place := filepath.Join("/proc/sys", key)
		file := d.path("/proc/sys/" + strings.ReplaceAll(key, "/", "."))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := bind(file, place); err != nil {
			return err
		}
	}
	return nil
}

func bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", from, to, err)
	}
	return nil
}

// clearRun unmounts what the machine has below /run, which would stay busy for as long
// as the node runs: other tests' network namespaces, for example.
func clearRun() error {
	table, err := os.ReadFile("/proc/1/mounts") // this thread has no entry in the /proc of the node
	if err != nil {
		return fmt.Errorf("clear /run: %w", err)
	}
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "/run/") {
			continue
		}
		// A mount below one that is gone already is gone too.
		err := unix.Unmount(fields[1], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("unmount %s: %w", fields[1], err)
		}
	}
	return nil
}

// bootID is a random UUID (RFC 9562, version 4).
func bootID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
