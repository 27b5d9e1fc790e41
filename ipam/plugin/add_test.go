package plugin

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/ipam"
)

const dualStack = `"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00:1::/64"}]]`

func TestAddResult(t *testing.T) {
	n := newNetwork(t)
	resolv := filepath.Join(t.TempDir(), "resolv.conf")
	require.NoError(t, os.WriteFile(resolv, []byte("nameserver 10.0.0.53\nsearch a.example b.example\n"), 0o600))
	config := n.config(dualStack + `,"resolvConf":"` + resolv + `","routes":[{"dst":"0.0.0.0/0"},{"dst":"fd00::/8","gw":"fd00:1::1","mtu":1400,"x":1}]`)
	want := `{"cniVersion":"1.1.0",` +
		`"dns":{"nameservers":["10.0.0.53"],"search":["a.example","b.example"]},` +
		`"ips":[{"address":"10.1.0.2/24","gateway":"10.1.0.1"},{"address":"fd00:1::2/64","gateway":"fd00:1::1"}],` +
		`"routes":[{"dst":"0.0.0.0/0"},{"dst":"fd00::/8","gw":"fd00:1::1","mtu":1400,"x":1}]}`
	for range 2 { // add/idempotent
		out, err := n.call(t, cni.CommandAdd, "a", config)
		require.NoError(t, err)
		assert.Equal(t, want, compact(t, out))
	}
	assert.Equal(t, []string{"10.1.0.3/24", "fd00:1::3/64"}, n.add(t, "b", config))
}

func TestAddVersions(t *testing.T) {
	for _, version := range cni.SupportedVersions() {
		t.Run(version, func(t *testing.T) {
			n := newNetwork(t)
			n.version = version
			assert.Equal(t, []string{"10.1.0.2/24", "fd00:1::2/64"}, n.add(t, "a", n.config(dualStack)))
			require.NoError(t, n.do(t, cni.CommandDel, "a", n.config(dualStack)))
			assert.Empty(t, n.leases(t))
		})
	}
}

// The forms in which ranges arrive, in host-local's order.
func TestAddRanges(t *testing.T) {
	for name, c := range map[string]struct {
		ipam, other string
		want        []string
	}{
		"single":            {`"subnet":"10.1.0.0/24"`, "", []string{"10.1.0.2/24"}},
		"single with all":   {`"subnet":"10.1.0.0/24","rangeStart":"10.1.0.9","rangeEnd":"10.1.0.20","gateway":"10.1.0.9"`, "", []string{"10.1.0.10/24"}},
		"single before set": {`"ranges":[[{"subnet":"10.2.0.0/24"}]],"subnet":"10.1.0.0/24"`, "", []string{"10.1.0.2/24", "10.2.0.2/24"}},
		"runtime first": {`"subnet":"10.1.0.0/24"`, `"runtimeConfig":{"ipRanges":[[{"subnet":"10.3.0.0/24","rangeStart":"10.3.0.7"}]]}`,
			[]string{"10.3.0.7/24", "10.1.0.2/24"}},
		"runtime only":           {``, `"runtimeConfig":{"ipRanges":[[{"subnet":"fd00::/64"}]]}`, []string{"fd00::2/64"}},
		"stray single keys":      {`"gateway":"10.9.9.9","ranges":[[{"subnet":"10.2.0.0/24"}]]`, "", []string{"10.2.0.2/24"}},
		"next range of the set":  {`"ranges":[[{"subnet":"10.1.0.0/30"},{"subnet":"10.2.0.0/24"}]]`, "", []string{"10.1.0.2/30"}},
		"point to point":         {`"subnet":"10.1.0.0/31"`, "", []string{"10.1.0.1/31"}},
		"one address, no router": {`"subnet":"10.1.0.7/32"`, "", []string{"10.1.0.7/32"}},
		"unknown keys":           {`"subnet":"10.1.0.0/24","x":{}`, `"y":[1]`, []string{"10.1.0.2/24"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t)
			var others []string
			if c.other != "" {
				others = append(others, c.other)
			}
			assert.Equal(t, c.want, n.add(t, "a", n.config(c.ipam, others...)))
		})
	}
}

