package main

import (
	"context"
	"fmt"
	"strings"
)

// measureMTU finds the largest packet between nodes. A pod must be able to send packets of
// its MTU, none larger, and no node may have fragmented anything on the outside.
func (l *lab) measureMTU(ctx context.Context) error {
	var rows [][]string
	for _, from := range l.nodes {
		for _, to := range l.nodes {
			if from == to {
				continue
			}
			row := []string{from.pods[0].name, to.pods[0].name}
			for _, f := range families() {
				size, err := from.pods[0].ns.LargestPacket(ctx, to.pods[0].addrs[f], podMTU)
				if err != nil {
					return err
				}
				if size != podMTU {
					return &failure{
						fmt.Sprintf("%d bytes as the largest unfragmented %s packet from %s to %s: the underlay's MTU of %d less the tunnel's %d",
							podMTU, f, row[0], row[1], underlayMTU, vxlanOverhead),
						fmt.Sprintf("%d bytes; fragments made: %s", size, l.fragments()),
					}
				}
				row = append(row, fmt.Sprint(size))
			}
			rows = append(rows, row)
		}
	}
	l.out.table([]string{"FROM", "TO", "IPV4", "IPV6"}, rows)
	if made := l.fragments(); made != "none" {
		return &failure{"no packet fragmented on any node (IpFragCreates, Ip6FragCreates)", made}
	}
	l.out.say("bytes: %d of the underlay less %d for the tunnel; fragments made by the nodes: none", underlayMTU, vxlanOverhead)
	return nil
}

// fragments says what the nodes fragmented since they were made.
func (l *lab) fragments() string {
	var made []string
	for _, n := range l.nodes {
		counters, err := n.ns.Counters()
		if err != nil {
			return err.Error()
		}
		for _, name := range []string{"IpFragCreates", "Ip6FragCreates"} {
			if value := counters[name]; value > 0 {
				made = append(made, fmt.Sprintf("%s of %s is %d", name, n.member.Name, value))
			}
		}
	}
	if len(made) == 0 {
		return "none"
	}
	return strings.Join(made, ", ")
}
