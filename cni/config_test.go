package cni_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// handling is the handler of a plugin whose ADD keeps its configuration.
func handling[C any](got *C) cni.Handler {
	return cni.Plugin[C]{
		Type: "test",
		Add: func(_ context.Context, r *cni.Request[C]) (*cni.Result, error) {
			*got = r.Config
			return &cni.Result{}, nil
		},
		Del: func(_ context.Context, r *cni.Request[C]) error {
			*got = r.Config
			return nil
		},
		Check: cni.NoState[C], Status: cni.Ready[C], GC: cni.NoState[C], AllowHostNetNS: true,
	}.Handler()
}

// span is a type that decodes itself, and only as a whole.
type span struct{ From, To int }

func (s *span) UnmarshalJSON(data []byte) error {
	type plain span
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	if s.From == 0 || s.To == 0 {
		return errors.New("from or to is missing")
	}
	if s.From > s.To {
		return errors.New("from is behind to")
	}
	return nil
}

// deepConfig has what real configurations are made of: what skel's plugins embed, lists
// in objects in lists, and types that decode themselves.
type deepConfig struct {
	types.NetConf
	MTU    int                   `json:"mtu"`
	Subnet netip.Prefix          `json:"subnet"`
	Hosts  map[string]netip.Addr `json:"hosts"`
	Span   span                  `json:"span"`
	Ranges [][]struct {
		Subnet  string   `json:"subnet"`
		Exclude []string `json:"exclude"`
	} `json:"ranges"`
	Sysctl map[string]string `json:"sysctl"`
}

// An error of a configuration has the key and the value that are wrong, as they are
// written there.
func TestConfigFaults(t *testing.T) {
	for member, want := range map[string]string{
		`"mtu":1.5`:                        `mtu=1.5: has the wrong type: want a whole number (int), not number 1.5`,
		`"MTU":"x"`:                        `MTU="x": has the wrong type: want a whole number (int), not string`,
		`"mtu":{"a":"x"}`:                  `mtu={"a":"x"}: has the wrong type: want a whole number (int), not object`,
		`"mtu":[[1]]`:                      `mtu=[[1]]: has the wrong type: want a whole number (int), not array`,
		`"subnet":"x"`:                     `subnet="x": netip.ParsePrefix("x"): no '/'`,
		`"subnet":5`:                       `subnet=5: has the wrong type: want a string, not number`,
		`"hosts":{"a":"::1","b":"x"}`:      `hosts.b="x": ParseAddr("x"): unable to parse IP`,
		`"hosts":[{}]`:                     `hosts=[{}]: has the wrong type: want an object, not array`,
		`"dns":{"search":"x"}`:             `dns.search="x": has the wrong type: want a list, not string`,
		`"sysctl":{"a":"1","b":2}`:         `sysctl.b=2: has the wrong type: want a string, not number`,
		`"ranges":[[{"subnet":"x"}],[3]]`:  `ranges[1][0]=3: has the wrong type: want an object, not number`,
		`"ranges":[[{"exclude":["a",1]}]]`: `ranges[0][0].exclude[1]=1: has the wrong type: want a string, not number`,
		`"span":{"From":2,"To":1}`:         `span={"From":2,"To":1}: from is behind to`,
		`"span":{"From":2}`:                `span={"From":2}: from or to is missing`,
		`"span":{"From":"2","To":3}`:       `span.From="2": has the wrong type: want a whole number (int), not string`,
		`"ranges":[[{"exclude":[1,2]}]]`:   `ranges[0][0].exclude[0]=1: has the wrong type`,
		`"sysctl":{"b":3,"a":2}`:           `sysctl.a=2: has the wrong type`,
		`"a":[],"mtu":true,"sysctl":[]`:    `mtu=true: has the wrong type`,
	} {
		t.Run(member, func(t *testing.T) {
			var got deepConfig
			e := runHandler(t.Context(), handling(&got), environment("ADD"), network("1.0.0", member)).failed(t)
			assert.Equal(t, cni.CodeInvalidConfig, e.Code)
			assert.Contains(t, e.Msg, "invalid configuration: "+want)
			assert.Empty(t, got, "the plugin did not run")
		})
	}
}

// tree is a type without a greatest depth.
type tree struct {
	N    int    `json:"n"`
	Next []tree `json:"next"`
}

func TestConfigFaultsAtAnyDepth(t *testing.T) {
	for depth, want := range map[int]string{2: `next[0].next[0].n="x": has the wrong type`, 1000: `].next=[{"next":[{"next":[`} {
		deep := strings.Repeat(`"next":[{`, depth) + `"n":"x"` + strings.Repeat(`}]`, depth)
		var got tree
		e := runHandler(t.Context(), handling(&got), environment("ADD"), network("1.0.0", deep)).failed(t)
		assert.Contains(t, e.Msg, want)
		assert.Less(t, len(e.Msg), 500)
	}
}

// What decodes reaches a DEL, also of an object in which something else does not: a
// delegate that is not called keeps its addresses.
func TestConfigOfDel(t *testing.T) {
	var got testConfig
	runHandler(t.Context(), handling(&got), environment("DEL"),
		network("1.0.0", `"ipam":{"ranges":"x","type":"pool","used":true}`, `"mtu":"x"`, `"bridge":"br0"`)).succeeded(t, "")
	assert.Equal(t, testConfig{Bridge: "br0", IPAM: testIPAM{Type: "pool", Used: true}}, got)
}

// The configuration may be of any type.
func TestConfigTypes(t *testing.T) {
	const stdin, refused = `"bridge":"br0","big":9007199254740993`, `"bridge":"a/b"`
	t.Run("a pointer", func(t *testing.T) {
		var got *testConfig
		assert.Zero(t, runHandler(t.Context(), handling(&got), environment("ADD"), network("1.0.0", stdin)).code)
		assert.Equal(t, "br0", got.Bridge)
		e := runHandler(t.Context(), handling(&got), environment("ADD"), network("1.0.0", refused)).failed(t)
		assert.Contains(t, e.Msg, `bridge="a/b": contains a slash`)
	})
	t.Run("a pointer with the method", func(t *testing.T) {
		var got *fussyConfig
		e := runHandler(t.Context(), handling(&got), environment("ADD"), network("1.0.0", `"fault":"plain"`)).failed(t)
		assert.Equal(t, "invalid configuration: no", e.Msg)
	})
	t.Run("the text", func(t *testing.T) {
		var got json.RawMessage
		assert.Zero(t, runHandler(t.Context(), handling(&got), environment("ADD"), network("1.0.0", stdin)).code)
		assert.Equal(t, network("1.0.0", stdin), string(got))
	})
	t.Run("a map", func(t *testing.T) {
		var got map[string]json.RawMessage
		assert.Zero(t, runHandler(t.Context(), handling(&got), environment("ADD"), network("1.0.0", stdin)).code)
		require.Contains(t, got, "big")
		assert.Equal(t, "9007199254740993", string(got["big"]))
	})
	t.Run("nothing", func(t *testing.T) {
		var got struct{}
		assert.Zero(t, runHandler(t.Context(), handling(&got), environment("ADD"), network("1.0.0", stdin)).code)
	})
}
