#!/usr/bin/env bash
# Runs a command that fetches something, and again when it fails: a proxy or a mirror may
# be out of reach for a while.
#
#	scripts/retry.sh COMMAND [ARGUMENT...]
set -uo pipefail

for pause in 2 5 10 20; do
	"$@" && exit
	echo "retry: $1 failed, again in $pause s" >&2
	sleep "$pause"
done
exec "$@"
