// Package nft lists what nftables holds in a network namespace.
//
// [Objects] dumps every table, chain, rule, set, set element, stateful object and
// flow table of all families straight from the kernel (nfnetlink), so it needs no
// nft binary, sees the rules that iptables-nft wrote, and does not stumble over an
// expression it does not know. It reads identities, not contents: what a rule
// matches is named, not decoded, and counters are left out, so that two lists of an
// unchanged rule set are equal whatever traffic passed in between.
//
// [Flush] takes everything away, for tests of who should notice.
package nft
