package cnitest_test

// brokenPlugin is a fault of a plugin of package internal/broken, and the cases that
// find it.
type brokenPlugin struct {
	fault, kind string
	cases       []string
	follow      []string // cases that may stumble over what follows from the fault
}

// so says which these are.
func (b brokenPlugin) so(follow ...string) brokenPlugin {
	b.follow = follow
	return b
}

// brokenPlugins lists them, in the order of the cases.
func brokenPlugins() []brokenPlugin {
	b := func(kind, fault string, cases ...string) brokenPlugin {
		return brokenPlugin{fault: fault, kind: kind, cases: cases}
	}
	return []brokenPlugin{
		b("chained", "prints-a-log-line", "protocol/result"),
		b("bridge", "fails-with-status-0", "protocol/exit-status"),
		b("chained", "prints-no-error", "protocol/error"),
		b("chained", "error-without-version", "protocol/error-version"),
		b("chained", "error-with-code-8", "protocol/error-code"),
		b("chained", "garbage-is-bad-config", "protocol/undecodable"),
		b("chained", "command-unknown-with-code-100", "protocol/unknown-command"),
		b("chained", "help-instead-of-error", "protocol/no-command"),
		b("chained", "missing-variable-not-named", "protocol/missing-variables"),
		b("chained", "container-id-mended", "protocol/container-id"),
		b("chained", "network-name-mended", "protocol/network-name"),
		b("bridge", "interface-name-shortened", "protocol/interface-name"),
		b("chained", "arguments-in-order-only", "protocol/arguments"),
		b("chained", "add-needs-path", "protocol/optional-variables"),
		b("chained", "unknown-capability-refused", "protocol/unknown-keys"),

		b("chained", "version-number-in-list", "version/answer"),
		b("chained", "version-of-its-own", "version/echo"),
		b("chained", "version-needs-path", "version/environment"),
		b("chained", "any-version-served", "version/unsupported"),
		b("chained", "version-unheard-of", "version/known"),

		b("ipam", "result-without-version-in-0.1.0", "results/0.1.0"),
		b("ipam", "result-without-version-in-0.2.0", "results/0.2.0"),
		b("chained", "result-without-version-in-0.3.0", "results/0.3.0"),
		b("chained", "result-without-version-in-0.3.1", "results/0.3.1"),
		b("chained", "result-without-version-in-0.4.0", "results/0.4.0"),
		b("chained", "result-without-version-in-1.0.0", "results/1.0.0"),
		b("chained", "result-without-version-in-1.1.0", "results/1.1.0"),
		b("chained", "result-of-1.0.0-with-mtu", "results/newer-keys"),
		b("bridge", "result-without-mac-of-the-host", "results/interfaces"),
		b("bridge", "sandbox-rewritten", "results/sandbox"),
		b("bridge", "address-made-up", "results/addresses", "concurrency/add"),
		b("bridge", "route-made-up", "results/routes"),
		b("ipam", "ipam-lists-interfaces", "results/abbreviated"),
		b("chained", "nameservers-turned-round", "results/dns"),

		b("bridge", "host-interface-taken", "add/creates-interface"),
		b("bridge", "interface-stays-down", "add/creates-interface", "results/routes", "check/after-add").so("check/without-addresses", "delegation/check"),
		b("bridge", "existing-interface-replaced", "add/existing-interface"),
		b("bridge", "second-add-takes-the-first", "add/repeated"),
		b("chained", "no-add-after-del", "add/after-del"),
		b("bridge", "one-interface-only", "add/second-interface"),
		b("bridge", "failed-add-leaves-link", "add/failure-leaves-nothing"),
		b("bridge", "failed-add-confuses-del", "add/failure-del"),

		b("chained", "del-prints", "del/succeeds"),
		b("chained", "del-in-namespace-leaves-file", "del/leaves-nothing").so("faults/state-read-only"),
		b("chained", "second-del-fails", "del/repeated").so("faults/state-read-only", "faults/killed-add", "faults/killed-del"),
		b("chained", "unknown-del-fails", "del/never-added"),
		b("chained", "del-takes-all-of-the-container", "del/one-of-two"),
		b("chained", "del-needs-namespace", "del/no-namespace"),
		b("chained", "del-without-namespace-leaves-file", "del/no-namespace-leaves-nothing"),
		b("bridge", "masquerade-left", "del/masquerade"),
		b("chained", "del-needs-previous-result", "del/no-previous-result"),
		b("chained", "del-needs-path", "del/optional-variables"),

		b("chained", "check-fails", "check/after-add"),
		b("chained", "check-prints", "check/silent"),
		b("bridge", "check-needs-ipam", "check/without-addresses"),
		b("bridge", "check-compares-mac", "check/changed-by-others"),
		b("bridge", "check-misses-interface", "check/interface-gone"),
		b("bridge", "check-misses-state", "check/interface-down"),
		b("bridge", "check-misses-address", "check/address-gone"),
		b("bridge", "check-misses-route", "check/route-gone"),
		b("bridge", "check-expects-what-is-there", "check/expectation"),
		b("chained", "check-misses-rules", "check/rules-gone").so("concurrency/storm", "faults/killed-del"),
		b("ipam", "check-misses-reservation", "check/reservation-gone"),

		b("chained", "status-fails", "status/ready"),
		b("chained", "status-prints", "status/silent"),
		b("chained", "status-needs-path", "status/environment"),
		b("bridge", "status-misses-delegate", "status/delegate-missing"),
		b("ipam", "status-blind-to-exhaustion", "status/exhausted"),
		b("ipam", "status-with-code-100", "status/code"),
		b("ipam", "status-is-believed", "status/not-binding"),

		b("chained", "gc-fails-without-state", "gc/succeeds"),
		b("chained", "gc-prints", "gc/silent"),
		b("chained", "gc-spares-the-first-only", "gc/keeps-valid"),
		b("chained", "gc-reads-one-key", "gc/tag-key"),
		b("chained", "gc-does-nothing", "gc/removes-stale"),
		b("ipam", "gc-takes-empty-for-missing", "gc/empty-list"),

		b("chained", "dns-of-others-dropped", "chaining/keeps-previous"),
		b("bridge", "result-of-its-own", "chaining/behind-another"),
		b("chained", "mtu-not-restored", "del/leaves-nothing"),
		b("chained", "check-knows-the-dns", "chaining/check"),

		b("bridge", "first-directory-only", "delegation/search-path"),
		b("bridge", "delegate-without-arguments", "delegation/environment"),
		b("bridge", "delegate-without-unknown-keys", "delegation/configuration"),
		b("bridge", "another-address", "delegation/result").so("faults/delegate-slow"),
		b("bridge", "standard-error-dropped", "delegation/standard-error"),
		b("bridge", "type-with-path-mended", "delegation/type"),
		b("bridge", "del-not-forwarded", "delegation/del", "del/leaves-nothing").so("status/not-binding", "faults/state-read-only"),
		b("bridge", "check-not-forwarded", "delegation/check"),
		b("bridge", "gc-not-forwarded", "delegation/gc", "gc/frees-addresses", "gc/removes-stale"),
		b("bridge", "status-not-forwarded", "delegation/status", "status/delegate-missing", "status/exhausted").so("faults/state-read-only-status"),
		b("bridge", "del-without-namespace-not-forwarded", "delegation/del-no-namespace", "del/no-namespace-leaves-nothing"),
		b("bridge", "delegate-add-forgiven", "delegation/add-error"),
		b("bridge", "delegate-del-forgiven", "delegation/del-error"),
		b("bridge", "delegate-check-forgiven", "delegation/check-error"),
		b("bridge", "delegate-gc-forgiven", "delegation/gc-error"),
		b("bridge", "delegate-status-forgiven", "delegation/status-error"),
		b("bridge", "no-del-after-failed-delegate", "delegation/add-error-del", "faults/delegate-fails-late", "faults/delegate-killed"),
		b("bridge", "no-del-after-delegate", "delegation/undo"),

		b("ipam", "address-out-of-range", "ipam/distinct"),
		b("ipam", "second-add-frees-the-first", "ipam/second-add"),
		b("ipam", "first-range-kept", "ipam/failure-leaves-nothing"),
		b("ipam", "del-without-namespace-frees-nothing", "ipam/del-frees", "del/no-namespace-leaves-nothing"),
		b("ipam", "del-frees-all-of-the-container", "ipam/del-own", "del/one-of-two"),
		b("ipam", "ipam-touches-the-container", "ipam/hands-off").so("del/one-of-two"),

		b("chained", "one-add-at-a-time", "concurrency/add", "concurrency/storm", "faults/killed-add"),
		b("chained", "del-of-many", "concurrency/del").so("concurrency/storm"),
		b("chained", "check-during-add-fails", "concurrency/storm"),
		b("chained", "del-races", "concurrency/del-of-one"),

		b("bridge", "namespace-not-looked-at", "faults/no-namespace", "protocol/exit-status"),
		b("bridge", "namespace-looked-at-late", "faults/no-namespace-leaves-nothing"),
		b("chained", "lost-namespace-fails", "faults/lost-namespace"),
		b("bridge", "host-refused-late", "faults/host-namespace"),
		b("bridge", "host-interface-deleted", "faults/host-namespace-del"),
		b("bridge", "any-interface-deleted", "faults/recycled-namespace"),
		b("bridge", "missing-interface-fails", "faults/interface-removed").so("concurrency/del-of-one", "faults/host-interfaces-removed", "faults/state-read-only", "faults/killed-del"),
		b("bridge", "missing-interface-is-all", "faults/interface-renamed"),
		b("bridge", "missing-bridge-fails", "faults/host-interfaces-removed"),
		b("chained", "empty-previous-fails", "faults/previous-empty"),
		b("chained", "previous-not-converted", "faults/previous-other-version"),
		b("bridge", "all-of-previous-deleted", "faults/previous-foreign"),
		b("chained", "index-without-interface", "faults/previous-nonsense"),
		b("bridge", "missing-delegate-not-named", "faults/delegate-missing"),
		b("bridge", "impatient", "faults/delegate-slow"),
		b("bridge", "noise-passed-on", "faults/delegate-noisy"),
		b("bridge", "unfinished-add-remembered", "faults/delegate-hangs", "faults/killed-add"),
		b("chained", "failed-removal-forgiven", "faults/state-read-only"),
		b("chained", "status-tries-nothing", "faults/state-read-only-status"),
		b("ipam", "file-left-when-full", "faults/state-full"),
		b("ipam", "empty-file-crashes", "faults/state-torn"),
		b("chained", "add-in-two-steps", "faults/killed-add"),
		b("chained", "del-in-two-steps", "faults/killed-del"),
	}
}
