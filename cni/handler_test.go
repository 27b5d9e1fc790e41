package cni_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func TestHandlerVersion(t *testing.T) {
	const all = `["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]`
	for name, c := range map[string]struct{ stdin, want string }{
		"the version comes back":        {`{"cniVersion":"0.4.0"}`, `{"cniVersion":"0.4.0","supportedVersions":` + all + `}`},
		"one that nobody supports, too": {`{"cniVersion":"9.9.9"}`, `{"cniVersion":"9.9.9","supportedVersions":` + all + `}`},
		"nothing on standard input":     {``, `{"cniVersion":"1.1.0","supportedVersions":` + all + `}`},
		"no version":                    {`{}`, `{"cniVersion":"1.1.0","supportedVersions":` + all + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			run(testPlugin(), environment("VERSION"), c.stdin).succeeded(t, c.want)
		})
	}
	t.Run("malformed input", func(t *testing.T) {
		for _, stdin := range []string{`{`, `[]`, `{"cniVersion":1}`} {
			assert.Equal(t, cni.CodeDecode, run(testPlugin(), environment("VERSION"), stdin).failed(t).Code)
		}
	})
	t.Run("the plugin's own versions, sorted", func(t *testing.T) {
		p := testPlugin()
		p.Versions = []string{"1.0.0", "0.4.0"}
		run(p, environment("VERSION"), "").succeeded(t, `{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}`)
		assert.Equal(t, []string{"1.0.0", "0.4.0"}, p.Versions)
		assert.Equal(t, cni.CodeIncompatibleVersion, run(p, environment("ADD"), network("1.1.0")).failed(t).Code)
	})
}

func TestHandlerConfigurationVersion(t *testing.T) {
	accepted := map[string]string{ // command: the versions that it is served for
		"ADD":    "0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0 1.1.0",
		"DEL":    "0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0 1.0.5 1.1.0 1.1.0-rc1 2.0.0 nonsense",
		"CHECK":  "0.4.0 1.0.0 1.1.0",
		"STATUS": "1.1.0",
		"GC":     "1.1.0",
	}
	for command, versions := range accepted {
		for version := range strings.SplitSeq(accepted["DEL"], " ") {
			t.Run(command+"/"+version, func(t *testing.T) {
				a := run(testPlugin(), environment(command), network(version))
				if strings.Contains(" "+versions+" ", " "+version+" ") {
					assert.Zero(t, a.code, a.stdout)
					return
				}
				e := a.failed(t)
				assert.Equal(t, cni.CodeIncompatibleVersion, e.Code)
				assert.Equal(t, version, e.CNIVersion)
				if !slices.Contains(cni.SupportedVersions(), version) {
					assert.Contains(t, e.Msg, fmt.Sprintf("cniVersion=%q", version))
					return
				}
				assert.Equal(t, "config version does not allow "+command, e.Error(), "the words of skel, to the letter")
				assert.Contains(t, a.stderr, "command="+command)
				assert.Contains(t, a.stderr, fmt.Sprintf("cniVersion=%s needed=%q", version, strings.Fields(versions)[0]+" or later"))
			})
		}
	}
	t.Run("none is 0.1.0", func(t *testing.T) {
		e := run(testPlugin(), environment("CHECK"), `{"name":"lan"}`).failed(t)
		assert.Equal(t, "config version does not allow CHECK", e.Error())
	})
}

func TestHandlerRefusesConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		stdin string
		code  cni.Code
		want  string
	}{
		"empty":                   {``, cni.CodeDecode, "standard input: the document: is empty, want an object"},
		"malformed":               {`{"name":`, cni.CodeDecode, `is not JSON ("{\"name\":")`},
		"two documents":           {network("1.0.0") + network("1.0.0"), cni.CodeDecode, "is not JSON"},
		"no object":               {`[]`, cni.CodeDecode, "is [], want an object"},
		"version no string":       {`{"cniVersion":1.0}`, cni.CodeInvalidConfig, "cniVersion: is 1.0, want a string"},
		"name missing":            {`{"cniVersion":"1.0.0"}`, cni.CodeInvalidConfig, `name="": is missing`},
		"name a path":             {`{"cniVersion":"1.0.0","name":"../lan"}`, cni.CodeInvalidConfig, `name="../lan": must start`},
		"name with a slash":       {`{"cniVersion":"1.0.0","name":"a/b"}`, cni.CodeInvalidConfig, `name="a/b": contains '/'`},
		"wrong type":              {network("1.0.0", `"bridge":1`), cni.CodeInvalidConfig, "bridge=1: has the wrong type: want a string, not number"},
		"wrong type, nested":      {network("1.0.0", `"ipam":{"ranges":"x"}`), cni.CodeInvalidConfig, `ipam.ranges="x": has the wrong type: want a list, not string`},
		"fraction for an integer": {network("1.0.0", `"mtu":1.5`), cni.CodeInvalidConfig, "mtu=1.5: has the wrong type: want a whole number (int), not number 1.5"},
		"string for an object":    {network("1.0.0", `"ipam":"x"`), cni.CodeInvalidConfig, `ipam="x": has the wrong type: want an object, not string`},
		"string for a boolean":    {network("1.0.0", `"ipam":{"used":"x"}`), cni.CodeInvalidConfig, `ipam.used="x": has the wrong type: want true or false, not string`},
		"Validate says no":        {network("1.0.0", `"bridge":"a/b"`), cni.CodeInvalidConfig, `bridge="a/b": contains a slash`},
		"prevResult malformed":    {network("1.0.0", `"prevResult":{"ips":[null]}`), cni.CodeDecode, "read prevResult: parse result: ips[0]: is null, want an object"},
		"prevResult no object":    {network("1.0.0", `"prevResult":"x"`), cni.CodeDecode, `read prevResult: parse result: the document: is "x", want an object`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range []string{"ADD", "CHECK"} {
				e := run(testPlugin(), environment(command), c.stdin).failed(t)
				assert.Equal(t, c.code, e.Code)
				assert.Contains(t, e.Msg, c.want)
			}
		})
	}
}

// A handler that is linked in is not called by a Process, which looks at these first.
func TestHandlerChecksItsInvocation(t *testing.T) {
	p := testPlugin()
	p.Add = func(context.Context, *request) (*cni.Result, error) {
		assert.Fail(t, "the function is called")
		return nil, nil
	}
	for _, inv := range []cni.Invocation{
		{Command: cni.CommandAdd}, {Command: "NOPE"}, {Command: cni.CommandDel, ContainerID: "c1", IfName: "a\x00b"},
	} {
		inv.Config = []byte(network("1.1.0"))
		_, err := p.Handler().Handle(t.Context(), inv)
		assert.Equal(t, cni.CodeInvalidEnvironment, cni.AsError(err).Code, "%v", inv.Command)
	}
	assert.ErrorContains(t, cni.Invocation{}.Validate(), "CNI_COMMAND is missing")
}

// Cleaning up must not be refused: the runtime would try for ever.
func TestHandlerCleansUpWithWhatItCanRead(t *testing.T) {
	stdin := network("1.1.0", `"bridge":"a/b"`, `"mtu":"x"`, `"ipam":{"type":"i"}`, `"prevResult":{"ips":[null]}`)
	for _, command := range []string{"DEL", "GC"} {
		t.Run(command, func(t *testing.T) {
			var got *request
			p := testPlugin()
			p.Del = func(_ context.Context, r *request) error { got = r; return nil }
			p.GC = p.Del
			a := run(p, environment(command, "CNI_ARGS=x"), stdin)
			a.succeeded(t, "")
			assert.Equal(t, testConfig{Bridge: "a/b", IPAM: testIPAM{Type: "i"}}, got.Config)
			assert.Contains(t, a.stderr, "CNI_ARGS is ignored")
			assert.Nil(t, got.PrevResult)
			assert.Contains(t, a.stderr, "key=mtu")
			assert.NotContains(t, a.stderr, "key=bridge", "it decodes")
			assert.Contains(t, a.stderr, "prevResult is ignored")
		})
	}
}

// fussyConfig fails to validate with the error that its member names.
type fussyConfig struct {
	Fault string `json:"fault"`
}