func TestAddRequested(t *testing.T) {
	n := newNetwork(t)
	config := n.config(`"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}],[{"subnet":"fd00:1::/64"}]]`,
		`"args":{"cni":{"ips":["10.2.0.20"]}}`, `"runtimeConfig":{"ips":["fd00:1::30/64","10.1.0.10"]}`)
	assert.Equal(t, []string{"10.1.0.10/24", "10.2.0.20/24", "fd00:1::30/64"},
		n.add(t, "a", config, "IgnoreUnknown=1", "IP=10.1.0.10", "K8S_POD_NAME=x"), "all three together; the same one twice is one")

	one := n.config(`"subnet":"10.1.0.0/24"`)
	assert.Equal(t, []string{"10.1.0.11/24"}, n.add(t, "b", one, "IP="), "an empty IP requests nothing")
	assert.Equal(t, []string{"10.1.0.40/24"}, n.add(t, "c", one, "IP=10.1.0.40/24"))

	before := n.files(t)
	for name, c := range map[string]struct {
		config, args string
		code         cni.Code
		want         string
	}{
		"taken":         {one, "IP=10.1.0.40", cni.CodeTryAgain, "10.1.0.40 belongs to c/eth0"},
		"gateway":       {one, "IP=10.1.0.1", cni.CodeInvalidConfig, "10.1.0.1 is the gateway"},
		"in no range":   {one, "IP=10.9.0.1", cni.CodeInvalidConfig, "10.9.0.1 lies in no range"},
		"two of a set":  {n.config(`"subnet":"10.1.0.0/24"`, `"runtimeConfig":{"ips":["10.1.0.51"]}`), "IP=10.1.0.50", cni.CodeInvalidConfig, "both requested"},
		"garbage":       {one, "IP=10.1.0", cni.CodeInvalidEnvironment, `CNI_ARGS: IP="10.1.0" is not an IP address`},
		"zone":          {one, "IP=fe80::2%eth0", cni.CodeInvalidEnvironment, `CNI_ARGS: IP="fe80::2%eth0" is not an IP address`},
		"zone in args":  {n.config(`"subnet":"10.1.0.0/24"`, `"runtimeConfig":{"ips":["fe80::2%eth0/64"]}`), "", cni.CodeInvalidConfig, `runtimeConfig.ips[0]="fe80::2%eth0/64": is not an IP address`},
		"garbage args":  {n.config(`"subnet":"10.1.0.0/24"`, `"args":{"cni":{"ips":["x"]}}`), "", cni.CodeInvalidConfig, `args.cni.ips[0]="x": is not an IP address`},
		"garbage empty": {n.config(`"subnet":"10.1.0.0/24"`, `"runtimeConfig":{"ips":["10.1.0.9",""]}`), "", cni.CodeInvalidConfig, `runtimeConfig.ips[1]="": is not an IP address`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := n.call(t, cni.CommandAdd, "d", c.config, c.args)
			requireCode(t, c.code, err)
			assert.ErrorContains(t, err, c.want)
			assert.Equal(t, before, n.files(t), "nothing stays behind")
		})
	}
	t.Run("another than held", func(t *testing.T) {
		_, err := n.call(t, cni.CommandAdd, "c", one, "IP=10.1.0.41")
		requireCode(t, cni.CodeInvalidConfig, err)
		assert.Equal(t, before, n.files(t))
	})
}

