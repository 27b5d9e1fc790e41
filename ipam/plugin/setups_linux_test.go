package plugin_test

import (
	"fmt"

	"github.com/cnikit/cnikit/cni"
)

// invocations are the commands that each setup meets.
var invocations = []call{
	{name: "ADD of a new attachment", command: cni.CommandAdd, id: "new"},
	{name: "ADD of one that has addresses", command: cni.CommandAdd, id: "a"},
	{name: "ADD that requests a free address", command: cni.CommandAdd, id: "new", args: "IP=10.1.0.5"},
	{name: "ADD that requests a taken address", command: cni.CommandAdd, id: "new", args: "IP=10.1.0.2"},
	{name: "ADD that requests what it has", command: cni.CommandAdd, id: "a", args: "IP=10.1.0.2"},
	{name: "ADD that requests another than it has", command: cni.CommandAdd, id: "a", args: "IP=10.1.0.5"},
	{name: "ADD that requests a gateway", command: cni.CommandAdd, id: "new", args: "IP=10.1.0.1"},
	{name: "ADD that requests an address of no range", command: cni.CommandAdd, id: "new", args: "IP=192.0.2.1"},
	{name: "ADD that requests with a prefix length", command: cni.CommandAdd, id: "new", args: "IP=10.1.0.5/8"},
	{name: "ADD that requests by args", command: cni.CommandAdd, id: "new", more: `"args":{"cni":{"ips":["10.1.0.5","fd00::5"]}}`},
	{name: "ADD that requests by capability", command: cni.CommandAdd, id: "new", more: `"runtimeConfig":{"ips":["fd00::5/64"]}`},
	{name: "ADD that requests two of one set", command: cni.CommandAdd, id: "new", args: "IP=10.1.0.5", more: `"args":{"cni":{"ips":["10.1.0.6"]}}`, vague: true},
	{name: "ADD that requests the same twice", command: cni.CommandAdd, id: "new", args: "IP=10.1.0.5", more: `"args":{"cni":{"ips":["10.1.0.5"]}}`},
	{name: "ADD that requests two in CNI_ARGS", command: cni.CommandAdd, id: "new", args: "IP=10.1.0.5;IP=10.1.0.6"},
	{name: "ADD into a namespace that does not exist", command: cni.CommandAdd, id: "new", netns: "/run/netns/no-such-namespace"},
	{name: "ADD that requests no address", command: cni.CommandAdd, id: "new", args: "IP=10.1.0"},
	{name: "ADD that requests an address with a zone", command: cni.CommandAdd, id: "new", args: "IP=fd00::5%x"},
	{name: "ADD with an empty request", command: cni.CommandAdd, id: "new", args: "IP="},
	{name: "ADD with CNI_ARGS of others", command: cni.CommandAdd, id: "new", args: "K8S_POD_NAME=x"},
	{name: "ADD with CNI_ARGS of others, IgnoreUnknown", command: cni.CommandAdd, id: "new", args: "IgnoreUnknown=1;K8S_POD_NAME=x"},
	{name: "ADD with CNI_ARGS that end in a semicolon", command: cni.CommandAdd, id: "new", args: "IP=10.1.0.5;"},
	{name: "CHECK", command: cni.CommandCheck, id: "a", more: previous("10.1.0.2/24")},
	{name: "CHECK of an unknown attachment", command: cni.CommandCheck, id: "new", more: previous("10.1.0.3/24")},
	{name: "CHECK of one that has another address", command: cni.CommandCheck, id: "a", more: previous("10.1.0.5/24")},
	{name: "DEL", command: cni.CommandDel, id: "a"},
	{name: "DEL without a namespace", command: cni.CommandDel, id: "a", netns: "/run/netns/no-such-namespace"},
	{name: "DEL of an unknown attachment", command: cni.CommandDel, id: "new"},
	{name: "GC, all valid", command: cni.CommandGC, more: fmt.Sprintf(valid, `[{"containerID":"a","ifname":"eth0"}]`)},
	{name: "GC, none valid", command: cni.CommandGC, more: fmt.Sprintf(valid, `[]`)},
	{name: "GC without a list", command: cni.CommandGC},
	{name: "GC with null for a list", command: cni.CommandGC, more: `"cni.dev/valid-attachments":null`},
	{name: "GC with null under both names", command: cni.CommandGC, more: fmt.Sprintf(valid, `null`)},
	{name: "STATUS", command: cni.CommandStatus},
}

