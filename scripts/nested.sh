#!/usr/bin/env bash
# Runs one go command over the packages of every nested module that has any, for
# example: scripts/nested.sh vet, scripts/nested.sh test -count=1
set -euo pipefail
cd "$(dirname "$0")/.."

command=$1
shift
for mod in internal/*/go.mod internal/*/*/go.mod; do
	dir=${mod%/go.mod}
	[ -n "$(find "$dir" -name '*.go' -print -quit)" ] || continue # it only pins programs
	# Its one program is built by package binaries, with flags of its own: any other
	# command would compile all of Kubernetes once more.
	[ "$dir" != internal/e2e/components ] || continue
	echo "$dir: go $command"
	# A nested module may need a newer Go than the SDK does; the go command fetches it.
	GOTOOLCHAIN=auto go "$command" -C "$dir" "$@" ./...
done
