package nft

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/netns"
)

// Objects lists what nftables holds in ns: tables, then chains, rules, sets with their
// elements, stateful objects and flow tables. A list that changed while it was read is
// read again. A kernel without nf_tables is an error that matches
// [errors.ErrUnsupported]. Reading takes CAP_NET_ADMIN in the namespace.
func Objects(ns *netns.NS) ([]Object, error) {
	c, err := dial(ns)
	if err != nil {
		return nil, fmt.Errorf("list nftables objects: %w", err)
	}
	defer c.close()
	var all []Object
	for _, d := range dumps() {
		got, err := c.dump(d.message, nil)
		if err != nil {
			return nil, fmt.Errorf("list nftables %ss: %w", d.kind, err)
		}
		for _, m := range got {
			o := d.object(m)
			all = append(all, o)
			if o.Kind != Set {
				continue
			}
			elements, err := c.elements(m, o)
			if err != nil {
				return nil, fmt.Errorf("list nftables elements of %s: %w", o, err)
			}
			all = append(all, elements...)
		}
	}
	return all, nil
}

// dump is one listing: the message that asks for it and which attributes identify an
// object in the answers.
type dump struct {
	kind           Kind
	message        uint16
	table, name    uint16 // attribute types
	handle, detail uint16 // 0: the kind has none
}

func dumps() []dump {
	return []dump{
		{kind: Table, message: unix.NFT_MSG_GETTABLE, table: unix.NFTA_TABLE_NAME, name: unix.NFTA_TABLE_NAME},
		{kind: Chain, message: unix.NFT_MSG_GETCHAIN, table: unix.NFTA_CHAIN_TABLE, name: unix.NFTA_CHAIN_NAME},
		{
			kind: Rule, message: unix.NFT_MSG_GETRULE, table: unix.NFTA_RULE_TABLE, name: unix.NFTA_RULE_CHAIN,
			handle: unix.NFTA_RULE_HANDLE, detail: unix.NFTA_RULE_EXPRESSIONS,
		},
		{kind: Set, message: unix.NFT_MSG_GETSET, table: unix.NFTA_SET_TABLE, name: unix.NFTA_SET_NAME},
		{kind: Stateful, message: unix.NFT_MSG_GETOBJ, table: unix.NFTA_OBJ_TABLE, name: unix.NFTA_OBJ_NAME},
		// linux/netfilter/nf_tables.h: NFTA_FLOWTABLE_TABLE and _NAME, which x/sys lacks.
		{kind: FlowTable, message: unix.NFT_MSG_GETFLOWTABLE, table: 1, name: 2},
	}
}

func (d dump) object(m message) Object {
	o := Object{Kind: d.kind, Family: family(m.family), Table: m.text(d.table), Name: m.text(d.name)}
	if raw := m.attrs[d.handle]; d.handle != 0 && len(raw) == 8 {
		o.Handle = binary.BigEndian.Uint64(raw)
	}
	if d.detail != 0 {
		o.Detail = expressions(m.attrs[d.detail])
	}
	return o
}

// expressions names the expressions of a rule in order.
func expressions(list []byte) string {
	var names []string
	eachAttr(list, func(_ uint16, element []byte) {
		eachAttr(element, func(kind uint16, value []byte) {
			if kind == unix.NFTA_EXPR_NAME {
				names = append(names, text(value))
			}
		})
	})
	return strings.Join(names, " ")
}

// elements lists the elements of a set. Those of a set that packets fill (flag
// dynamic) or that time out come and go by themselves and are left out.
func (c *conn) elements(set message, of Object) ([]Object, error) {
	if raw := set.attrs[unix.NFTA_SET_FLAGS]; len(raw) == 4 {
		if binary.BigEndian.Uint32(raw)&(unix.NFT_SET_EVAL|unix.NFT_SET_TIMEOUT) != 0 {
			return nil, nil
		}
	}
	request := attr(unix.NFTA_SET_ELEM_LIST_TABLE, of.Table)
	request = append(request, attr(unix.NFTA_SET_ELEM_LIST_SET, of.Name)...)
	got, err := c.dump(unix.NFT_MSG_GETSETELEM, &message{family: set.family, payload: request})
	if err != nil {
		return nil, err
	}
	var elements []Object
	for _, m := range got {
		eachAttr(m.attrs[unix.NFTA_SET_ELEM_LIST_ELEMENTS], func(_ uint16, element []byte) {
			o := of
			o.Kind, o.Detail = Element, elementKey(element)
			elements = append(elements, o)
		})
	}
	return elements, nil
}

// elementKey is the key of an element in hexadecimal; "end" marks the end of an
// interval, "default" is the catch-all element, which has no key.
func elementKey(element []byte) string {
	key, end := "default", ""
	eachAttr(element, func(kind uint16, value []byte) {
		switch kind {
		case unix.NFTA_SET_ELEM_KEY:
			eachAttr(value, func(_ uint16, data []byte) { key = hex.EncodeToString(data) })
		case unix.NFTA_SET_ELEM_FLAGS:
			if len(value) == 4 && binary.BigEndian.Uint32(value)&unix.NFT_SET_ELEM_INTERVAL_END != 0 {
				end = " end"
			}
		}
	})
	return key + end
}

// family names an nfproto as nft(8) does.
func family(proto byte) string {
	switch proto {
	case unix.NFPROTO_INET:
		return "inet"
	case unix.NFPROTO_IPV4:
		return "ip"
	case unix.NFPROTO_ARP:
		return "arp"
	case unix.NFPROTO_NETDEV:
		return "netdev"
	case unix.NFPROTO_BRIDGE:
		return "bridge"
	case unix.NFPROTO_IPV6:
		return "ip6"
	}
	return fmt.Sprintf("family-%d", proto)
}
