#!/usr/bin/env bash
# Installs what the lab and the tests need on a bare Debian machine; quick and
# silent when nothing is missing. Go itself must be there.
#
#	scripts/setup.sh [TIER...]     test: also what tests of several packages run
#	                               e2e: what the nodes of the e2e tier run on
#	                               guest: the emulator and the kernels of the guest tier
set -euo pipefail
cd "$(dirname "$0")/.."

die() {
	echo "setup: $*" >&2
	exit 1
}

# The lowest Go that builds this module, as go.mod says it.
need_go=$(sed -n 's/^go //p' go.mod)
command -v go >/dev/null || die "Go is missing: install Go $need_go or newer from https://go.dev/dl/ and put it on PATH"
have_go=$(go env GOVERSION) || die "this Go cannot build the module: Go $need_go or newer is needed"
have_go=${have_go#go}
have_go=${have_go%% *}
[ "$(printf '%s\n' "$need_go" "$have_go" | sort -V | head -n 1)" = "$need_go" ] ||
	die "Go $have_go is too old: install Go $need_go or newer from https://go.dev/dl/"

[ "$(uname -s)" = Linux ] || exit 0 # elsewhere only the unit tier runs, and it needs nothing

links_c() { # gcc with the C library's headers: the race detector needs cgo
	printf '#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n' |
		gcc -x c -o /dev/null - 2>/dev/null
}

needed=(git:git ip:iproute2 bridge:iproute2 unshare:util-linux mount:mount iptables:iptables)
modules=(go.mod internal/peers/go.mod)
guests=
for tier; do
	case $tier in
	test) needed+=(clang:clang ping:iputils-ping) ;; # eBPF programs of tests, the reference plugins' suites
	e2e) # the rest is built, see internal/e2e/binaries
		needed+=(runc:runc nsenter:util-linux setpriv:util-linux)
		modules+=(internal/e2e/go.mod internal/e2e/*/go.mod)
		;;
	guest) # amd64 alone; elsewhere its tests say so
		[ "$(uname -m)" != x86_64 ] || guests=yes needed+=(qemu-system-x86_64:qemu-system-x86 xz:xz-utils)
		;;
	*) die "unknown tier $tier: leave it out, or say test, e2e or guest" ;;
	esac
done

missing=()
PATH=$PATH:/usr/sbin:/sbin
for pair in "${needed[@]}"; do
	command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
links_c || missing+=(gcc libc6-dev)
# Modules are fetched over TLS.
[ -n "${SSL_CERT_FILE:-}${SSL_CERT_DIR:-}" ] || [ -e /etc/ssl/certs/ca-certificates.crt ] ||
	[ -e /etc/pki/tls/certs/ca-bundle.crt ] || missing+=(ca-certificates)
install() { # the missing packages
	mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
	command -v apt-get >/dev/null || die "missing: ${missing[*]} (Debian's names); there is no apt-get here, install them by hand"
	[ "$(id -u)" = 0 ] || die "missing: ${missing[*]}; run as root: apt-get install ${missing[*]}"
	echo "setup: installing ${missing[*]}"
	# With its lists, which a mirror may have changed meanwhile. A machine that was just
	# started may be upgrading itself.
	DEBIAN_FRONTEND=noninteractive scripts/retry.sh sh -c 'apt-get -qq update &&
		apt-get -qq -y -o DPkg::Lock::Timeout=120 install --no-install-recommends "$@" >/dev/null' sh "${missing[@]}"
}
[ ${#missing[@]} = 0 ] || install

# What builds and tests need of other modules, and the Go that nested ones need, so that
# none of them waits for the network. What is missing in the end, they say.
for mod in "${modules[@]}"; do
	GOTOOLCHAIN=auto scripts/retry.sh go -C "${mod%go.mod}." mod download ||
		echo "setup: not all that $mod requires could be fetched" >&2
done

# The kernels that make test boot; quick when they are in the user's cache.
[ -z "$guests" ] || CGO_ENABLED=0 scripts/retry.sh go run ./internal/guest/cmd/fetch || {
	[ "${CI:-}" != true ] || die "no kernels for the guest tier"
	echo "setup: no kernels, so the tests of the guest tier will be skipped" >&2
}
