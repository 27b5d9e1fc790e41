package cni_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/cni"
)

func TestCheckWith(t *testing.T) {
	const (
		host  = `{"name":"br0"}`
		eth0  = `{"name":"eth0","sandbox":"` + ownNetNS + `"}`
		eth1  = `{"name":"eth1","sandbox":"` + ownNetNS + `"}`
		other = `{"name":"eth0","sandbox":"/run/netns/other"}`
	)
	for name, c := range map[string]struct {
		prev string
		fail string // the interface that verify complains about
		want []string
		err  string
		code cni.Code
	}{
		"its interface, not those of others": {
			prev: `{"interfaces":[` + host + `,` + eth0 + `,` + eth1 + `,` + other + `],
				"ips":[{"interface":1,"address":"10.0.0.5/24"},{"interface":2,"address":"10.1.0.5/24"},{"interface":0,"address":"10.0.0.1/24"},{"address":"fd00::5/64"}],
				"routes":[{"dst":"0.0.0.0/0"},{"dst":"10.9.0.0/16"}]}`,
			want: []string{"eth0 [10.0.0.5/24 fd00::5/64] [0.0.0.0/0 10.9.0.0/16]"},
		},
		"no prevResult":      {prev: `null`, err: "prevResult is missing", code: cni.CodeInvalidConfig},
		"without CNI_IFNAME": {prev: `{"interfaces":[` + host + `,` + eth1 + `,` + other + `]}`, err: `no interface CNI_IFNAME="eth0" with sandbox CNI_NETNS="/proc/self/ns/net"`, code: cni.CodeInvalidConfig},
		"a fault":            {prev: `{"interfaces":[` + eth0 + `,` + eth1 + `]}`, fail: "eth0", want: []string{"eth0 [] []"}, err: "check interface eth0: down", code: cni.CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			p := testPlugin()
			p.Check = cni.CheckWith[testConfig](func(_ context.Context, netns, ifName string, addrs, routes []netip.Prefix) error {
				assert.Equal(t, ownNetNS, netns)
				calls = append(calls, fmt.Sprint(ifName, " ", addrs, " ", routes))
				if ifName == c.fail {
					return errors.New("down")
				}
				return nil
			})
			a := run(p, environment("CHECK"), network("1.0.0", `"prevResult":`+c.prev))
			assert.Equal(t, c.want, calls)
			if c.err == "" {
				a.succeeded(t, "")
				return
			}
			e := a.failed(t)
			assert.Contains(t, e.Msg, c.err)
			assert.Equal(t, c.code, e.Code)
		})
	}
}