func previous(addr string) string {
	return fmt.Sprintf(`"prevResult":{"cniVersion":"1.1.0","ips":[{"address":%q}]}`, addr)
}

// setups are configurations, and directories, that both meet.
var setups = []setup{
	{name: "one subnet", ipam: `"subnet":"10.1.0.0/24"`},
	{name: "one subnet with start, end and gateway", ipam: `"subnet":"10.1.0.0/24","rangeStart":"10.1.0.2","rangeEnd":"10.1.0.9","gateway":"10.1.0.4"`},
	{name: "two families", ipam: `"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00::/64"}]]`},
	{name: "a set of two ranges", ipam: `"ranges":[[{"subnet":"10.1.0.0/29","rangeEnd":"10.1.0.2"},{"subnet":"10.2.0.0/24"}]]`},
	{name: "subnet and ranges", ipam: `"subnet":"10.3.0.0/24","ranges":[[{"subnet":"10.1.0.0/24"}]]`},
	{name: "ranges of the runtime", ipam: `"subnet":"10.1.0.0/24"`, more: `"runtimeConfig":{"ipRanges":[[{"subnet":"10.3.0.0/24","rangeStart":"10.3.0.7"}]]}`},
	{name: "routes", ipam: `"subnet":"10.1.0.0/24","routes":[{"dst":"0.0.0.0/0"},{"dst":"10.0.0.0/8","gw":"10.1.0.9"}]`},
	{name: "routes with more than dst and gw", ipam: `"subnet":"10.1.0.0/24","routes":[{"dst":"0.0.0.0/0","mtu":1400,"priority":5}]`},
	{name: "routes with unknown keys", ipam: `"subnet":"10.1.0.0/24","routes":[{"dst":"0.0.0.0/0","x":1}]`},
	{name: "a route that cannot be read", ipam: `"subnet":"10.1.0.0/24","routes":[{"dst":"default"}]`},
	{name: "a route without a destination", ipam: `"subnet":"10.1.0.0/24","routes":[{}]`},
	{name: "a resolvConf", ipam: `"subnet":"10.1.0.0/24","resolvConf":"{{cwd}}/testdata/resolv.conf"`},
	{name: "a resolvConf that is missing", ipam: `"subnet":"10.1.0.0/24","resolvConf":"/nowhere/resolv.conf"`},
	{name: "version 0.2.0", ipam: `"subnet":"10.1.0.0/24"`, version: "0.2.0"},
	{name: "version 0.4.0", ipam: `"subnet":"10.1.0.0/24"`, version: "0.4.0"},
	{name: "version 1.0.0", ipam: `"subnet":"10.1.0.0/24"`, version: "1.0.0"},
	{name: "version 0.2.0 with two sets of a family", ipam: `"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]`, version: "0.2.0"},

	{name: "a range from network to broadcast address", ipam: `"subnet":"10.1.0.0/29","rangeStart":"10.1.0.0","rangeEnd":"10.1.0.7"`,
		files: map[string]string{"last_reserved_ip.0": "10.1.0.6", "10.1.0.2": "a\r\neth0", "lock": ""}},
	{name: "the gateway of one range inside another", ipam: `"ranges":[[{"subnet":"10.1.0.0/24","rangeStart":"10.1.0.2","rangeEnd":"10.1.0.8"}],[{"subnet":"10.1.0.0/24","rangeStart":"10.1.0.20","gateway":"10.1.0.5"}]]`},
	{name: "one IPv6 subnet", ipam: `"subnet":"fd00::/64"`},
	{name: "an IPv6 subnet in another notation", ipam: `"subnet":"FD00:0::/64","rangeStart":"fd00:0:0::0010"`},
	{name: "IPv4 in IPv6 notation", ipam: `"subnet":"10.1.0.0/24","rangeStart":"::ffff:10.1.0.7","gateway":"::ffff:10.1.0.9"`},
	{name: "a subnet of IPv4 in IPv6 notation", ipam: `"subnet":"::ffff:10.1.0.0/120"`},
	{name: "a /31", ipam: `"subnet":"10.1.0.0/31"`, files: map[string]string{"lock": ""}},
	{name: "a /32", ipam: `"subnet":"10.1.0.5/32"`, files: map[string]string{"lock": ""}},
	{name: "a range that is all gateway", ipam: `"subnet":"10.1.0.0/24","rangeStart":"10.1.0.1","rangeEnd":"10.1.0.1"`},
	{name: "a prefix length with a leading zero", ipam: `"subnet":"10.1.0.0/024"`},
	{name: "a subnet with host bits", ipam: `"subnet":"10.1.0.5/24"`},
	{name: "a gateway outside", ipam: `"subnet":"10.1.0.0/24","gateway":"10.2.0.1"`},
	{name: "a range the wrong way round", ipam: `"subnet":"10.1.0.0/24","rangeStart":"10.1.0.9","rangeEnd":"10.1.0.3"`},
	{name: "ranges that overlap", ipam: `"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.1.0.0/25"}]]`},
	{name: "a set of two families", ipam: `"ranges":[[{"subnet":"10.1.0.0/24"},{"subnet":"fd00::/64"}]]`},
	{name: "an empty set", ipam: `"ranges":[[]]`},
	{name: "no range", ipam: ``},
	{name: "ranges that are no list", ipam: `"ranges":7`},
	{name: "the keys exclude and quarantine", ipam: `"subnet":"10.1.0.0/24","exclude":["10.1.0.3"],"quarantine":"1m"`},
	{name: "the key refuseDuplicate", ipam: `"subnet":"10.1.0.0/24","refuseDuplicate":true`},

	{name: "nothing there", ipam: `"subnet":"10.1.0.0/24"`, files: map[string]string{}},
	{name: "full", ipam: `"subnet":"10.1.0.0/30"`},
	{name: "the last set full", ipam: `"ranges":[[{"subnet":"10.2.0.0/24"}],[{"subnet":"10.1.0.0/30"}]]`},
	{name: "a lease of another subnet", ipam: `"subnet":"10.4.0.0/24"`},
	{name: "a record without an interface", ipam: `"subnet":"10.1.0.0/24"`, files: map[string]string{"10.1.0.2": "a", "lock": ""}},
	{name: "a record with white space around it", ipam: `"subnet":"10.1.0.0/24"`, files: map[string]string{"10.1.0.2": " a\r\neth0\n", "lock": ""}},
	{name: "a record with a line feed alone", ipam: `"subnet":"10.1.0.0/24"`, files: map[string]string{"10.1.0.2": "a\neth0", "lock": ""}},
	{name: "a record of another interface", ipam: `"subnet":"10.1.0.0/24"`, files: map[string]string{"10.1.0.2": "a\r\nnet1", "lock": ""}},
	{name: "records with and without an interface", ipam: `"subnet":"10.1.0.0/24"`, files: map[string]string{"10.1.0.2": "a\r\neth0", "10.1.0.3": "a", "lock": ""}},
	{name: "two addresses of one attachment", ipam: `"subnet":"10.1.0.0/24"`, files: map[string]string{"10.1.0.2": "a\r\neth0", "10.1.0.3": "a\r\neth0", "lock": ""}},
	{name: "an empty file that is old", ipam: `"subnet":"10.1.0.0/24"`, files: map[string]string{"10.1.0.2": "", "last_reserved_ip.0": "10.1.0.1", "lock": ""}},
	{name: "a text that is no record", ipam: `"subnet":"10.1.0.0/24"`, files: map[string]string{"10.1.0.2": "??? ???", "last_reserved_ip.0": "10.1.0.1", "lock": ""}},
	{name: "a directory in a lease's place", ipam: `"subnet":"10.1.0.0/24"`, files: map[string]string{"10.1.0.3/": "", "10.1.0.2": "a\r\neth0", "lock": ""}},
	{name: "a file that is no lease", ipam: `"subnet":"10.1.0.0/24"`, files: map[string]string{"README": "hands off", "10.1.0.2": "a\r\neth0", "lock": ""}},
	{name: "a last address that cannot be read", ipam: `"subnet":"10.1.0.0/24"`, files: map[string]string{"last_reserved_ip.0": "x", "10.1.0.2": "a\r\neth0", "lock": ""}},
	{name: "a last address of another subnet", ipam: `"subnet":"10.1.0.0/24"`, files: map[string]string{"last_reserved_ip.0": "10.9.0.9", "10.1.0.2": "a\r\neth0", "lock": ""}},
}
