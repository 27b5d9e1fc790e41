package cni_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/cni"
)

// aged is a delegate of an old version: what it does not speak it refuses with the
// code that skel has for it.
func aged(versions ...string) func(string, cni.Invocation) ([]byte, error) {
	return func(_ string, inv cni.Invocation) ([]byte, error) {
		var doc struct{ CNIVersion string }
		_ = json.Unmarshal(inv.Config, &doc)
		switch {
		case inv.Command == cni.CommandVersion:
			return json.Marshal(map[string]any{"cniVersion": "0.4.0", "supportedVersions": versions})
		case inv.Command == cni.CommandStatus || inv.Command == cni.CommandGC:
			return nil, cni.Errorf(cni.CodeInvalidEnvironment, "unknown CNI_COMMAND: %s", inv.Command)
		case !slices.Contains(versions, doc.CNIVersion):
			return nil, cni.Errorf(cni.CodeIncompatibleVersion, "incompatible CNI versions")
		case doc.CNIVersion == "0.2.0":
			return []byte(`{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.5/24"}}`), nil
		}
		return []byte(`{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.0.0.5/24"}]}`), nil
	}
}

func TestDelegateOfAnotherVersion(t *testing.T) {
	const prev = `"prevResult":{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.5/24"}],"interfaces":[{"name":"a","mtu":1}]}`
	for name, c := range map[string]struct {
		versions []string
		command  string
		config   string
		commands []string
		last     string // what the delegate got in the end
		stdout   string
	}{
		"ADD, and its result is converted": {[]string{"0.2.0", "0.3.1", "0.4.0"}, "ADD", network("1.1.0"),
			[]string{"ADD eth0", "VERSION eth0", "ADD eth0"}, network("0.4.0"), `{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.5/24"}]}`},
		"of the first form": {[]string{"0.1.0", "0.2.0"}, "ADD", network("1.1.0", prev),
			[]string{"ADD eth0", "VERSION eth0", "ADD eth0"}, network("0.2.0"), `{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.5/24"}]}`},
		"prevResult is converted, too": {[]string{"0.4.0"}, "CHECK", network("1.1.0", prev), []string{"CHECK eth0", "VERSION eth0", "CHECK eth0"},
			network("0.4.0", `"prevResult":{"cniVersion":"0.4.0","interfaces":[{"name":"a"}],"ips":[{"version":"4","address":"10.0.0.5/24"}]}`), ""},
		"one that has no CHECK":                   {[]string{"0.3.1"}, "CHECK", network("1.1.0"), []string{"CHECK eth0", "VERSION eth0"}, `{"cniVersion":"1.1.0"}`, ""},
		"one that has no STATUS":                  {[]string{"1.0.0"}, "STATUS", network("1.1.0"), []string{"STATUS eth0", "VERSION eth0"}, `{"cniVersion":"1.1.0"}`, ""},
		"one that has no GC":                      {[]string{"1.0.0"}, "GC", network("1.1.0"), []string{"GC eth0", "VERSION eth0"}, `{"cniVersion":"1.1.0"}`, ""},
		"the nearest below":                       {[]string{"0.3.0", "0.3.1", "1.1.0"}, "ADD", network("1.0.0"), []string{"ADD eth0", "VERSION eth0", "ADD eth0"}, network("0.3.1"), `{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.5/24"}]}`},
		"DEL of one that nobody is left to speak": {[]string{"0.4.0", "1.0.0"}, "DEL", network("0.3.1"), []string{"DEL eth0", "VERSION eth0", "DEL eth0"}, network("0.4.0"), ""},
		"DEL of a version nobody knows":           {[]string{"0.4.0", "1.0.0"}, "DEL", network("9.9.9"), []string{"DEL eth0", "VERSION eth0", "DEL eth0"}, network("1.0.0"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := &recorder{answer: aged(c.versions...)}
			p := delegating(x, func(r *request) cni.Delegates { return cni.Delegates{r.Delegate("pool")} })
			p.GC = func(ctx context.Context, r *request) error { return r.Delegate("pool").GC(ctx) }
			run(p, environment(c.command), c.config).succeeded(t, c.stdout)
			assert.Equal(t, c.commands, x.commands())
			assert.Equal(t, c.last, string(x.calls[len(x.calls)-1].Config))
		})
	}
	t.Run("it is asked once", func(t *testing.T) {
		x := &recorder{answer: aged("0.4.0")}
		p := testPlugin()
		p.Delegates = x
		p.Add = func(ctx context.Context, r *request) (*cni.Result, error) {
			_, err := r.Delegate("pool").Add(ctx)
			return nil, errors.Join(err, errors.New("the rest failed"))
		}
		run(p, environment("ADD"), network("1.1.0")).failed(t)
		assert.Equal(t, []string{"ADD eth0", "VERSION eth0", "ADD eth0", "DEL eth0"}, x.commands())
		assert.Equal(t, network("0.4.0"), string(x.calls[3].Config))
	})
	t.Run("it is asked once, also if nothing is in common", func(t *testing.T) {
		x := &recorder{answer: aged("1.0.0")}
		p := delegating(x, func(r *request) cni.Delegates { return cni.Delegates{r.Delegate("pool")} })
		e := run(p, environment("ADD"), network("0.4.0")).failed(t)
		assert.Equal(t, cni.CodeIncompatibleVersion, e.Code)
		assert.Equal(t, []string{"ADD eth0", "VERSION eth0", "DEL eth0"}, x.commands(), "an ADD gets no newer version")
	})
	t.Run("it is not asked when the request is cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		x := &recorder{answer: func(string, cni.Invocation) ([]byte, error) {
			cancel()
			return nil, cni.Errorf(cni.CodeIncompatibleVersion, "no")
		}}
		p := delegating(x, func(r *request) cni.Delegates { return cni.Delegates{r.Delegate("pool")} })
		runContext(ctx, p, environment("CHECK"), strings.NewReader(network("1.1.0"))).failed(t)
		assert.Equal(t, []string{"CHECK eth0"}, x.commands())
	})
	t.Run("it is not asked for what is no matter of the version", func(t *testing.T) {
		for _, code := range []cni.Code{cni.CodeIO, cni.CodeInvalidEnvironment} {
			x := &recorder{answer: func(string, cni.Invocation) ([]byte, error) { return nil, cni.Errorf(code, "no") }}
			p := delegating(x, func(r *request) cni.Delegates { return cni.Delegates{r.Delegate("pool")} })
			run(p, environment("DEL"), network("1.1.0")).failed(t)
			assert.Equal(t, []string{"DEL eth0"}, x.commands())
		}
	})
	t.Run("what was found out is logged", func(t *testing.T) {
		for want, answer := range map[string]func(string, cni.Invocation) ([]byte, error){
			"version=1.1.0 speaks=0.4.0": aged("0.4.0"),
			"does not tell which it speaks": func(string, cni.Invocation) ([]byte, error) {
				return nil, cni.Errorf(cni.CodeIncompatibleVersion, "no")
			},
		} {
			p := delegating(&recorder{answer: answer}, func(r *request) cni.Delegates { return cni.Delegates{r.Delegate("pool")} })
			a := run(p, environment("DEL"), network("1.1.0"))
			assert.Contains(t, a.stderr, want)
			assert.Contains(t, a.stderr, "delegate=pool")
		}
	})
	t.Run("an old configuration of its own has no GC", func(t *testing.T) {
		x := &recorder{}
		p := delegating(x, one(cni.DelegateOptions{Config: []byte(`{"type":"x","cniVersion":"0.3.1"}`)}))
		for _, command := range []string{"GC", "STATUS", "CHECK"} {
			run(p, environment(command), network("1.1.0")).succeeded(t, "")
		}
		assert.Empty(t, x.calls)
	})
	for name, answer := range map[string]func(string, cni.Invocation) ([]byte, error){
		"nothing in common": aged("2.0.0"),
		"the refusal was about else": func(p string, inv cni.Invocation) ([]byte, error) {
			out, err := aged("1.1.0")(p, inv)
			return out, refuse(inv, err)
		},
		"VERSION fails, too": func(string, cni.Invocation) ([]byte, error) {
			return nil, cni.Errorf(cni.CodeIncompatibleVersion, "no")
		},
		"VERSION answers junk":              func(_ string, inv cni.Invocation) ([]byte, error) { return []byte(`[]`), refuse(inv, nil) },
		"another code is another problem":   func(string, cni.Invocation) ([]byte, error) { return nil, cni.Errorf(cni.CodeIO, "no") },
		"the variables really are at fault": func(string, cni.Invocation) ([]byte, error) { return nil, cni.Errorf(cni.CodeInvalidEnvironment, "no") },
	} {
		for _, command := range []string{"CHECK", "DEL"} {
			t.Run("the first refusal is reported/"+name+"/"+command, func(t *testing.T) {
				x := &recorder{answer: answer}
				p := delegating(x, func(r *request) cni.Delegates { return cni.Delegates{r.Delegate("pool")} })
				e := run(p, environment(command), network("1.1.0")).failed(t)
				assert.Contains(t, e.Msg, `plugin "pool" `+command+`: `)
				assert.NotContains(t, e.Msg, "panic")
				assert.LessOrEqual(t, len(x.calls), 2, "%s is not tried again", command)
			})
		}
	}
}

func refuse(inv cni.Invocation, err error) error {
	if inv.Command == cni.CommandVersion {
		return err
	}
	return cni.Errorf(cni.CodeIncompatibleVersion, "no")
}
