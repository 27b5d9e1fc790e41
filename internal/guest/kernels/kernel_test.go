package kernels

import (
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func cached(t *testing.T, dir, name string, k Kernel) {
	t.Helper()
	record, err := json.Marshal(k)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name, recordName), record, 0o644))
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	cached(t, dir, "a", Kernel{Release: "6.1.0-50-amd64", Line: "6.1"})
	cached(t, dir, "b", Kernel{Release: "6.12.9+deb13-amd64", Line: "old"})
	cached(t, dir, "c", Kernel{Release: "6.12.117+deb13-amd64", Line: "6.12"})
	cached(t, dir, "d", Kernel{Release: "7.3.4+deb13-amd64", Line: Newest})
	cached(t, dir, temporary+"1", Kernel{Release: "6.12.999-amd64", Line: "6.12"})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "incomplete"), 0o755))
	for pattern, release := range map[string]string{
		"6.1": "6.1.0-50-amd64", "6.12": "6.12.117+deb13-amd64", "6.12.9": "6.12.9+deb13-amd64",
		"6": "6.12.117+deb13-amd64", "newest": "7.3.4+deb13-amd64", "7.3.4+deb13-amd64": "7.3.4+deb13-amd64",
	} {
		k, err := Find(dir, pattern)
		require.NoError(t, err, pattern)
		assert.Equal(t, release, k.Release, pattern)
	}
	for _, pattern := range []string{"6.11", "6.12.1", "5", "7.3.4-"} {
		_, err := Find(dir, pattern)
		require.ErrorIs(t, err, fs.ErrNotExist, pattern)
		assert.ErrorContains(t, err, "those that can be fetched are 6.1, 6.12, 6.18, newest", pattern)
	}
	_, err := Find(filepath.Join(dir, "none"), "6.1")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "go run ./internal/guest/cmd/fetch 6.1")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", recordName), []byte("{"), 0o644))
	_, err = Find(dir, "6.12")
	require.ErrorContains(t, err, "remove its directory")
}

// Modules come after what they need, once, and built-in ones not at all.
func TestLoad(t *testing.T) {
	k := Kernel{Release: "6.1.0", dir: "/k", Modules: map[string]Module{
		"top": {File: "modules/top.ko", Depends: []string{"left", "right"}}, "left": {File: "modules/left.ko", Depends: []string{"low_er"}},
		"right": {File: "modules/right.ko", Depends: []string{"low-er", "builtin"}}, "low_er": {File: "modules/low-er.ko"},
		"builtin": {}, "broken": {File: "modules/broken.ko", Depends: []string{"gone"}},
	}}
	files, err := k.Load("top", "builtin", "left")
	require.NoError(t, err)
	assert.Equal(t, []string{"/k/modules/low-er.ko", "/k/modules/left.ko", "/k/modules/right.ko", "/k/modules/top.ko"}, files)
	_, err = k.Load("broken")
	require.ErrorContains(t, err, "broken needs module gone: kernel 6.1.0 has none")
}

func TestCompareReleases(t *testing.T) {
	ascending := []string{"6.1.0-9-amd64", "6.1.0-50-amd64", "6.12.9+deb13-amd64", "6.12.90+deb12-amd64", "6.12.90+deb12.1-amd64", "7.0.4+deb13-amd64"}
	for i := range ascending[1:] {
		assert.Negative(t, compareReleases(ascending[i], ascending[i+1]), ascending[i])
		assert.Positive(t, compareReleases(ascending[i+1], ascending[i]), ascending[i])
	}
}

func TestImagesOf(t *testing.T) {
	names := []string{
		"linux-image-6.1.0-9-amd64", "linux-image-6.1.0-50-amd64", "linux-image-6.1.0-50-amd64-unsigned", "linux-image-6.1.0-50-rt-amd64",
		"linux-image-6.1.0-50-cloud-amd64", "linux-image-6.12-amd64", "linux-image-amd64", "linux-image-6.12.117+deb13-amd64",
		"linux-image-7.3.4+deb13-amd64", "linux-image-7.3.4+deb13-amd64-dbg", "linux-headers-6.1.0-51-amd64",
	}
	assert.Equal(t, []string{"6.1.0-50-amd64", "6.1.0-9-amd64"}, imagesOf(names, "6.1"))
	assert.Equal(t, []string{"6.12.117+deb13-amd64"}, imagesOf(names, "6.12"))
	assert.Equal(t, "7.3.4+deb13-amd64", imagesOf(names, Newest)[0])
	assert.Empty(t, imagesOf(names, "5.10"))
}

func TestDebianURI(t *testing.T) {
	const targets = "Packages noble http://one.test/ubuntu/\nPackages bookworm-security http://two.test/debian-security/\nPackages bookworm http://three.test/debian/\n"
	assert.Equal(t, "http://three.test/debian/", debianURI(targets))
	assert.Empty(t, debianURI("Packages noble http://one.test/ubuntu/\n"))
	t.Setenv("CNIKIT_GUEST_ARCHIVE", "http://four.test/debian/")
	assert.Equal(t, "http://four.test/debian/", debianURI(""))
}

func TestTarget(t *testing.T) {
	for name, want := range map[string]string{
		"./boot/vmlinuz-6.1.0-50-amd64":                                        "image",
		"./usr/lib/modules/7.3.4/vmlinuz":                                      "image",
		"./boot/config-6.1.0-50-amd64":                                         "",
		"./lib/modules/6.1.0/modules.builtin":                                  "modules.builtin",
		"./lib/modules/6.1.0/modules.builtin.modinfo":                          "",
		"./usr/lib/modules/6.12.1/kernel/drivers/net/veth.ko.xz":               "modules/veth.ko.xz",
		"./lib/modules/6.1.0/kernel/drivers/net/wireguard/wireguard.ko":        "modules/wireguard.ko",
		"./lib/modules/6.1.0/kernel/net/ipv4/udp_tunnel.ko":                    "modules/udp_tunnel.ko",
		"./lib/modules/6.1.0/kernel/drivers/net/ethernet/intel/e1000/e1000.ko": "",
		"./lib/modules/6.1.0/kernel/network.ko":                                "",
		"./lib/modules/6.1.0/kernel/net":                                       "",
	} {
		assert.Equal(t, want, target(name), name)
	}
}

// imageWith is an image of the boot protocol with a packed kernel in it.
func imageWith(packed []byte) []byte {
	image := make([]byte, 0x400)
	copy(image[0x202:], "HdrS")
	image[0x1f1] = 1 // sector of setup, after the first
	binary.LittleEndian.PutUint32(image[0x248:], 0)
	binary.LittleEndian.PutUint32(image[0x24c:], uint32(len(packed)+4))
	return append(append(image, packed...), "size"...)
}

func TestPayload(t *testing.T) {
	_, err := payload(make([]byte, 4096))
	require.ErrorContains(t, err, "no header")
	image := imageWith([]byte("packed"))
	got, err := payload(image)
	require.NoError(t, err)
	assert.Equal(t, "packed", string(got))
	_, err = payload(image[:len(image)-5])
	require.ErrorContains(t, err, "outside of the image")
}
