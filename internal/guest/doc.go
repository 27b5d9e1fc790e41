// Package guest runs a static Linux program, as a rule a test binary, on another kernel
// than this machine's: in a throw-away virtual machine that boots in a few seconds. It is
// for tests of what the kernel here lacks or refuses, and of older and newer kernels.
//
//	func TestInGuests(t *testing.T) {
//		for _, kernel := range guest.Kernels(t) {
//			t.Run(kernel, func(t *testing.T) {
//				guest.Test(t, "^TestKernel", guest.Options{Kernel: kernel, Modules: []string{"veth"}})
//			})
//		}
//	}
//
// Start with [Test], which runs tests of the package under test; those that make sense in
// a guest alone begin with [github.com/cnikit/cnikit/internal/testenv.InGuest]. [Run] runs
// any program.
//
// # What a guest has
//
// One program runs as root, with the usual file systems mounted (proc, sysfs, devtmpfs,
// bpf, cgroup2, tracefs, and tmpfs at /tmp and /run), the loopback interface up, no other
// interface, no other program and no shell. CI is true in its environment, so that a test
// whose needs are not met fails; CNIKIT_GUEST is the kernel's release. What it writes into
// the directory that CNIKIT_GUEST_OUT names comes back. When it ends, the machine ends,
// whatever else still runs there.
//
// # What it takes
//
// qemu-system-x86_64, an amd64 machine and the kernels of
// [github.com/cnikit/cnikit/internal/guest/kernels]; scripts/setup.sh guest brings all of
// it. No rights are needed. Guests are emulated (TCG), so that they are the same on every
// machine: expect code to run about ten times slower, and do not measure times there.
package guest
