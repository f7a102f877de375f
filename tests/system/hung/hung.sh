#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hung.sh <rheo> <work folder>: jobs with a rank that stands still end, without it, with the bits of the undisturbed job; and nobody comes
# back who was left behind.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 250
train.microbatch = { sequences = 4, tokens = 32 }
run.watchdog = { factor = 20, least_s = 2, stopped_s = 1 }
END
judge() { # <run folder> <sentence>: it ended with the digest of the undisturbed job, and reported why the rank was lost
  expect "$1: the digest" "$digest" "$(value digest "$1")"
  expect "$1: why" 1 "$(($(grep -cE "$2" "$1.out") > 0))"
  [[ $(value digest "$1") == "$digest" ]] || tail -20 "$1.out"
}

train undisturbed 4
expect "the undisturbed job ends" 0 $?
"$rheo" train job.toml --set run.folder=undisturbed --ended >ended.out
expect "its folder says that it has ended" "0 undisturbed: all 250 steps are committed (exit code 0)" "$? $(cat ended.out)"
"$rheo" train job.toml --set run.folder=undisturbed --set train.steps=251 --ended >ended.out
expect "but not with a step more" 1 $?
digest=$(value digest undisturbed)
[[ -n $digest ]] || { cat undisturbed.out; exit 1; }

# From outside, wherever it is in its step; the signal to continue comes too late for it.
train stopped 4 &
job=$!
reached stopped 20
victim=$(pid_of stopped 2)
kill -STOP "$victim"
sleep 4
kill -CONT "$victim" 2>/dev/null
wait $job
expect "the job with a stopped rank ends" 0 $?
judge stopped 'rank [0-9]+: rank 2 on the same host \(process [0-9]+\) has stood still for .* and is killed'
expect "the stopped rank is gone" 1 "$(kill -0 "$victim" 2>/dev/null; echo $?)"

# The rank that speaks, and another one in the recovery from that.
train twice 4 --inject stop:0@30:backward --inject stop:3@30:copy
expect "the job with two stopped ranks ends" 0 $?
judge twice 'rank 0 on the same host .* is killed'

train hangs 4 --inject hang:1@30:backward
expect "the job with a hanging rank ends" 0 $?
judge hangs 'rank 1: an operation has taken .* its deadline is .* the rank ends itself'

# The network was cut in two halves, and the other one, which holds these for lost, was first. One of them stands in a step all the while (here
# nobody watches) and comes back only then: neither it nor those that waited for it can commit or write; each says so and ends.
written() { cat cut/metrics.jsonl cut/trace/* cut/ranks/* | sha256sum; }
train cut 4 --set run.watchdog.stopped_s=0 --inject stop:2@30:backward &
job=$!
reached cut 30
behind=$(pid_of cut 2)
until [[ $(ps -o stat= -p "$behind") != [RSD]* ]]; do sleep 0.01; done
kill -KILL "$(pid_of cut 3)"
echo "the other half" >cut/after-1
until before=$(written) && sleep 1 && [[ $(written) == "$before" ]]; do :; done # what the others had to write of the step before
kill -CONT "$behind"
wait $job 2>/dev/null # with 0: a launcher whose ranks are all lost has no exit code to pass on
for rank in 0 1 2; do
  expect "rank $rank says that it was left behind" 1 \
    "$(grep -c "^rheo: rank $rank: the others continued without it after generation 1 ('cut/after-1' says who); it commits and writes nothing more, and ends itself\$" cut.out)"
done
expect "the one that came back is gone" 1 "$(kill -0 "$behind" 2>/dev/null; echo $?)"
expect "nothing is written any more" "$before" "$(written)"
expect "there is no report" no "$([[ -e cut/report.json ]] && echo yes || echo no)"
"$rheo" train job.toml --set run.folder=cut --ended >ended.out
expect "whatever the launcher returned, it has not ended" "1 cut: has not ended; all its ranks were lost, or it runs; 0 steps are safe in its newest checkpoint" "$? $(cat ended.out)"
expect "and no checkpoint" "" "$(cd cut && compgen -G 'step-*')"
expect "the other half's word stands" "the other half" "$(cat cut/after-1)"

exit $((failures > 0))
