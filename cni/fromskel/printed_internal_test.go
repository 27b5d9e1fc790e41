package fromskel

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A nest that never ends would be read as often as it has braces: minutes of work.
func TestEndlessNest(t *testing.T) {
	const result = `{"cniVersion":"1.0.0"}`
	found, rest, err := findResult([]byte(result + strings.Repeat(`{"a":`, 1<<17)))
	assert.NoError(t, err)
	assert.Equal(t, result, string(found))
	assert.Len(t, rest, 5<<17)
}

// Whatever a callback prints, there is a result or an error, and a result is part of it.
func FuzzFindResult(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"cniVersion":"1.0.0"}`, `a {b} {"cniVersion":"1.0.0"} c`, `{"code":7,"msg":"m"}`, `{"code":"x","msg":{}}`,
		`{"ips":[]}{"ips":[]}`, `{"level":"info","msg":"m","code":200}{"dns":{}}`, `{{"ip4":{}}`, `{"cniVersion":"1.0.0"`, "\x00{\"\xff\":1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, printed []byte) {
		before := bytes.Clone(printed)
		result, rest, err := findResult(printed)
		assert.Equal(t, before, printed)
		assert.Equal(t, err != nil, result == nil)
		assert.LessOrEqual(t, len(rest)+len(result), len(printed))
		if result != nil {
			var members map[string]json.RawMessage
			assert.NoError(t, json.Unmarshal(result, &members))
			assert.True(t, bytes.Contains(printed, result))
		}
	})
}
