package plugin

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

func readResolvConf(path string) (cni.DNS, error) {
	f, err := os.Open(path)
	if err != nil {
		return cni.DNS{}, err
	}
	defer func() { _ = f.Close() }()
	dns, err := parseResolvConf(f)
	if err != nil {
		return cni.DNS{}, fmt.Errorf("read %s: %w", path, err)
	}
	return dns, nil
}

// parseResolvConf reads the lines of a resolv.conf(5) that have a place in a
// result; others are skipped. As host-local does, it gathers all search and
// options lines, where the resolver counts the last one only.
func parseResolvConf(in io.Reader) (cni.DNS, error) {
	var dns cni.DNS
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		switch values := words[1:]; words[0] {
		case "nameserver":
			dns.Nameservers = append(dns.Nameservers, values[0])
		case "domain":
			dns.Domain = values[0]
		case "search":
			dns.Search = append(dns.Search, values...)
		case "options":
			dns.Options = append(dns.Options, values...)
		}
	}
	return dns, lines.Err()
}
