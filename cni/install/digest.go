package install

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// settling is for how long the times of a file cannot tell two changes apart: they advance with the kernel's tick, on some
// file systems in steps of a second.
const settling = 2 * time.Second

// A digester tells the content of files, and remembers it for as long as a file is the same inode with the same size and
// times. It is safe for concurrent use.
type digester struct {
	now func() time.Time // time.Now but in tests

	mu    sync.Mutex
	known map[string]digested // by path
}

// digested is what the content of a file says.
type digested struct {
	ident           ident
	digest, version string
}

func newDigester() *digester { return &digester{now: time.Now, known: map[string]digested{}} }

// read returns the regular file at path as a program. info is of a look before.
func (d *digester) read(ctx context.Context, path string, info fs.FileInfo) (program, error) {
	p := program{mode: modeOf(info), size: info.Size()}
	id, ok := identOf(info)
	if ok {
		d.mu.Lock()
		known := d.known[path]
		d.mu.Unlock()
		if known.ident == id {
			p.digest, p.version = known.digest, known.version
			return p, nil
		}
	}
	settled := ok && d.now().Sub(id.changed()) > settling
	content, after, err := digest(ctx, path)
	if err != nil {
		return program{}, err
	}
	if now, _ := identOf(after); settled && now == id {
		content.ident = id
		d.mu.Lock()
		d.known[path] = content
		d.mu.Unlock()
	}
	p.digest, p.version = content.digest, content.version
	return p, nil
}

// digest reads a file, and returns what it was when the reading ended.
func digest(ctx context.Context, path string) (digested, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return digested{}, nil, err
	}
	defer func() { _ = f.Close() }() // read only
	h := newHash()
	if _, err := io.Copy(h, contextReader{ctx, f}); err != nil {
		return digested{}, nil, fmt.Errorf("read %s: %w", path, err)
	}
	info, err := f.Stat()
	return digested{digest: sumOf(h), version: versionOf(f)}, info, err
}

func newHash() hash.Hash { return sha256.New() }

func sumOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// versionOf returns the version and revision that a Go program was built from, "" for other files.
func versionOf(r io.ReaderAt) string {
	info, err := buildinfo.Read(r)
	if err != nil {
		return ""
	}
	return describe(info)
}

// describe returns, for instance, "v1.2.3", "devel 0123456789ab+dirty", or a pseudo-version, which has the revision in it.
func describe(info *debug.BuildInfo) string {
	version := strings.Trim(info.Main.Version, "()")
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	revision := fmt.Sprintf("%.12s", set["vcs.revision"])
	if revision == "" || strings.Contains(version, revision) {
		return version
	}
	if set["vcs.modified"] == "true" {
		revision += "+dirty"
	}
	return strings.TrimSpace(strings.TrimSuffix(version, "+dirty") + " " + revision)
}

// A contextReader fails once its context ended.
type contextReader struct {
	ctx context.Context // of the one call that reads
	r   io.Reader
}

func (r contextReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
