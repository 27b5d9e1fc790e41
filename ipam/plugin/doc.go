// Package plugin turns an [ipam.Allocator] into a CNI IPAM plugin, to be
// executed or to be built into the plugin that delegates to it.
//
// [Plugin] is the finished one, of type "cnikit-ipam": its configuration and its
// directory are those of the reference host-local plugin, see [Config]; it adds
// exclusions, quarantine, and an answer to STATUS. What else differs is listed, with
// reasons, in docs/host-local.md, which the test that compares the two writes. [Over]
// serves any other allocator under a name of its own. The program of a plugin is
// one line, cni.Main(plugin.Plugin().Handler()); built in, it is an entry of
// [cni.Builtin].
//
// ADD gives one address out of each range set, and the same ones when it is
// repeated, with the routes of the configuration and the DNS settings of
// resolvConf. DEL needs no namespace, no ranges and no previous result. CHECK
// fails when an address is no longer held. GC frees what no valid attachment
// holds. STATUS answers code 50 when an ADD would get no address: a range set has none
// left, or the allocator cannot work. With more range sets of a family than a result
// before CNI 0.3.0 has places for, ADD is refused, and DEL once it has freed.
//
// The plugin touches no interface and no namespace: that is for the plugin that
// delegates to it.
package plugin
