#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tsan_training.sh <rheo> <work folder>    under the thread sanitizer: a job with all its threads (two that take tiles, the writer of
# checkpoints, the watchdog) loses a rank and ends, and none of its processes has a race to report.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 6
train.eval_every = 2
train.microbatch = { sequences = 2, tokens = 16 }
run.threads = 2
checkpoint.every_steps = 2
END
nm "$rheo" 2>/dev/null | grep -q __tsan_read4
expect "the program is one of the thread sanitizer" 0 $?
# The MPI is not instrumented. With fixed addresses (setarch -R) its shared memory between processes has no place.
export TSAN_OPTIONS="ignore_noninstrumented_modules=1:exitcode=66:log_path=$PWD/race" PMIX_MCA_gds=hash OMPI_MCA_btl=^sm UCX_MEM_EVENTS=no UCX_MEM_MMAP_HOOK_MODE=none
train undisturbed 4
expect "a job ends" 0 $?
train lost 4 --inject kill:3@3:backward
expect "and one that loses a rank" 0 $?
expect "with the same bits" "$(value digest undisturbed)" "$(value digest lost)"
expect "reports of races" "" "$(cat race.* 2>/dev/null | head -40)"
exit $((failures > 0))
