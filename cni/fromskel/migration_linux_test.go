package fromskel_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// stages are the main functions of the plugin of docs/migrating-from-skel.md, by the
// name of the executable.
func stages() map[string]func() {
	return map[string]func(){
		"search-skel": mainWithSkel, "search-callbacks": mainWithCallbacks, "search-half-way": mainHalfWay, "search-typed": mainTyped,
	}
}

// Each stage of the migration is a plugin that does the same.
func TestMigration(t *testing.T) {
	testenv.NetAdmin(t)
	w := newWorld(t)
	const prev = `"prevResult":{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.5/24"}],"dns":{"search":["a.example"]}}`
	const head = `{"cniVersion":"1.0.0","name":"lan","type":"search","search":["b.example"]`
	const want = `{"cniVersion":"1.0.0","dns":{"search":["a.example","b.example"]},"ips":[{"address":"10.0.0.5/24"}]}`
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	for stage := range stages() {
		require.NoError(t, os.Symlink(self, filepath.Join(dir, stage)))
		run := func(command, stdin string) outcome {
			x := w.call(testCase{command: command})
			return execute(t, dir, side(stage), call{env: x.env, stdin: stdin})
		}
		assert.Equal(t, outcome{documents: 1, version: "1.0.0", result: want}, run("ADD", head+`,`+prev+`}`), stage)
		assert.Equal(t, outcome{}, run("CHECK", head+`,"prevResult":`+want+`}`), stage)
		assert.Equal(t, outcome{}, run("DEL", head+`}`), stage)
		assert.Equal(t, 1, run("CHECK", head+`,`+prev+`}`).exit, stage)
		assert.Equal(t, 1, run("ADD", head+`}`).exit, stage)
	}
}