func (c *fussyConfig) Validate() error { // on the pointer, which counts too
	return map[string]error{
		"plain":       errors.New("no"),
		"several":     errors.Join(&cni.FieldError{Key: "a"}, &cni.FieldError{Key: "b"}),
		"unsupported": &cni.FieldError{Key: "a", Unsupported: true},
		"code":        cni.Errorf(cni.CodeTryAgain, "later"),
	}[c.Fault]
}

func TestHandlerValidate(t *testing.T) {
	h := cni.Plugin[fussyConfig]{
		Add:    func(context.Context, *cni.Request[fussyConfig]) (*cni.Result, error) { return &cni.Result{}, nil },
		Del:    cni.NoState[fussyConfig],
		Check:  cni.NoState[fussyConfig],
		Status: cni.Ready[fussyConfig],
		GC:     cni.NoState[fussyConfig],

		AllowHostNetNS: true,
	}.Handler()
	for fault, code := range map[string]cni.Code{
		"": 0, "plain": cni.CodeInvalidConfig, "several": cni.CodeInvalidConfig,
		"unsupported": cni.CodeUnsupportedField, "code": cni.CodeTryAgain,
	} {
		for _, command := range []cni.Command{cni.CommandAdd, cni.CommandCheck, cni.CommandStatus, cni.CommandDel, cni.CommandGC} {
			t.Run(fault+"/"+string(command), func(t *testing.T) {
				_, err := h.Handle(context.Background(), cni.Invocation{
					Command: command, ContainerID: "c1", IfName: "eth0", NetNS: ownNetNS,
					Config: []byte(network("1.1.0", `"fault":"`+fault+`"`)),
				})
				if code == 0 || command == cni.CommandDel || command == cni.CommandGC {
					assert.NoError(t, err)
					return
				}
				var e *cni.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, code, e.Code)
				assert.Contains(t, e.Msg, "invalid configuration: ")
			})
		}
	}
}

func TestHandlerRequest(t *testing.T) {
	var got *request
	p := testPlugin()
	p.Add = func(_ context.Context, r *request) (*cni.Result, error) {
		got = r
		return r.PrevResult, nil
	}
	stdin := network("1.0.0", `"bridge":"br0"`, `"mtu":1400`, `"labels":{"a":"b"}`, `"x":9007199254740993`,
		`"prevResult":{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.0.0.5/24","lease":12345678901234567890}]}`)
	a := run(p, environment("ADD", "CNI_ARGS=A=1;B=2"), stdin)
	a.succeeded(t, `{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.5/24","lease":12345678901234567890}]}`)

	assert.Equal(t, cni.CommandAdd, got.Command)
	assert.Equal(t, "c1 eth0 1.0.0 lan test", strings.Join([]string{got.ContainerID, got.IfName, got.CNIVersion, got.Network, got.Type}, " "))
	assert.Equal(t, cni.NetNS{Path: ownNetNS}, got.NetNS)
	assert.Equal(t, cni.Args{{Key: "A", Value: "1"}, {Key: "B", Value: "2"}}, got.Args)
	assert.Equal(t, []string{"/nowhere"}, got.Path)
	assert.Equal(t, testConfig{Bridge: "br0", MTU: 1400, Labels: map[string]string{"a": "b"}}, got.Config)
	assert.Equal(t, stdin, string(got.RawConfig))
	assert.Equal(t, "0.4.0", got.PrevResult.CNIVersion)
	got.Log.Info("line")
}

func TestHandlerPrevResult(t *testing.T) {
	for name, c := range map[string]struct{ member, want string }{
		"absent":                   {`"x":1`, "none"},
		"null":                     {`"prevResult":null`, "none"},
		"empty":                    {`"prevResult":{}`, "0 addresses"},
		"without a version":        {`"prevResult":{"ips":[{"address":"10.0.0.5/24"}]}`, "1 addresses"},
		"older than configuration": {`"prevResult":{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.5/24"}}`, "1 addresses"},
		"newer than configuration": {`"prevResult":{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.5/24"}]}`, "1 addresses"},
		"of the future":            {`"prevResult":{"cniVersion":"1.9.0","ips":[{"address":"10.0.0.5/24"}]}`, "1 addresses"},
	} {
		for _, command := range []string{"ADD", "CHECK", "DEL"} {
			t.Run(name+"/"+command, func(t *testing.T) {
				got := ""
				look := func(_ context.Context, r *request) error {
					got = "none"
					if r.PrevResult != nil {
						got = fmt.Sprintf("%d addresses", len(r.PrevResult.IPs))
					}
					return nil
				}
				p := testPlugin()
				p.Check, p.Del = look, look
				p.Add = func(ctx context.Context, r *request) (*cni.Result, error) { return &cni.Result{}, look(ctx, r) }
				assert.Zero(t, run(p, environment(command), network("1.0.0", c.member)).code)
				assert.Equal(t, c.want, got)
			})
		}
	}
}