// Bad configuration is refused with key, value, reason and way out, by every
// command but those that clean up, and nothing stays behind.
func TestConfigRefused(t *testing.T) {
	for want, c := range map[string]struct{ ipam, other string }{
		`ipam.subnet="10.1.0.5/24": has host bits set; write 10.1.0.0/24`:                                {`"subnet":"10.1.0.5/24"`, ""},
		`ipam.gateway="10.2.0.1": is outside the subnet 10.1.0.0/24; name an address of the subnet`:      {`"subnet":"10.1.0.0/24","gateway":"10.2.0.1"`, ""},
		`ipam.ranges[1][0].rangeEnd="10.3.0.1": is outside the subnet`:                                   {`"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24","rangeEnd":"10.3.0.1"}]]`, ""},
		`ipam.ranges[0][1].subnet="": is missing; name the subnet`:                                       {`"ranges":[[{"subnet":"10.1.0.0/24"},{}]]`, ""},
		`ipam.ranges[0][1].subnet="fd00::/64": is of another address family`:                             {`"ranges":[[{"subnet":"10.1.0.0/24"},{"subnet":"fd00::/64"}]]`, ""},
		`ipam.ranges[0][0].subnet="10.1.0.0/25": 10.1.0.1-10.1.0.126 overlaps 10.1.0.1-10.1.0.254`:       {`"subnet":"10.1.0.0/24","ranges":[[{"subnet":"10.1.0.0/25"}]]`, ""},
		`ipam.ranges[1]=[]: range set is empty; give it at least one range`:                              {`"ranges":[[{"subnet":"10.1.0.0/24"}],[]]`, ""},
		`runtimeConfig.ipRanges[0][0].subnet="x": is not a subnet in CIDR form`:                          {`"subnet":"10.1.0.0/24"`, `"runtimeConfig":{"ipRanges":[[{"subnet":"x"}]]}`},
		`ipam.routes=[{"dst":"default"}]: routes[0].dst: "default" is not an IP address with a prefix`:   {`"subnet":"10.1.0.0/24","routes":[{"dst":"default"}]`, ""},
		`ipam.routes={}: routes: is {}, want a list of objects; write routes such as`:                    {`"subnet":"10.1.0.0/24","routes":{}`, ""},
		`ipam.exclude="10.2.0.0/30": is not inside the subnet 10.1.0.0/24; exclude a part of the subnet`: {`"subnet":"10.1.0.0/24","exclude":["10.1.0.4","10.2.0.0/30"]`, ""},
		`ipam.ranges[0][0].exclude="x": is neither an address nor a subnet`:                              {`"ranges":[[{"subnet":"10.1.0.0/24","exclude":["x"]}]]`, ""},
		`ipam.quarantine="5": is not a duration; write a number and its unit, such as "30s"`:             {`"subnet":"10.1.0.0/24","quarantine":"5"`, ""},
		`ipam.quarantine="-5s": is not a duration`:                                                       {`"subnet":"10.1.0.0/24","quarantine":"-5s"`, ""},
		`ipam.rangeStart=7: has the wrong type: want a string, not number`:                               {`"subnet":"10.1.0.0/24","rangeStart":7`, ""},
		`ipam.ranges[0][0].subnet=7: has the wrong type: want a string, not number`:                      {`"ranges":[[{"subnet":7}]]`, ""},
		`ipam.dataDir="networks": is not an absolute path; write one such as /var/lib/cni/networks`:      {`"subnet":"10.1.0.0/24","dataDir":"networks"`, ""},
	} {
		t.Run(want, func(t *testing.T) {
			n := newNetwork(t)
			var others []string
			if c.other != "" {
				others = append(others, c.other)
			}
			config := n.config(c.ipam, others...)
			for _, command := range []cni.Command{cni.CommandAdd, cni.CommandCheck, cni.CommandStatus} {
				err := n.do(t, command, "a", config)
				requireCode(t, cni.CodeInvalidConfig, err)
				assert.ErrorContains(t, err, want)
			}
			assert.NoDirExists(t, n.dataDir)
			if strings.Contains(want, "dataDir") {
				return
			}
			require.NoError(t, n.do(t, cni.CommandDel, "a", config))
			require.NoError(t, n.do(t, cni.CommandGC, "a", strings.TrimSuffix(config, "}")+`,"cni.dev/valid-attachments":[]}`))
		})
	}
}

func TestExclude(t *testing.T) {
	n := newNetwork(t)
	config := n.config(`"ranges":[[{"subnet":"10.1.0.0/24","exclude":["10.1.0.2","10.1.0.4/31"]}],[{"subnet":"fd00::/64","exclude":["fd00::/120"]}]]`,
		`"runtimeConfig":{"ipRanges":[[{"subnet":"10.2.0.0/24","exclude":["10.2.0.0/25"]}]]}`)
	assert.Equal(t, []string{"10.2.0.128/24", "10.1.0.3/24", "fd00::100/64"}, n.add(t, "a", config))
	assert.Equal(t, []string{"10.2.0.129/24", "10.1.0.6/24", "fd00::101/64"}, n.add(t, "b", config))
	_, err := n.call(t, cni.CommandAdd, "c", config, "IP=10.1.0.5")
	requireCode(t, cni.CodeInvalidConfig, err)
	assert.ErrorContains(t, err, "10.1.0.5")
}

func TestQuarantine(t *testing.T) {
	n := newNetwork(t)
	config := n.config(`"subnet":"10.1.0.0/30","quarantine":"1h"`)
	require.Equal(t, []string{"10.1.0.2/30"}, n.add(t, "a", config))
	require.NoError(t, n.do(t, cni.CommandDel, "a", config))
	requireCode(t, cni.CodeNotAvailable, n.do(t, cni.CommandStatus, "", config))
	_, err := n.call(t, cni.CommandAdd, "b", config)
	requireCode(t, cni.CodeNotAvailable, err)
	assert.Empty(t, n.leases(t))
	assert.Equal(t, []string{"10.1.0.2/30"}, n.add(t, "c", config, "IP=10.1.0.2"), "whoever asks for it gets it")
	require.NoError(t, n.do(t, cni.CommandDel, "c", config))
	assert.Equal(t, []string{"10.1.0.2/30"}, n.add(t, "d", n.config(`"subnet":"10.1.0.0/30"`)), "without the key nothing rests")
}

