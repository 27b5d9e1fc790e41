package main

import (
	"net/netip"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

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
	four, six, node := pods[1].ips[0], pods[1].ips[1], netip.MustParseAddr("192.0.2.2")
	pods[0].requireCutOff(t, four, "nothing is forwarded")
	pods[0].requireCutOff(t, six, "nothing is forwarded")
	for _, h := range hosts {
		h.recipe(t, "FORWARD")
	}
	pods[0].reach(t, four)
	pods[0].reach(t, six)

	pods[0].requireCutOff(t, node, "the filters are strict")
	for _, h := range hosts {
		h.recipe(t, "MASQUERADE")
	}
	pods[0].reach(t, node)
	pods[0].reach(t, four)
	pods[0].reach(t, six)
}