func TestHandlerGC(t *testing.T) {
	const a, b = `{"containerID":"a","ifname":"eth0"}`, `{"containerID":"b","ifname":"eth0"}`
	attachmentA, attachmentB := cni.Attachment{ContainerID: "a", IfName: "eth0"}, cni.Attachment{ContainerID: "b", IfName: "eth0"}
	for name, c := range map[string]struct {
		members string
		want    []cni.Attachment
		refused string
	}{
		"the key of the specification":      {`"cni.dev/valid-attachments":[` + a + `,` + b + `]`, []cni.Attachment{attachmentA, attachmentB}, ""},
		"the key of 1.1.0":                  {`"cni.dev/attachments":[` + a + `]`, []cni.Attachment{attachmentA}, ""},
		"both, joined":                      {`"cni.dev/attachments":[` + a + `],"cni.dev/valid-attachments":[` + b + `,` + a + `]`, []cni.Attachment{attachmentB, attachmentA}, ""},
		"empty: everything is stale":        {`"cni.dev/valid-attachments":[]`, nil, ""},
		"null twice is libcni's empty list": {`"cni.dev/valid-attachments":null,"cni.dev/attachments":null`, nil, ""},
		"null once is no empty list":        {`"cni.dev/valid-attachments":null`, nil, "cni.dev/valid-attachments: is null, which is no list, and without one every attachment would be stale; list the valid"},
		"null under the key of 1.1.0":       {`"cni.dev/attachments":null`, nil, "cni.dev/attachments: is null"},
		"null beside a list":                {`"cni.dev/valid-attachments":null,"cni.dev/attachments":[` + a + `]`, []cni.Attachment{attachmentA}, ""},
		"null beside an empty list":         {`"cni.dev/valid-attachments":[],"cni.dev/attachments":null`, nil, ""},
		"no list is no empty list":          {`"x":1`, nil, "cni.dev/valid-attachments: is missing, and without one every attachment would be stale; list the valid attachments, [] if there is none"},
		"no list type":                      {`"cni.dev/valid-attachments":{}`, nil, "cni.dev/valid-attachments: is {}, want a list"},
		"an entry without container":        {`"cni.dev/attachments":[{"ifname":"eth0"}]`, nil, "cni.dev/attachments[0].containerID: is missing"},
		"an entry without interface":        {`"cni.dev/attachments":[{"containerID":"a"}]`, nil, "cni.dev/attachments[0].ifname: is missing"},
		"a null entry":                      {`"cni.dev/attachments":[null]`, nil, "cni.dev/attachments[0]: is null"},
	} {
		t.Run(name, func(t *testing.T) {
			ran := false
			p := testPlugin()
			p.GC = func(_ context.Context, r *request) error {
				ran = true
				assert.Equal(t, c.want, r.Valid)
				return nil
			}
			answer := run(p, environment("GC"), `{"cniVersion":"1.1.0","name":"lan",`+c.members+`}`)
			assert.Equal(t, c.refused == "", ran, "the handler ran")
			if c.refused == "" {
				answer.succeeded(t, "")
				return
			}
			e := answer.failed(t)
			assert.Equal(t, cni.CodeInvalidConfig, e.Code)
			assert.Contains(t, e.Msg, c.refused)
		})
	}
}

