package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// key names the outcome of a build by all that makes it: the sources and checksums, the
// flags, and the Go that will build it.
func (p part) key(ctx context.Context, repository string) (string, error) {
	toolchain, err := goVersion(ctx, filepath.Join(repository, p.module))
	if err != nil {
		return "", fmt.Errorf("ask for the Go that builds %s: %w", p.name, err)
	}
	sum := sha256.New()
	for _, text := range [][]string{{p.name, p.module, toolchain}, flags(), p.packages, p.stamps, p.aliases} {
		fmt.Fprintf(sum, "%q\n", text)
	}
	for _, input := range p.inputs {
		if err := hashFiles(sum, repository, input); err != nil {
			return "", fmt.Errorf("read what %s is built from: %w", p.name, err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:keyBytes]), nil
}

// keyBytes is the length of a key: more than enough to tell a few directories apart.
const keyBytes = 8

// goVersion returns the version and the target of the Go that builds a module. The
// module's go line may ask for another one than is installed.
func goVersion(ctx context.Context, module string) (string, error) {
	env := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT")
	env.Dir = module
	env.Env = buildEnv()
	var stderr strings.Builder
	env.Stderr = &stderr
	out, err := env.Output()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, stderr.String())
	}
	return string(out), nil
}

// hashFiles adds the names and contents of a file, or of all files of a directory but
// tests.
func hashFiles(sum io.Writer, repository, input string) error {
	return filepath.WalkDir(filepath.Join(repository, input), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(repository, name)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(sum, "%q %d\n%s\n", filepath.ToSlash(relative), len(content), content)
		return err
	})
}
