#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rewind.sh <rheo> <work folder>: metrics.jsonl of a job that was killed, went back to a checkpoint, and then lost the rank that
# writes: every step and evaluation is there once and in order, what was repeated is marked, and there is one end.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 30
train.microbatch = { sequences = 2, tokens = 32 }
train.eval_every = 10
END
of_kind() { sed -n "s/^{\"kind\":\"$1\",\"step\":\([0-9]*\),.*/\1/p" "$2/metrics.jsonl" | xargs; }

save_20() { # <run folder>: too few ranks are left in step 20, so the job ends with a checkpoint of exactly that step
  train "$1" 4 --set "plan.pipelines=[4]" --set plan.min_ranks=4 --inject kill:1@20:backward
  expect "$1: a job ends with a checkpoint" "75 step-20" "$? $(cd "$1" && echo step-*)"
}
ends() { # <run folder>: s and e for each start and end
  sed -n 's/^{"kind":"\([se]\)\(tart\|nd\)",.*/\1/p' "$1/metrics.jsonl" | tr -d '\n'
}

save_20 run
kills=()
for rank in 0 1 2 3; do kills+=(--inject "kill:$rank@26:idle"); done
train run 4 "${kills[@]}"
cp run/metrics.jsonl first.jsonl
train run 4 --inject kill:0@22:commit
expect "the killed job resumes and loses the rank that writes" 0 $?
expect "it resumed from the checkpoint" 1 "$(sed '1,/ends itself in step 26/d' run.out | grep -c '^resuming after 20 steps')"
expect "every step once, in order" "$(seq -s ' ' 0 29)" "$(of_kind step run)"
expect "every evaluation, too" "10 20 30" "$(of_kind evaluation run)"
expect "three starts, in states 0, 20 and 20" "0 20 20" "$(of_kind start run)"
expect "one end of each launch that ended" "sesse" "$(ends run)"
expect "what is repeated is marked" "20 20 $(seq -s ' ' 20 26)" "$(sed -n 's/^{"kind":"undone","was":"[a-z]*","step":\([0-9]*\),.*/\1/p' run/metrics.jsonl | xargs)"
as_recorded() { sed 's/^{"kind":"undone","was":/{"kind":/'; }
expect "and nothing else of the earlier launches is changed" "" "$(cmp <(as_recorded <first.jsonl) <(head -n "$(wc -l <first.jsonl)" run/metrics.jsonl | as_recorded) 2>&1)"
expect "the recovery is there, in the next step" "23" "$(sed -n 's/^{"kind":"recovery",.*"step":\([0-9]*\),.*/\1/p' run/metrics.jsonl | tail -1)"
expect "no half-linked file stays" "" "$(cd run && compgen -G '.after-*')"

# The last copy of a layer goes with the rank that writes: the job goes back in itself.
save_20 back
train back 3 --set "plan.pipelines=[3]" --set plan.failures=0 --inject kill:0@26:backward
expect "the job goes back to its checkpoint" 0 $?
expect "every step once, in order" "$(seq -s ' ' 0 29)" "$(of_kind step back)"
expect "every evaluation, too" "10 20 30" "$(of_kind evaluation back)"
expect "three starts, and one end of each launch" "0 20 20 sesse" "$(of_kind start back) $(ends back)"
exit $((failures > 0))
