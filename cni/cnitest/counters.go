package cnitest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Counters reads the protocol counters of the namespace, by the names of nstat(8):
// "IpFragCreates" and "Ip6FragCreates" count the fragments made, "IpInReceives" the
// packets received, and so on.
func (n *Namespace) Counters() (map[string]uint64, error) {
	var snmp, snmp6 []byte
	err := n.Do(func() (err error) {
		if snmp, err = os.ReadFile("/proc/thread-self/net/snmp"); err != nil {
			return err
		}
		snmp6, err = os.ReadFile("/proc/thread-self/net/snmp6")
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a kernel without IPv6
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read counters of %s: %w", n.name, err)
	}
	counters := map[string]uint64{}
	parseSNMP(string(snmp), counters)
	parseSNMP6(string(snmp6), counters)
	return counters, nil
}

// parseSNMP reads pairs of lines: "Ip: Name Name …" and "Ip: 1 2 …". A value that is
// not a count (TcpMaxConn is -1) is left out.
func parseSNMP(text string, into map[string]uint64) {
	lines := strings.Split(text, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		for k := 1; k < min(len(names), len(values)); k++ {
			if value, err := strconv.ParseUint(values[k], 10, 64); err == nil {
				into[strings.TrimSuffix(names[0], ":")+names[k]] = value
			}
		}
	}
}

// parseSNMP6 reads lines of a name and a value.
func parseSNMP6(text string, into map[string]uint64) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		if value, err := strconv.ParseUint(fields[1], 10, 64); err == nil {
			into[fields[0]] = value
		}
	}
}
