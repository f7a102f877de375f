#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# meeting.sh <meeting>    what the checks prove is about the real thing: where stages meet for every message (synchronous sends, no
# tags by item), a lowered program ends, and one that the checks refuse hangs until its deadline. With buffers even that one ends.
set -u
# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../../support/expect.sh"
flags=(--with-ft ulfm --mca pml ob1 --oversubscribe --bind-to none)
((EUID == 0)) && flags+=(--allow-run-as-root)
ends() { # <seconds> <arguments>: how many ranks are done, and the exit code of the deadline
  local seconds=$1 out
  shift
  out=$(timeout -k 5 "$seconds" "$RHEO_MPIRUN" "${flags[@]}" -n 2 "$@" 2>/dev/null)
  echo "$? $(grep -c '^done$' <<<"$out")"
}
expect "lowered, buffered" "0 2" "$(ends 60 "$1" lowered buffered)"
expect "lowered, by rendezvous" "0 2" "$(ends 60 "$1" lowered rendezvous)"
expect "refused, buffered" "0 2" "$(ends 60 "$1" lazy buffered)"
expect "refused, by rendezvous, hangs" "124 0" "$(ends 8 "$1" lazy rendezvous)"
exit $((failures > 0))
