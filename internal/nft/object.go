package nft

import (
	"fmt"
	"strings"
)

// Kind is what an [Object] is.
type Kind string

// The kinds, in the order in which [Objects] lists them.
const (
	Table     Kind = "table"
	Chain     Kind = "chain"
	Rule      Kind = "rule"
	Set       Kind = "set"
	Element   Kind = "element"
	Stateful  Kind = "object"
	FlowTable Kind = "flowtable"
)

// Object is one nftables object. Its fields identify it: the kernel gives a rule that
// was replaced a new handle.
type Object struct {
	Kind   Kind
	Family string // "ip", "ip6", "inet", "arp", "bridge", "netdev"
	Table  string
	Name   string // of the table, set, object, flow table, or of the chain a rule is in
	Handle uint64 // of a rule; else 0
	Detail string // the expressions of a rule by name, the key of an element in hexadecimal
}

// String is the object on one line, in the words of nft(8).
func (o Object) String() string {
	words := []string{string(o.Kind), o.Family, o.Table}
	if o.Kind != Table {
		words = append(words, o.Name)
	}
	if o.Handle != 0 {
		words = append(words, fmt.Sprintf("handle %d", o.Handle))
	}
	if o.Detail != "" {
		words = append(words, o.Detail)
	}
	return strings.Join(words, " ")
}
