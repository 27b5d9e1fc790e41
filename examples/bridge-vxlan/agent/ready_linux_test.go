package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReady(t *testing.T) {
	path := filepath.Join(newRunDir(t), "status.json")
	ask := func() (code int, said string) {
		env, stdout, stderr := outside()
		code = program(t.Context(), []string{"ready", "-status-file", path}, env)
		assert.Empty(t, stdout.String())
		return code, stderr.String()
	}
	code, said := ask()
	assert.Equal(t, 1, code)
	assert.Equal(t, "cnikit-agent: not ready: the agent has not reported yet, "+path+" does not exist\n", said)
	for content, want := range map[string]string{
		`{"ready":true,"problems":[]}`:          "",
		`{"ready":false,"reason":"no address"}`: "cnikit-agent: not ready: no address\n",
		`{}`:                                    "cnikit-agent: not ready: the agent gives no reason in " + path + ", see its log\n",
		`{"ready":`:                             "cnikit-agent: read status: " + path + ": unexpected end of JSON input; see whether an agent writes it\n",
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		code, said = ask()
		assert.Equal(t, want != "", code == 1, content)
		assert.Equal(t, want, said)
	}
}
