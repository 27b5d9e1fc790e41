package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Go code in a document is copied from code that compiles and runs.
func TestDocumentsShowCompiledCode(t *testing.T) {
	module := root(t)
	code := codeOfExamples(t, module)
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		files, err := filepath.Glob(filepath.Join(module, pattern))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, passage := range uncompiled(string(text), code) {
				t.Errorf("%s shows code that stands in no example or test: copy it from one, or make it one:\n%s", filepath.Base(file), passage)
			}
		}
	}
}

func TestUncompiledCodeIsFound(t *testing.T) {
	code := squeeze("func f() {\n\tg(1)\n\n\th(2)\n}\n")
	assert.Empty(t, uncompiled("```go\ng(1)\n```\nand\n```go\n\th(2)\n}\n```\n", code))
	assert.Equal(t, []string{"g(2)"}, uncompiled("```go\ng(2)\n\nh(2)\n```\n", code))
	assert.Empty(t, uncompiled("```\nnot go\n```\n", code))
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// uncompiled returns the passages of a document's Go blocks, cut at blank lines, that
// are not in the code. Indentation does not count.
func uncompiled(document, code string) (passages []string) {
	for _, block := range goBlock.FindAllStringSubmatch(document, -1) {
		for passage := range strings.SplitSeq(strings.TrimSpace(block[1]), "\n\n") {
			if !strings.Contains(code, squeeze(passage)) {
				passages = append(passages, passage)
			}
		}
	}
	return passages
}

// squeeze takes indentation and blank lines away, with a line break around each line.
func squeeze(code string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// codeOfExamples is the squeezed text of every example and of every program in examples.
func codeOfExamples(t *testing.T, module string) string {
	var b strings.Builder
	err := filepath.WalkDir(module, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		rel, err := filepath.Rel(module, path)
		if err != nil || !strings.HasPrefix(filepath.Base(path), "example") && !strings.HasPrefix(rel, "examples"+string(filepath.Separator)) {
			return err
		}
		text, err := os.ReadFile(path)
		b.WriteString(squeeze(string(text)))
		return err
	})
	require.NoError(t, err)
	return b.String()
}
