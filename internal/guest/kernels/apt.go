package kernels

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// archive is an apt with sources and lists of its own, in dir. It needs no rights and
// changes nothing of the machine's.
type archive struct{ dir string }

// openArchive downloads the lists of sources, which are lines of a sources.list. The
// directory must be there and be used for nothing else.
func openArchive(ctx context.Context, dir string, sources []string) (*archive, error) {
	a := &archive{dir: dir}
	for _, sub := range []string{"lists/partial", "cache/archives/partial", "packages"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(a.path("sources.list"), []byte(strings.Join(sources, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	if _, err := a.run(ctx, "apt-get", "-qq", "update"); err != nil {
		return nil, fmt.Errorf("read Debian's archive: %w\nsources:\n%s", err, strings.Join(sources, "\n"))
	}
	return a, nil
}

func (a *archive) path(name string) string { return filepath.Join(a.dir, name) }

// run runs a command of apt and returns what it says.
func (a *archive) run(ctx context.Context, name string, args ...string) (string, error) {
	options := []string{
		"Dir::Etc::sourcelist=" + a.path("sources.list"), "Dir::Etc::sourceparts=-",
		"Dir::State::lists=" + a.path("lists"), "Dir::Cache=" + a.path("cache"),
		"Acquire::Languages=none", "Acquire::Retries=3", "APT::Update::Error-Mode=any",
		// apt's own user may not enter these directories. Signatures and digests are
		// checked all the same.
		"APT::Sandbox::User=root",
	}
	for _, option := range options {
		args = append([]string{"-o", option}, args...)
	}
	return command(ctx, a.path("packages"), name, args...)
}

// command runs a program in a directory and returns its standard output; what it says
// on the other channel is in the error.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second // apt's helpers hold its output a while longer
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", name, err, stderr.String())
	}
	return stdout.String(), nil
}

// pkg is a package of the archive, and where it is when it has been downloaded.
type pkg struct {
	name, file, digest string
}

// kernel returns the release and the packages of the newest kernel of a line that can be
// downloaded. The list also names some that others merely mention.
func (a *archive) kernel(ctx context.Context, line string) (string, []pkg, error) {
	text, err := a.run(ctx, "apt-cache", "pkgnames", "linux-")
	if err != nil {
		return "", nil, err
	}
	names := strings.Fields(text)
	releases := imagesOf(names, line)
	for _, release := range releases {
		pkgs, err := a.packages(ctx, release, names)
		if err == nil {
			return release, pkgs, nil
		}
		if errors.Is(err, context.Cause(ctx)) {
			return "", nil, err
		}
	}
	return "", nil, fmt.Errorf("the archive has no kernel %s (it names %d that cannot be had)", line, len(releases))
}

// imagesOf returns the releases of a line's ordinary kernels among the names of packages,
// newest first.
func imagesOf(names []string, line string) []string {
	image := regexp.MustCompile(`^linux-image-([0-9]+\.[0-9]+\.[0-9]+(?:-[0-9]+)?(?:\+[a-z0-9.~]+)?-amd64)$`)
	var releases []string
	for _, name := range names {
		match := image.FindStringSubmatch(name)
		if match != nil && (line == Newest || under(match[1], line)) {
			releases = append(releases, match[1])
		}
	}
	slices.SortFunc(releases, func(a, b string) int { return compareReleases(b, a) })
	return slices.Compact(releases)
}

// packages returns what makes up a kernel: one package, or since 7.1 several, of which
// the first is empty.
func (a *archive) packages(ctx context.Context, release string, names []string) ([]pkg, error) {
	parts := []string{"linux-binary-", "linux-modules-", "linux-base-"}
	parts = slices.DeleteFunc(parts, func(part string) bool { return !slices.Contains(names, part+release) })
	if len(parts) == 0 {
		parts = []string{"linux-image-"}
	}
	var pkgs []pkg
	for _, part := range parts {
		p, err := a.describe(ctx, part+release)
		if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
	return pkgs, nil
}

// describe asks what would be downloaded: 'URI' FILE SIZE SHA256:DIGEST.
func (a *archive) describe(ctx context.Context, name string) (pkg, error) {
	text, err := a.run(ctx, "apt-get", "download", "--print-uris", name)
	if err != nil {
		return pkg{}, err
	}
	fields := strings.Fields(text)
	if len(fields) != 4 {
		return pkg{}, fmt.Errorf("apt-get download --print-uris %s: want four fields, have %q", name, text)
	}
	digest, ok := strings.CutPrefix(fields[3], "SHA256:")
	if !ok {
		return pkg{}, fmt.Errorf("package %s has no SHA-256 digest in the archive's list, but %q", name, fields[3])
	}
	return pkg{name: name, file: a.path(filepath.Join("packages", filepath.Base(fields[1]))), digest: digest}, nil
}

// download fetches packages; apt compares them with their digests.
func (a *archive) download(ctx context.Context, pkgs []pkg) error {
	args := []string{"-qq", "download"}
	for _, p := range pkgs {
		args = append(args, p.name)
	}
	_, err := a.run(ctx, "apt-get", args...)
	return err
}

// machineSources returns lines for suites of Debian's archive as this machine reaches it.
func machineSources(ctx context.Context, suites []string) ([]string, error) {
	text, err := command(ctx, "", "apt-get", "--no-release-info", "indextargets", "--format", "$(CREATED_BY) $(RELEASE) $(REPO_URI)", "Created-By: Packages")
	if err != nil {
		return nil, fmt.Errorf("ask apt for this machine's sources: %w", err)
	}
	uri := debianURI(text)
	if uri == "" {
		return nil, errors.New("the kernels are Debian's, and this machine's apt sources have no suite of Debian: add one, or name the archive in CNIKIT_GUEST_ARCHIVE")
	}
	var lines []string
	for _, suite := range suites {
		lines = append(lines, fmt.Sprintf("deb [arch=amd64 target=Packages%s] %s %s main", keyring(), uri, suite))
	}
	return lines, nil
}

// debianURI picks the main archive from lines of "Packages RELEASE URI".
func debianURI(targets string) string {
	if uri := os.Getenv("CNIKIT_GUEST_ARCHIVE"); uri != "" {
		return uri
	}
	suites := []string{"bookworm", "trixie", "forky", "duke", "sid", "oldstable", "stable", "testing", "unstable"}
	for line := range strings.Lines(targets) {
		fields := strings.Fields(line)
		if len(fields) == 3 && slices.Contains(suites, fields[1]) {
			return fields[2]
		}
	}
	return ""
}

// keyring names Debian's keys where a machine trusts them for Debian's archive alone.
func keyring() string {
	const file = "/usr/share/keyrings/debian-archive-keyring.gpg"
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return " signed-by=" + file
}