func TestHandlerRefusesIncompletePlugin(t *testing.T) {
	for field, c := range map[string]struct {
		remove func(*plugin)
		remedy string
	}{
		"Add":    {func(p *plugin) { p.Add = nil }, "return r.PrevResult"},
		"Del":    {func(p *plugin) { p.Del = nil }, "cni.NoState"},
		"Check":  {func(p *plugin) { p.Check = nil }, "cni.CheckWith(netif.Verify)"},
		"Status": {func(p *plugin) { p.Status = nil }, "cni.Ready"},
		"GC":     {func(p *plugin) { p.GC = nil }, "cni.NoState"},
	} {
		for _, command := range []string{"ADD", "DEL", "CHECK", "STATUS", "GC", "VERSION"} {
			t.Run(field+"/"+command, func(t *testing.T) {
				p := testPlugin()
				c.remove(&p)
				e := run(p, environment(command), network("1.1.0")).failed(t)
				assert.Contains(t, e.Msg, "has no function "+field)
				assert.Contains(t, e.Msg, c.remedy)
			})
		}
	}
	t.Run("all at once, and versions", func(t *testing.T) {
		e := run(plugin{Versions: []string{"1.0.0", "1.2.0"}}, environment("VERSION"), "").failed(t)
		for _, part := range []string{"Add", "Del", "Check", "Status", "GC", `version "1.2.0"`} {
			assert.Contains(t, e.Msg, part)
		}
	})
}

func TestHandlerErrors(t *testing.T) {
	for _, command := range []string{"ADD", "DEL", "CHECK", "STATUS", "GC"} {
		t.Run(command, func(t *testing.T) {
			var answerWith func() error
			p := testPlugin()
			fn := func(context.Context, *request) error { return answerWith() }
			p.Del, p.Check, p.Status, p.GC = fn, fn, fn, fn
			p.Add = func(context.Context, *request) (*cni.Result, error) { return &cni.Result{}, answerWith() }

			answerWith = func() error { return fmt.Errorf("x: %w", cni.Errorf(cni.CodeNotAvailable, "pool is empty")) }
			e := run(p, environment(command), network("1.1.0")).failed(t)
			assert.Equal(t, cni.Error{CNIVersion: "1.1.0", Code: cni.CodeNotAvailable, Msg: "x: pool is empty"}, e)

			answerWith = func() error { return &cni.Error{Code: 8, Msg: "m"} }
			e = run(p, environment(command), network("1.1.0")).failed(t)
			assert.Equal(t, cni.CodeInternal, e.Code)

			answerWith = func() error { panic(errors.New("boom")) }
			a := run(p, environment(command), network("1.1.0"))
			e = a.failed(t)
			assert.Equal(t, cni.CodeInternal, e.Code)
			assert.Equal(t, "panic: boom", e.Msg)
			assert.Contains(t, e.Details, "handler_test.go:", "the place of the panic")
			assert.Contains(t, a.stderr, "goroutine ", "the stack")
		})
	}
}

func TestHandlerStatus(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code cni.Code
	}{
		"an error without a code":  {errors.New("the agent is away"), cni.CodeNotAvailable},
		"a delegate is missing":    {fmt.Errorf("x: %w", cni.ErrPluginNotFound), cni.CodeNotAvailable},
		"its own code stays":       {cni.Errorf(cni.CodeLimitedConnectivity, "x"), cni.CodeLimitedConnectivity},
		"the internal one, too":    {cni.Errorf(cni.CodeInternal, "x"), cni.CodeInternal},
		"a passing condition":      {context.DeadlineExceeded, cni.CodeTryAgain},
		"a value of configuration": {&cni.FieldError{Key: "bridge"}, cni.CodeInvalidConfig},
	} {
		t.Run(name, func(t *testing.T) {
			p := testPlugin()
			p.Status = func(context.Context, *request) error { return c.err }
			e := run(p, environment("STATUS"), network("1.1.0")).failed(t)
			assert.Equal(t, c.code, e.Code)
			assert.Equal(t, c.err.Error(), e.Msg)
		})
	}
}

func TestHandlerIsSafeForConcurrentUse(t *testing.T) {
	shared := cni.Errorf(cni.CodeIO, "shared")
	p := testPlugin()
	p.Status = func(context.Context, *request) error { return shared }
	h := p.Handler()
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			version := "1.1.0"
			_, err := h.Handle(context.Background(), cni.Invocation{Command: cni.CommandStatus, Config: []byte(network(version))})
			var e *cni.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, version, e.CNIVersion)
			assert.NotSame(t, shared, e)
		})
	}
}
