#!/usr/bin/env bash
# Runs every tier; the arguments go to each go test. What the e2e tier runs takes minutes
# to build when it is not in the cache, so that goes on in the background meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
cache=.cache
log=$cache/e2e-build.log
build=

finish() { # a build that nobody waits for any more ends, and what is complete stays
	[ -n "$build" ] || return 0
	kill -TERM -- "-$build" 2>/dev/null || true
	wait "$build" || true
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

start_build() {
	mkdir -p "$cache"
	"$go" build -C internal/e2e -o "$PWD/$cache/e2e-build" ./cmd/build
	# A process group of its own, to end it with all that it started; not a session of its
	# own, since between sessions the kernel does not look at how nice a process is.
	set -m
	"$cache/e2e-build" >"$log" 2>&1 &
	set +m
	build=$!
}

await_build() {
	echo "waiting for the components of the e2e tier ($log)"
	tail -n +1 -f --pid="$build" "$log"
	local rc=0
	wait "$build" || rc=$?
	build=
	[ "$rc" = 0 ] || echo "the components of the e2e tier could not be built; see above, or: make e2e"
	return "$rc"
}

# Only root can run the tier; for others its tests say so.
if [ "$(id -u)" = 0 ]; then
	start_build
fi
# Tests that run at once wait for the kernel more than they compute.
CGO_ENABLED=1 "$go" test -race -count=1 -timeout 20m -parallel 4 "$@" ./...
scripts/nested.sh vet
[ -z "$build" ] || await_build
# Without the race detector: the cluster is other processes, it would watch the tests
# alone, and compile Kubernetes' client once more. One cluster at a time.
scripts/nested.sh test -p 1 -count=1 -timeout 20m "$@"
