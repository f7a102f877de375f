#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_mpi_test.sh <run_mpi.sh>: exit codes come through, time-outs end everything, what stays behind is reported and ended.
set -u
runner=$1
# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

alive() { # a zombie (Z) is gone
  case $(sed 's/.*) //; s/ .*//' "/proc/$(cat "$1")/stat" 2>/dev/null) in '' | Z | X) echo gone ;; *) echo alive ;; esac
}

expect "a test that cannot be run says so" "skipped: no MPI" "$(CI='' "$runner" --skipped "no MPI")"
CI='' "$runner" --skipped "no MPI" >/dev/null
expect "it is skipped" 77 $?
CI=true "$runner" --skipped "no MPI" >/dev/null
expect "with CI=true it fails" 1 $?

"$runner" mpirun --plain 0 20 bash -c 'exit 0'
expect "success comes through" 0 $?
"$runner" mpirun --plain 0 20 bash -c 'exit 75'
expect "an exit code comes through" 75 $?

"$runner" mpirun --plain 0 1 bash -c "setsid sleep 300 & echo \$! >$work/a; sleep 300 & echo \$! >$work/b; wait" >"$work/out"
expect "the time-out is reported" 124 $?
expect "its sentence" "run_mpi.sh: not done after 1 s" "$(cat "$work/out")"
expect "the time-out ends a process in another session" gone "$(alive "$work/a")"
expect "the time-out ends a child" gone "$(alive "$work/b")"

"$runner" mpirun --plain 0 20 bash -c "setsid sleep 300 >/dev/null 2>&1 & echo \$! >$work/c" >"$work/out"
expect "a process left behind is a failure" 1 $?
expect "it is named" "run_mpi.sh: left behind: $(cat "$work/c") sleep 300" "$(sed "s/ *$//" "$work/out")"
expect "it is ended" gone "$(alive "$work/c")"

exit $((failures > 0))
