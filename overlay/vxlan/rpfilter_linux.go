package vxlan

import "slices"

// Values of rp_filter (ip-sysctl.rst); 0 is no filter, 2 a loose one.
const rpStrict = "1"

// strictFilters returns which of the underlay's link and our device filter strictly.
func (k *kernel) strictFilters() []string {
	conn, err := k.connect()
	if err != nil {
		return nil
	}
	links := []string{k.config.Device}
	if u, err := k.underlay(conn); err == nil {
		links = []string{u.name, k.config.Device}
	}
	filter := func(link string) string {
		value, _ := conn.Sysctl("net/ipv4/conf/" + link + "/rp_filter") // none without the link
		return value
	}
	all := filter("all")
	return slices.DeleteFunc(links, func(link string) bool {
		own := filter(link)
		return own == "" || max(all, own) != rpStrict
	})
}