func TestRefuseDuplicate(t *testing.T) {
	n := newNetwork(t)
	config := n.config(dualStack + `,"refuseDuplicate":true`)
	n.add(t, "a", config)
	before := n.files(t)
	for _, args := range []string{"", "IP=10.1.0.2", "IP=10.1.0.9"} {
		_, err := n.call(t, cni.CommandAdd, "a", config, args)
		requireCode(t, cni.CodeInvalidConfig, err)
		assert.ErrorContains(t, err, "a/eth0")
		assert.Equal(t, before, n.files(t), "the first ADD keeps what it has")
	}
}

func TestAddRefused(t *testing.T) {
	n := newNetwork(t)
	t.Run("no range", func(t *testing.T) {
		_, err := n.call(t, cni.CommandAdd, "a", n.config(""))
		requireCode(t, cni.CodeInvalidConfig, err)
		assert.ErrorContains(t, err, `ipam.ranges=null: there is no range to take an address from; add "subnet" or "ranges"`)
	})
	t.Run("too many for an old version", func(t *testing.T) {
		old := &network{n.handler, n.dataDir, "0.2.0"}
		_, err := old.call(t, cni.CommandAdd, "a", old.config(`"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]`))
		requireCode(t, cni.CodeInvalidConfig, err)
		assert.EqualError(t, err, "CNI version 0.2.0 does not support more than 1 address per family")
	})
	t.Run("resolvConf", func(t *testing.T) {
		_, err := n.call(t, cni.CommandAdd, "a", n.config(`"subnet":"10.1.0.0/24","resolvConf":"/nowhere/resolv.conf"`))
		requireCode(t, cni.CodeInvalidConfig, err)
		assert.ErrorContains(t, err, `ipam.resolvConf="/nowhere/resolv.conf": open /nowhere/resolv.conf: no such file`)
	})
	assert.NoDirExists(t, n.dataDir)
	t.Run("exhausted", func(t *testing.T) {
		config := n.config(`"ranges":[[{"subnet":"fd00::/64"}],[{"subnet":"10.1.0.0/30"}]]`)
		require.NoError(t, n.do(t, cni.CommandStatus, "", config))
		n.add(t, "a", config)
		requireCode(t, cni.CodeNotAvailable, n.do(t, cni.CommandStatus, "", config))
		_, err := n.call(t, cni.CommandAdd, "b", config)
		requireCode(t, cni.CodeNotAvailable, err)
		assert.ErrorContains(t, err, "range set 1 (10.1.0.1-10.1.0.2): no free address: all 1 that may be handed out are taken (1 kept back as gateway, excluded, network or broadcast address);")
		assert.Equal(t, []string{"10.1.0.2", "fd00::2"}, n.leases(t))
	})
}

