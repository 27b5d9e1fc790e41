package cni_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/cni"
)

func TestProcessEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		env  []string
		want []string // parts of the error; none: success
	}{
		"add/complete":                   {environment("ADD"), nil},
		"add/path and args are optional": {environment("ADD", "CNI_PATH", "CNI_ARGS"), nil},
		"add/all that is missing is named": {environment("ADD", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"),
			[]string{`CNI_CONTAINERID="" is missing`, `CNI_NETNS="" is missing`, `CNI_IFNAME="" is missing`}},
		"add/all that is bad is named": {environment("ADD", "CNI_CONTAINERID=-a", "CNI_NETNS=", "CNI_IFNAME=..", "CNI_ARGS=x"),
			[]string{"CNI_CONTAINERID=\"-a\" must start", "CNI_NETNS", "CNI_IFNAME=\"..\" is not", "CNI_ARGS=\"x\" does not parse"}},
		"check/needs a namespace":             {environment("CHECK", "CNI_NETNS"), []string{"CNI_NETNS"}},
		"del/needs none":                      {environment("DEL", "CNI_NETNS", "CNI_PATH", "CNI_ARGS"), nil},
		"del/bad arguments do not stop it":    {environment("DEL", "CNI_ARGS=x"), nil},
		"del/needs container and name":        {environment("DEL", "CNI_CONTAINERID", "CNI_IFNAME"), []string{"CNI_CONTAINERID", "CNI_IFNAME"}},
		"status/needs nothing":                {[]string{"CNI_COMMAND=STATUS"}, nil},
		"gc/needs nothing":                    {[]string{"CNI_COMMAND=GC"}, nil},
		"version/needs nothing":               {[]string{"CNI_COMMAND=VERSION"}, nil},
		"status/ignores attachment variables": {environment("STATUS", "CNI_IFNAME=a/b"), nil},
		"command/unknown":                     {environment("UPDATE"), []string{`CNI_COMMAND="UPDATE" is not one of`}},
		"command/case matters":                {environment("add"), []string{`CNI_COMMAND="add"`}},
		"command/the first entry counts":      {append(environment("DEL"), "CNI_COMMAND=X"), nil},
		"id/slash":                            {environment("ADD", "CNI_CONTAINERID=a/b"), []string{`CNI_CONTAINERID="a/b" contains '/'`}},
		"id/all allowed characters":           {environment("ADD", "CNI_CONTAINERID=0aZ_.-"), nil},
		"id/not ASCII":                        {environment("ADD", "CNI_CONTAINERID=aü"), []string{"CNI_CONTAINERID"}},
		"ifname/15 bytes":                     {environment("ADD", "CNI_IFNAME=abcdefghijklmno"), nil},
		"ifname/16 bytes":                     {environment("ADD", "CNI_IFNAME=abcdefghijklmnop"), []string{"CNI_IFNAME", "16 bytes"}},
		"ifname/15 runes, 16 bytes":           {environment("ADD", "CNI_IFNAME=abcdefghijklmnü"), []string{"16 bytes"}},
		"ifname/slash":                        {environment("ADD", "CNI_IFNAME=a/b"), []string{`contains '/'`}},
		"ifname/colon":                        {environment("ADD", "CNI_IFNAME=a:1"), []string{`contains ':'`}},
		"ifname/white space":                  {environment("ADD", "CNI_IFNAME=a\u00a0b"), []string{"CNI_IFNAME"}},
		"ifname/dot":                          {environment("ADD", "CNI_IFNAME=."), []string{"CNI_IFNAME"}},
		"ifname/template":                     {environment("ADD", "CNI_IFNAME=eth%d"), []string{"CNI_IFNAME=\"eth%d\" contains '%'"}},
		"ifname/all":                          {environment("ADD", "CNI_IFNAME=all"), []string{"CNI_IFNAME=\"all\" stands for"}},
		"ifname/default":                      {environment("ADD", "CNI_IFNAME=default"), []string{"CNI_IFNAME=\"default\" stands for"}},
		"ifname/all0":                         {environment("ADD", "CNI_IFNAME=all0"), nil},
		"del/tolerates a template":            {environment("DEL", "CNI_IFNAME=eth%d"), nil},
		"del/tolerates the name all":          {environment("DEL", "CNI_IFNAME=all"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := run(testPlugin(), c.env, network("1.1.0"))
			if c.want == nil {
				assert.Zero(t, a.code, a.stdout)
				return
			}
			e := a.failed(t)
			assert.Equal(t, cni.CodeInvalidEnvironment, e.Code)
			assert.Equal(t, "1.1.0", e.CNIVersion)
			for _, part := range c.want {
				assert.Contains(t, e.Msg, part)
			}
		})
	}
}

func TestProcessWithoutCommand(t *testing.T) {
	p := testPlugin()
	p.About = "CNI test plugin v1"
	a := runContext(context.Background(), p, nil, iotest.ErrReader(errors.New("standard input was read")))
	e := a.failed(t)
	assert.Equal(t, cni.CodeInvalidEnvironment, e.Code)
	assert.Contains(t, e.Msg, "CNI_COMMAND is missing")
	assert.Equal(t, "1.1.0", e.CNIVersion)
	assert.Contains(t, a.stderr, "CNI test plugin v1\nCNI protocol versions supported: 0.1.0, 0.2.0")

	p.About = ""
	assert.Contains(t, run(p, nil, "").stderr, "CNI plugin test\n")
}

