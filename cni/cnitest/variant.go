package cnitest

// smallSubnet has one address beside the gateway's.
const smallSubnet = "10.89.89.0/30"

// ranged reports whether addresses come from subnets in the form of host-local, which a
// case can replace.
func ranged(x *exam) string {
	ipam := x.net.plugin().object("ipam")
	if ipam.text("subnet") == "" && ipam.list("ranges") == nil {
		return "the configuration has no ipam.subnet or ipam.ranges that the case could replace"
	}
	return ""
}

// ranges replaces the subnets of the configuration: each argument is a set of its own. A
// single one stays the subnet that the configuration has: not all plugins know ranges.
func (p *probe) ranges(subnets ...string) {
	ipam := p.config.object("ipam")
	plain := len(subnets) == 1 && ipam.text("subnet") != "" && ipam.list("ranges") == nil
	for _, key := range []string{"subnet", "rangeStart", "rangeEnd", "gateway"} {
		delete(ipam, key)
	}
	if plain {
		ipam["subnet"] = subnets[0]
		return
	}
	sets := []any{}
	for _, subnet := range subnets {
		sets = append(sets, []any{map[string]any{"subnet": subnet}})
	}
	ipam["ranges"] = sets
}

// exhaust takes the last address of a small range and returns who has it.
func (p *probe) exhaust() *attachment {
	p.ranges(smallSubnet)
	a := p.attached()
	if got := p.answered(p.add(p.container())); got.succeeded() {
		p.skip("needs a range of addresses that can be used up, and a second ADD from %s succeeded: %s", smallSubnet, got)
	}
	return a
}

// alone takes delegates out of the configuration, and what a plugin can do with addresses
// alone. The case is skipped if the plugin does not attach then.
func (p *probe) alone() {
	for _, key := range []string{"ipam", "isGateway", "isDefaultGateway", "ipMasq", "forceAddress"} {
		delete(p.config, key)
	}
	a := p.container()
	if got := p.add(a); !got.succeeded() {
		p.skip("the plugin does not attach without a delegate: %s", got)
	}
	p.del(a)
}

// nowhere has CNI_PATH lead to an empty directory, in which no delegate is. The case is
// skipped if the plugin attaches all the same.
func (p *probe) nowhere() {
	p.path = []string{p.directory("empty")}
	if got := p.answered(p.add(p.container())); got.succeeded() {
		p.skip("the delegate is built in: the plugin attaches although CNI_PATH has none")
	}
}
