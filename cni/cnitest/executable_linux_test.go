package cnitest_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// linked is an executable for a machine that is linked for a loader that is not there.
func linked(t *testing.T, machine elf.Machine) string {
	t.Helper()
	const loader = "/nowhere/ld.so\x00"
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	program := elf.Prog64{Type: uint32(elf.PT_INTERP), Off: 64 + 56, Filesz: uint64(len(loader))}
	var file bytes.Buffer
	require.NoError(t, binary.Write(&file, binary.LittleEndian, header))
	require.NoError(t, binary.Write(&file, binary.LittleEndian, program))
	return file.String() + loader
}

// TestPluginThatCannotBeExecuted: the message names the file, the reason and the way out,
// whether it is the plugin or one before it, and nothing is left.
func TestPluginThatCannotBeExecuted(t *testing.T) {
	testenv.NetAdmin(t)
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	for name, c := range map[string]struct{ content, want string }{
		"no interpreter":  {"#!/nowhere/python -u\n", "there is no interpreter /nowhere/python, which its first line names; install it, or name another"},
		"bad interpreter": {"#!/etc/passwd\n", "this user has no right to execute it, or its interpreter; see both"},
		"CR LF":           {"#!/bin/sh\r\nexit 0\r\n", `its lines end with CR LF, so that the interpreter of its first line is "/bin/sh\r"; write the file with LF alone`},
		"no first line":   {"echo {}\n", "it is no executable file and begins with no interpreter; let the first line be #!/bin/sh, or the like"},
		"another machine": {linked(t, elf.EM_68K), "it is an executable for another machine; build it for GOARCH=" + runtime.GOARCH},
		"no loader":       {linked(t, machine), "the loader that it was linked for is missing; link it statically (in Go with CGO_ENABLED=0)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, tmp := t.TempDir(), t.TempDir()
			t.Setenv("TMPDIR", tmp)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "lost"), []byte(c.content), 0o755))
			want := filepath.Join(dir, "lost") + " cannot be executed: " + c.want
			for role, target := range map[string]cnitest.Target{
				"the plugin": {Config: []byte(`{"type": "lost"}`), Path: []string{dir}},
				"one before": {
					Plugin: "passing", Handler: passing(), Path: []string{dir}, Profile: cnitest.ProfileChained,
					Config: []byte(`{"plugins": [{"type": "lost"}, {"type": "passing"}]}`),
				},
			} {
				_, err := cnitest.Examine(t.Context(), target, cnitest.Options{})
				require.ErrorContains(t, err, want, role)
			}
			left, err := os.ReadDir(tmp)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// TestLinkToWhatCannotBeExecuted: the file is named that it leads to, which can be mended.
func TestLinkToWhatCannotBeExecuted(t *testing.T) {
	testenv.NetAdmin(t)
	dir, links := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "mine-amd64")
	require.NoError(t, os.WriteFile(file, []byte("#!/nowhere/sh\n"), 0o755))
	relative, err := filepath.Rel(links, file)
	require.NoError(t, err)
	for _, to := range []string{file, relative} {
		link := filepath.Join(links, "mine")
		require.NoError(t, os.Symlink(to, link))
		_, err := cnitest.Examine(t.Context(), cnitest.Target{Config: []byte(`{"type": "mine"}`), Path: []string{links}}, cnitest.Options{})
		require.ErrorContains(t, err, file+" cannot be executed", to)
		require.NoError(t, os.Remove(link))
	}
}

// TestPluginThatBecomesNoExecutable is one of whom VERSION works: the case tells of it.
func TestPluginThatBecomesNoExecutable(t *testing.T) {
	testenv.NetAdmin(t)
	testenv.Tool(t, "sh")
	for first, want := range map[string]string{
		`printf '#!/nowhere/sh\n' >'DIR/new'; chmod +x 'DIR/new'; mv 'DIR/new' 'DIR/spoiled'`: "DIR/spoiled cannot be executed: there is no interpreter /nowhere/sh, which its first line names; " +
			"install it, or name another: fork/exec DIR/spoiled: no such file or directory",
		`rm 'DIR/spoiled'`: `no executable "spoiled" in DIR`, // which CNI_PATH and the target have, and which is named once
	} {
		dir := t.TempDir()
		spoiled := &cnitest.Scripted{Replies: map[cni.Command]cnitest.Reply{cni.CommandVersion: {
			Stdout: `{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}`, First: strings.ReplaceAll(first, "DIR", dir),
		}}}
		require.NoError(t, spoiled.Install(dir, "spoiled"))
		r, err := cnitest.Examine(t.Context(), cnitest.Target{Config: []byte(`{"type": "spoiled"}`), Path: []string{dir}},
			cnitest.Options{Run: "^(protocol/result|del/succeeds)$"})
		require.NoError(t, err)
		require.Equal(t, cnitest.FailedToRun, r.Verdict())
		require.Equal(t, strings.ReplaceAll(want, "DIR", dir), r.Outcomes[0].Reason)
	}
}
