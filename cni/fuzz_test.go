package cni_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// Whatever environment and input arrive, there is no panic, and exactly one document,
// or none where the command has none. The plugin is a chain, one part of which
// delegates, so that everything that reads the input does.
func FuzzProcess(f *testing.F) {
	env := func(command string, changes ...string) string {
		return strings.Join(environment(command, changes...), "\n")
	}
	for _, command := range []string{"ADD", "DEL", "CHECK", "STATUS", "GC", "VERSION"} {
		for _, version := range []string{"0.2.0", "0.4.0", "1.1.0"} {
			f.Add(env(command), network(version, `"ipam":{"type":"pool"}`))
		}
	}
	f.Add(env("ADD", "CNI_ARGS=A=b=c;IgnoreUnknown=1;"), network("1.1.0", `"prevResult":{"ips":[null]}`))
	f.Add(env("ADD", "CNI_CONTAINERID=../x", "CNI_IFNAME=a b"), network("0.2.0", `"prevResult":{"ip4":{"ip":"10.0.0.1/8"}}`))
	f.Add(env("DEL", "CNI_NETNS", "CNI_ARGS=;;="), network("9.9.9", `"mtu":"x"`, prevOfTwo))
	f.Add(env("CHECK", "CNI_NETNS=/proc/self/ns/mnt"), network("1.0.0", prevOfTwo, runtimeGave))
	f.Add(env("GC"), network("1.1.0", `"cni.dev/attachments":[null]`))
	f.Add(env("GC"), network("1.1.0", `"cni.dev/valid-attachments":[{"containerID":"c","ifname":"e"}],"CNI.DEV/attachments":7`))
	f.Add("CNI_COMMAND=VERSION", `{"cniVersion":null}`)
	f.Add("CNI_COMMAND=ADD\n=\nCNI_IFNAME\nCNI_IFNAME=\x00", "\xff{}")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, env, stdin string) {
		a := runHandler(t.Context(), everything(), strings.Split(env, "\n"), stdin)
		require.NotContains(t, a.stderr, "panic", "%s", a.stdout)
		switch {
		case a.code != 0:
			a.failed(t)
		case a.stdout != "":
			require.True(t, json.Valid([]byte(a.stdout)), "%s", a.stdout)
		}
	})
}

// everything is a chain of a plugin that adds an address, one that delegates twice,
// and one that decodes arguments.
func everything() cni.Handler {
	pool := testPlugin()
	outer := delegating(cni.Builtin{"pool": pool.Handler()}, func(r *request) cni.Delegates {
		return cni.Delegates{
			r.Delegate("pool"),
			r.DelegateWith("pool", cni.DelegateOptions{Config: r.RawConfig, IfName: "net1"}),
		}
	})
	last := testPlugin()
	last.Add = func(_ context.Context, r *request) (*cni.Result, error) {
		if _, err := cni.DecodeArgs[testArgs](r.Args); err != nil {
			return nil, err
		}
		prev, err := r.RequirePrevResult()
		if err != nil {
			return nil, err
		}
		return cni.MergeResults(prev.Split(r.IfName, "net1")...), nil
	}
	last.Check = cni.CheckWith[testConfig](func(context.Context, string, string, []netip.Prefix, []netip.Prefix) error { return nil })
	return cni.Chain(testPlugin().Handler(), cni.Chain(outer.Handler()), last.Handler())
}

// kindsConfig has a member of every kind that is decoded in its own way.
type kindsConfig struct {
	Text    string                     `json:"text"`
	Number  int8                       `json:"number"`
	Share   float64                    `json:"share"`
	Flag    *bool                      `json:"flag"`
	List    []netip.Addr               `json:"list"`
	Object  struct{ A []uint16 }       `json:"object"`
	Map     map[string]json.RawMessage `json:"map"`
	Prefix  netip.Prefix               `json:"prefix"`
	DNS     cni.DNS                    `json:"dns"`
	Result  *cni.Result                `json:"result"`
	Log     cni.LogOptions             `json:"log"`
	IPAM    cni.IPAM                   `json:"ipam"`
	Unknown any                        `json:"unknown"`
}

