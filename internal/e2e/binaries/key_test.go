package binaries

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKeyNamesAllThatMakesTheOutcome(t *testing.T) {
	keyOf := func(t *testing.T, repository string, p part) string {
		t.Helper()
		key, err := p.key(t.Context(), repository)
		require.NoError(t, err)
		return key
	}
	want := keyOf(t, newRepository(t), hello())
	assert.Len(t, want, 2*keyBytes)
	assert.Equal(t, want, keyOf(t, newRepository(t), hello()), "another checkout has the same key")
	for name, change := range map[string]func(repository string, p *part){
		"source":    func(repository string, _ *part) { write(t, repository, "tiny/hello/main.go", "package main") },
		"new file":  func(repository string, _ *part) { write(t, repository, "tiny/hello/more.go", "package main") },
		"checksums": func(repository string, _ *part) { write(t, repository, "tiny/go.sum", "x v1 h1:y\n") },
		"requirement": func(repository string, _ *part) {
			write(t, repository, "tiny/go.mod", "module tiny\n\ngo 1.25.0\n\nrequire x.example v1.0.0\n")
		},
		"input":    func(repository string, p *part) { p.inputs = []string{"tiny/hello"} },
		"packages": func(_ string, p *part) { p.packages = append(p.packages, "./more") },
		"stamp":    func(_ string, p *part) { p.stamps = []string{"main.version=v2"} },
		"alias":    func(_ string, p *part) { p.aliases = nil },
		"name":     func(_ string, p *part) { p.name = "hullo" },
	} {
		t.Run(name, func(t *testing.T) {
			repository, p := newRepository(t), hello()
			change(repository, &p)
			assert.NotEqual(t, want, keyOf(t, repository, p))
		})
	}
	t.Run("experiment of the toolchain", func(t *testing.T) {
		t.Setenv("GOEXPERIMENT", "nogreenteagc")
		assert.NotEqual(t, want, keyOf(t, newRepository(t), hello()))
	})
	t.Run("tests and files of others do not count", func(t *testing.T) {
		repository := newRepository(t)
		write(t, repository, "tiny/hello/main_test.go", "package main")
		write(t, repository, "other/main.go", "package main")
		assert.Equal(t, want, keyOf(t, repository, hello()))
	})
	t.Run("missing input", func(t *testing.T) {
		p := hello()
		p.inputs = append(p.inputs, "absent")
		_, err := p.key(t.Context(), newRepository(t))
		require.ErrorContains(t, err, "read what hello is built from")
	})
}