func TestProcessInput(t *testing.T) {
	t.Run("an error while reading", func(t *testing.T) {
		e := runContext(context.Background(), testPlugin(), environment("ADD"), iotest.ErrReader(io.ErrUnexpectedEOF)).failed(t)
		assert.Equal(t, cni.CodeIO, e.Code)
		assert.Contains(t, e.Msg, "read standard input: unexpected EOF")
	})
	t.Run("a stream that never ends does not outlast the context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		open, writer := io.Pipe()
		defer writer.Close()
		e := runContext(ctx, testPlugin(), environment("ADD"), open).failed(t)
		assert.Equal(t, cni.CodeTryAgain, e.Code)
	})
}

type handlerFunc func(context.Context, cni.Invocation) ([]byte, error)

func (f handlerFunc) Handle(ctx context.Context, inv cni.Invocation) ([]byte, error) {
	return f(ctx, inv)
}

// brokenWriter is a runtime that went away.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestProcessRefusesBeforeTheHandler(t *testing.T) {
	var stderr strings.Builder
	called := handlerFunc(func(_ context.Context, inv cni.Invocation) ([]byte, error) {
		assert.Fail(t, "the handler is called", "%s", inv.Command)
		return nil, nil
	})
	process := cni.Process{Env: environment("DEL", "CNI_IFNAME=a/b"), Stdin: strings.NewReader(network("1.0.0")), Stderr: &stderr}
	assert.Equal(t, 1, process.Run(t.Context(), called))
	assert.Empty(t, stderr.String(), "the error is on standard output")
}

// A handler that is no Plugin may have said which version its error is of.
func TestProcessKeepsTheVersionOfAnError(t *testing.T) {
	var out strings.Builder
	process := cni.Process{Env: environment("DEL"), Stdin: strings.NewReader(network("1.0.0")), Stdout: &out}
	process.Run(t.Context(), handlerFunc(func(context.Context, cni.Invocation) ([]byte, error) {
		return nil, &cni.Error{CNIVersion: "0.4.0", Code: cni.CodeIO, Msg: "m"}
	}))
	assert.Contains(t, out.String(), `"cniVersion":"0.4.0"`)
}

func TestProcessOutput(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		doc     string
		err     error
		want    string
	}{
		"add/no document":     {"ADD", "", nil, "ADD with 0 bytes"},
		"add/two documents":   {"ADD", "{}{}", nil, "answered ADD with not JSON"},
		"del/a document":      {"DEL", "{}", nil, "DEL with 2 bytes"},
		"no code, no version": {"ADD", "", &cni.Error{Msg: "bare"}, "bare"},
		"no Error at all":     {"ADD", "", errors.New("plain"), "plain"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			h := handlerFunc(func(context.Context, cni.Invocation) ([]byte, error) { return []byte(c.doc), c.err })
			process := cni.Process{Env: environment(c.command), Stdin: strings.NewReader(network("1.0.0")), Stdout: &out}
			e := answer{code: process.Run(context.Background(), h), stdout: out.String()}.failed(t)
			assert.Equal(t, cni.CodeInternal, e.Code)
			assert.Equal(t, "1.0.0", e.CNIVersion)
			assert.Contains(t, e.Msg, c.want)
		})
	}
	t.Run("a panic of any handler", func(t *testing.T) {
		var out strings.Builder
		h := handlerFunc(func(context.Context, cni.Invocation) ([]byte, error) { panic("boom") })
		process := cni.Process{Env: environment("DEL"), Stdout: &out}
		e := answer{code: process.Run(context.Background(), h), stdout: out.String()}.failed(t)
		assert.Equal(t, "panic: boom", e.Msg)
	})
	t.Run("nobody wants the result", func(t *testing.T) {
		process := cni.Process{Env: environment("ADD"), Stdin: strings.NewReader(network("1.0.0"))}
		assert.Zero(t, process.Run(context.Background(), testPlugin().Handler()))
	})
	t.Run("nobody reads the result", func(t *testing.T) {
		var stderr strings.Builder
		process := cni.Process{Env: environment("ADD"), Stdin: strings.NewReader(network("1.0.0")), Stdout: brokenWriter{}, Stderr: &stderr}
		assert.NotZero(t, process.Run(context.Background(), testPlugin().Handler()))
		assert.Contains(t, stderr.String(), "write result: io: read/write on closed pipe")
	})
}

func TestProcessInvocation(t *testing.T) {
	var got cni.Invocation
	h := handlerFunc(func(_ context.Context, inv cni.Invocation) ([]byte, error) {
		got = inv
		return nil, nil
	})
	process := cni.Process{
		Env:   environment("DEL", "CNI_PATH=/a::/b", "CNI_ARGS=A=1", "CNI_NETNS_OVERRIDE=1", "CNI_FUTURE=x=y"),
		Stdin: strings.NewReader(network("1.0.0")),
	}
	assert.Zero(t, process.Run(context.Background(), h))
	got.Log.Info("hello") // Stderr is nil: discarded
	got.Log = nil
	assert.Equal(t, cni.Invocation{
		Command: cni.CommandDel, ContainerID: "c1", NetNS: ownNetNS, IfName: "eth0", Args: "A=1",
		Path: []string{"/a", "/b"}, Config: []byte(network("1.0.0")),
		Env: []string{"OTHER=1", "CNI_NETNS_OVERRIDE=1", "CNI_FUTURE=x=y"},
	}, got)
}