// A configuration is decoded, or refused with a code that says so; what an ADD was
// refused for does not keep a DEL, which gets all that does decode.
func FuzzConfig(f *testing.F) {
	for _, members := range []string{
		`"text":"a","number":127,"share":1e3,"flag":null,"list":["10.0.0.1","::1"]`,
		`"object":{"A":[1,2]},"map":{"a":1.00},"prefix":"10.0.0.0/8","unknown":123456789012345678901234567890`,
		`"dns":{"nameservers":["10.0.0.1"]},"result":{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/8"}},"ipam":{"type":"x"}`,
		`"text":1,"number":128,"share":"x","flag":0,"list":{},"object":[],"map":[],"prefix":"x","dns":[],"result":[],"ipam":7`,
		`"object":{"A":[1,"x",-1,65536]},"list":["x",null,{}],"log":{"level":"loud"}`,
		`"TEXT":"a","Text":1,"text":"b","text":2`, `"":{"":[{"":null}]}`, "\"\xff\":1,\"text\":\"\xff\"",
	} {
		f.Add(members)
	}
	f.Fuzz(func(t *testing.T, members string) {
		var got *cni.Request[kindsConfig]
		keep := func(_ context.Context, r *cni.Request[kindsConfig]) error { got = r; return nil }
		h := cni.Plugin[kindsConfig]{
			Add: func(ctx context.Context, r *cni.Request[kindsConfig]) (*cni.Result, error) {
				return &cni.Result{IPs: []cni.IP{{Address: netip.MustParsePrefix("10.0.0.5/24")}}}, keep(ctx, r) // which every version can say
			},
			Del: keep, Check: keep, Status: keep, GC: keep, AllowHostNetNS: true,
		}.Handler()
		stdin := network("1.1.0", members)
		a := runHandler(t.Context(), h, environment("ADD"), stdin)
		require.NotContains(t, a.stderr, "panic", "%s", a.stdout)
		var added *cni.Request[kindsConfig]
		if a.code == 0 {
			require.NotNil(t, got)
			require.Equal(t, stdin, string(got.RawConfig), "nothing is lost")
			added, got = got, nil
		} else if e := a.failed(t); !slices.Contains([]cni.Code{1, 6, 7}, e.Code) {
			require.Fail(t, "an unfitting code", "%+v", e)
		} else if e.Code != cni.CodeInvalidConfig || !json.Valid([]byte(stdin)) || got != nil {
			return
		}
		a = runHandler(t.Context(), h, environment("DEL"), stdin)
		require.NotContains(t, a.stderr, "panic", "%s", a.stdout)
		if added != nil {
			require.Zero(t, a.code, a.stdout)
			require.Equal(t, added.Config, got.Config)
		}
	})
}

// A prevResult of any form is split and merged without inventing or losing anything,
// and can be written in every version.
func FuzzMergeSplit(f *testing.F) {
	for _, doc := range []string{partEth0, partNet1, partNet2, `{}`, `{"interfaces":[{"name":"a"},{"name":"a","sandbox":"/n"},{"name":"a","sandbox":"/m"}]}`,
		`{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/8","routes":[{"dst":"::/0"}]}}`, `{"routes":[{"dst":"::/0"},{"dst":"0.0.0.0/0","gw":"::1"}]}`} {
		f.Add([]byte(doc), "eth0", "net1")
		f.Add([]byte(doc), "a", "a")
	}
	f.Fuzz(func(t *testing.T, doc []byte, one, other string) {
		r, err := cni.ParseResult(doc, "1.1.0")
		if err != nil {
			return
		}
		before := r.String()
		parts := r.Split(one, other)
		merged := cni.MergeResults(parts...)
		require.Equal(t, before, r.String())
		for _, part := range append(parts, merged) {
			_, err := part.Encode("1.1.0")
			require.NoError(t, err)
		}
		require.LessOrEqual(t, len(merged.Interfaces), len(r.Interfaces))
		require.LessOrEqual(t, len(merged.IPs), len(r.IPs))
		require.LessOrEqual(t, len(merged.Routes), len(r.Routes))
		if i := slices.IndexFunc(r.Interfaces, func(i cni.Interface) bool { return i.Sandbox != "" }); i >= 0 && r.Interfaces[i].Name == one {
			require.Len(t, merged.Interfaces, len(r.Interfaces), "all behind the first of the names belongs to somebody")
			require.Len(t, merged.Routes, len(r.Routes))
		}
	})
}
