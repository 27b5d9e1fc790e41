package hostlocal

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// boot returns what tells this run of the kernel from every other (random(4)), and when
// it began by the clock as it is now. Containers have the host's, unless their manager mounts
// another over it: those and the host then make the index anew after each other.
func boot() (id string, began time.Time, err error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", time.Time{}, fmt.Errorf("read boot ID: %w", err)
	}
	id = string(bytes.TrimSpace(text))
	if len(id) == 0 || len(id) > len(header{}.Boot) {
		return "", time.Time{}, fmt.Errorf("read boot ID: %q is none", id)
	}
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return "", time.Time{}, fmt.Errorf("read time since boot: %w", err)
	}
	return id, time.Now().Add(-time.Duration(up.Nano())), nil
}
