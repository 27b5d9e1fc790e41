package datapath_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// shownInC returns the block of a language in the document's section about hooks in C.
func shownInC(t *testing.T, language string) string {
	t.Helper()
	section, _ := testenv.Section(t, matrixDocument, "\n## A hook in C\n", "\n## Order\n")
	_, block, found := strings.Cut(section, "\n```"+language+"\n")
	require.True(t, found, "the section has a block of %s", language)
	block, _, found = strings.Cut(block, "```\n")
	require.True(t, found)
	return block
}

// compileDocument compiles the document's hooks as the document says. A stand-in for libbpf's header comes last among the directories.
func compileDocument(t *testing.T) (object string) {
	t.Helper()
	testenv.Tool(t, "clang")
	headers, err := filepath.Abs(filepath.Join("testdata", "include"))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hooks.c"), []byte(shownInC(t, "c")), 0o644))
	command := exec.CommandContext(t.Context(), "sh", "-c", strings.TrimSpace(shownInC(t, "sh"))+` "$@"`, "sh", "-Werror", "-idirafter", headers)
	command.Dir = dir
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	return filepath.Join(dir, "hooks.o")
}

// The hooks that the document shows compile with its command and do what it says, and their maps are found by the names that the plan tells.
func TestDocumentedHooks(t *testing.T) {
	testenv.BPF(t)
	spec := program(ebpf.XDP, 0, datapathPass)
	spec.Programs = map[string]*ebpf.ProgramSpec{"xdp": spec.Programs["entry"]}
	plan, err := instrument(spec, compileDocument(t), 100)
	require.NoError(t, err)
	loaded := datapathtest.Load(t, plan.Build())
	for length, verdict := range map[int]int32{60: 3, 100: 3, 101: 1} {
		assert.Equal(t, verdict, datapathtest.Run(t, loaded.Programs["xdp"], make([]byte, length)).Verdict, "%d bytes", length)
	}
	count := func(hook, name string, key uint32) (n uint64) {
		require.NoError(t, loaded.Maps[plan.Maps("xdp", "acme", hook)[name]].Lookup(key, &n))
		return n
	}
	assert.Equal(t, uint64(1), count("long", "dropped", 0))
	for verdict, n := range []uint64{0, 1, 0, 2, 0} {
		assert.Equal(t, n, count("account", "verdicts", uint32(verdict)), "verdict %d", verdict)
	}
}

// What has a verdict argument is no program that the kernel takes alone.
func TestDocumentedHooksAlone(t *testing.T) {
	testenv.BPF(t)
	object := compileDocument(t)
	for name, refused := range map[string]bool{"drop_long": false, "reflect": true, "account": true} {
		spec, err := ebpf.LoadCollectionSpec(object)
		require.NoError(t, err)
		spec.Programs = map[string]*ebpf.ProgramSpec{name: spec.Programs[name]}
		collection, err := ebpf.NewCollection(spec)
		if !refused {
			require.NoError(t, err)
			collection.Close()
			continue
		}
		require.ErrorContains(t, err, "R2 !read_ok", name)
	}
}
