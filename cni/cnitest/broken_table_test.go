package cnitest_test

// brokenPlugin is a fault of a plugin of package internal/broken, and the cases that
// find it.
type brokenPlugin struct {
	fault, kind string
	cases       []string
}

// brokenPlugins lists them, in the order of the cases.
func brokenPlugins() []brokenPlugin {
	b := func(kind, fault string, cases ...string) brokenPlugin { return brokenPlugin{fault, kind, cases} }
	return []brokenPlugin{
		b("chained", "prints-a-log-line", "protocol/result"),
		b("chained", "fails-with-status-0", "protocol/exit-status"),
		b("chained", "prints-no-error", "protocol/error"),
		b("chained", "error-without-version", "protocol/error-version"),
		b("chained", "error-with-code-8", "protocol/error-code"),
		b("chained", "garbage-is-bad-config", "protocol/undecodable"),
		b("chained", "command-unknown-with-code-100", "protocol/unknown-command"),
		b("chained", "help-instead-of-error", "protocol/no-command"),
		b("chained", "missing-variable-not-named", "protocol/missing-variables"),
		b("chained", "container-id-mended", "protocol/container-id"),
		b("bridge", "interface-name-shortened", "protocol/interface-name"),
		b("chained", "arguments-in-order-only", "protocol/arguments"),
		b("chained", "add-needs-path", "protocol/optional-variables"),
		b("chained", "unknown-capability-refused", "protocol/unknown-keys"),

		b("chained", "version-number-in-list", "version/answer"),
		b("chained", "version-of-its-own", "version/echo"),
		b("chained", "version-needs-path", "version/environment"),
		b("chained", "any-version-served", "version/unsupported"),
		b("chained", "version-unheard-of", "version/known"),

		b("chained", "del-prints", "del/succeeds"),
		b("chained", "del-in-namespace-leaves-file", "del/leaves-nothing"),
		b("chained", "second-del-fails", "del/repeated"),
		b("chained", "unknown-del-fails", "del/never-added"),
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
		b("bridge", "gc-not-forwarded", "gc/frees-addresses", "gc/removes-stale", "gc/empty-list"),
		b("ipam", "gc-takes-empty-for-missing", "gc/empty-list", "gc/frees-addresses"),
	}
}