// What an ADD took is given back when it is cancelled afterwards; what the owner
// had before is not.
func TestAddUndo(t *testing.T) {
	for before, want := range map[string]string{
		`"subnet":"10.9.0.0/24"`: "10.9.0.2/32 a/eth0", // ranges that are gone
		`"subnet":"10.1.0.0/24"`: "10.1.0.2/24 a/eth0",
		dualStack:                "10.1.0.2/24 a/eth0, fd00:1::2/64 a/eth0",
		"":                       "",
	} {
		t.Run(want, func(t *testing.T) {
			store := ipam.NewMemory(ipam.MemoryOptions{})
			ctx, cancel := context.WithCancel(t.Context())
			end := func() {}
			n := newNetwork(t)
			n.handler = Over("test", func(_ *cni.Request[Config], sets []ipam.RangeSet) (ipam.Allocator, error) {
				pool, err := ipam.NewPool(store, ipam.PoolOptions{}, sets...)
				return cancelling{pool, end}, err
			}).Handler()
			if before != "" {
				n.add(t, "a", n.config(before))
			}
			end = cancel
			_, err := n.handler.Handle(ctx, cni.Invocation{Command: cni.CommandAdd, ContainerID: "a", IfName: "eth0",
				NetNS: "/proc/self/ns/net", Config: []byte(n.config(dualStack))})
			requireCode(t, cni.CodeTryAgain, err)
			pool, err := ipam.NewPool(store, ipam.PoolOptions{}, ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/24")}}, ipam.RangeSet{{Subnet: netip.MustParsePrefix("fd00:1::/64")}})
			require.NoError(t, err)
			leases, err := pool.Leases(t.Context(), ipam.Owner{ContainerID: "a", IfName: "eth0"})
			require.NoError(t, err)
			var left []string
			for _, l := range leases {
				left = append(left, l.String())
			}
			assert.Equal(t, want, strings.Join(left, ", "))
		})
	}
}

// What a command costs is mostly how often it asks the store, and whether for writing.
func TestAsksTheStoreOnce(t *testing.T) {
	n := newNetwork(t)
	config := n.config(dualStack)
	var eyes *watched
	n.handler = Over("test", func(r *cni.Request[Config], sets []ipam.RangeSet) (ipam.Allocator, error) {
		store, err := r.Config.Store(r.Network)
		if err != nil {
			return nil, err
		}
		eyes = &watched{Store: store}
		return ipam.NewPool(eyes, ipam.PoolOptions{}, sets...)
	}).Handler()
	for _, c := range []struct {
		command cni.Command
		id      string
		want    string
	}{
		{cni.CommandAdd, "a", "update"}, {cni.CommandAdd, "a", "update"}, {cni.CommandCheck, "a", "view"}, {cni.CommandStatus, "", "view"},
		{cni.CommandDel, "a", "view update"}, {cni.CommandDel, "a", "view"},
	} {
		_, err := n.call(t, c.command, c.id, config)
		require.NoError(t, err)
		assert.Equal(t, c.want, strings.Join(eyes.calls, " "), c.command)
	}
}

// watched is a store that remembers its calls.
type watched struct {
	ipam.Store
	calls []string
}

func (w *watched) View(ctx context.Context, fn func(ipam.ReadTx) error) error {
	w.calls = append(w.calls, "view")
	return w.Store.View(ctx, fn)
}

func (w *watched) Update(ctx context.Context, fn func(ipam.Tx) error) error {
	w.calls = append(w.calls, "update")
	return w.Store.Update(ctx, fn)
}

// A call that loses against another of its owner leaves alone what that one got.
func TestAddLoses(t *testing.T) {
	pool, err := ipam.NewPool(ipam.NewMemory(ipam.MemoryOptions{}), ipam.PoolOptions{RefuseHeld: true}, ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/24")}})
	require.NoError(t, err)
	n := newNetwork(t)
	n.handler = Over("test", func(*cni.Request[Config], []ipam.RangeSet) (ipam.Allocator, error) { return outrun{pool}, nil }).Handler()
	_, err = n.call(t, cni.CommandAdd, "a", n.config(`"subnet":"10.1.0.0/24"`))
	requireCode(t, cni.CodeInvalidConfig, err)
	leases, err := pool.Leases(t.Context(), ipam.Owner{ContainerID: "a", IfName: "eth0"})
	require.NoError(t, err)
	assert.Len(t, leases, 1)
}

// outrun is an allocator that another call of the same owner comes to first.
type outrun struct{ ipam.Allocator }

func (o outrun) Allocate(ctx context.Context, owner ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
	if _, err := o.Allocator.Allocate(ctx, owner, opts); err != nil {
		return nil, err
	}
	return o.Allocator.Allocate(ctx, owner, opts)
}

// cancelling ends the request as soon as addresses are allocated.
type cancelling struct {
	ipam.Allocator
	cancel context.CancelFunc
}

func (c cancelling) Allocate(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
	defer c.cancel()
	return c.Allocator.Allocate(ctx, o, opts)
}

func TestOpenFails(t *testing.T) {
	boom := errors.New("boom")
	n := newNetwork(t)
	n.handler = Over("test", func(*cni.Request[Config], []ipam.RangeSet) (ipam.Allocator, error) { return nil, boom }).Handler()
	config := n.config(`"subnet":"10.1.0.0/24"`, `"cni.dev/valid-attachments":[]`)
	for _, command := range []cni.Command{cni.CommandAdd, cni.CommandDel, cni.CommandCheck, cni.CommandStatus, cni.CommandGC} {
		require.ErrorIs(t, n.do(t, command, "a", config), boom, command)
	}
}

func TestParseResolvConf(t *testing.T) {
	dns, err := parseResolvConf(strings.NewReader(`# comment
; comment
nameserver 10.0.0.1
  nameserver	fd00::53 # trailing words are ignored
nameserver
domain example
search a.example b.example
options ndots:5
search c.example
options edns0 trust-ad
sortlist 130.155.160.0
#nameserver 10.0.0.9`))
	require.NoError(t, err)
	assert.Equal(t, cni.DNS{
		Nameservers: []string{"10.0.0.1", "fd00::53"}, Domain: "example",
		Search: []string{"a.example", "b.example", "c.example"}, Options: []string{"ndots:5", "edns0", "trust-ad"},
	}, dns)
	_, err = parseResolvConf(strings.NewReader(strings.Repeat("x", 1<<20)))
	assert.Error(t, err)
}
