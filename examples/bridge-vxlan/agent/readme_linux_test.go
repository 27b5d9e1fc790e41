package main

import (
	"net/netip"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/overlay"
)

// recipe runs the commands for the firewall that the instructions of the deployment give,
// as far as they are of one kind.
func (h *host) recipe(t *testing.T, kind string) {
	t.Helper()
	text, err := os.ReadFile("../deploy/README.md")
	require.NoError(t, err)
	commands := regexp.MustCompile(`(?m)^ip6?tables .*`+kind+`.*$`).FindAllString(string(text), -1)
	require.NotEmpty(t, commands)
	for _, command := range commands {
		h.do(t, command)
	}
}

// answers pings an address that may be cut off.
func (p *pod) answers(t *testing.T, to string) bool {
	t.Helper()
	_, err := p.ns.Ping(t.Context(), cnitest.Ping{To: netip.MustParseAddr(to), Timeout: time.Second})
	if err != nil {
		require.ErrorIs(t, err, cnitest.ErrNoReply)
	}
	return err == nil
}

// What the instructions say of firewalls and masquerading helps.
func TestRecipesOfTheDeployment(t *testing.T) {
	testenv.Tool(t, "iptables")
	underlay := newUnderlay(t, 1500)
	nodes := []overlay.Node{
		member("a", "192.0.2.1", "10.244.1.0/24", "fd00:244:0:1::/64"), member("b", "192.0.2.2", "10.244.2.0/24", "fd00:244:0:2::/64"),
	}
	hosts := []*host{joinHost(t, underlay, "a", "192.0.2.1/24"), joinHost(t, underlay, "b", "192.0.2.2/24")}
	var pods []*pod
	for _, h := range hosts {
		for _, conf := range []string{"all", "default", "eth0"} {
			h.filter(t, conf, "1")
		}
		h.do(t, "iptables -P FORWARD DROP")
		h.do(t, "ip6tables -P FORWARD DROP")
		h.publish(t, nodes...)
		h.start(t, "-bin-dir", h.path("bin"), "-executables", imageDir(t))
		h.status(t, isReady)
		p := h.newPod(t, "pod")
		require.NoError(t, p.add(t))
		pods = append(pods, p)
	}
	four, six := pods[1].ips[0].String(), pods[1].ips[1].String()
	assert.False(t, pods[0].answers(t, four))
	assert.False(t, pods[0].answers(t, six))
	for _, h := range hosts {
		h.recipe(t, "FORWARD")
	}
	assert.True(t, pods[0].answers(t, four))
	assert.True(t, pods[0].answers(t, six))

	assert.False(t, pods[0].answers(t, "192.0.2.2"), "the filters are strict")
	for _, h := range hosts {
		h.recipe(t, "MASQUERADE")
	}
	assert.True(t, pods[0].answers(t, "192.0.2.2"))
	assert.True(t, pods[0].answers(t, four))
	assert.True(t, pods[0].answers(t, six))
}
