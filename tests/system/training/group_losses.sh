#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# group_losses.sh <rheo> <work folder>    ranks that share stages are killed, at every phase, in the exchanges of a stage too: the others go on with the
# digest of one rank. The rest of a group share its shards, a rank that waits takes them over, an empty position borrows a rank, ranks leave in order.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
model.dropout = 0.1
train.steps = 2
train.shards = 4
train.microbatch = { sequences = 2, tokens = 16 }
END
sed -i 's/^model.width = .*/model.width = 64/; s/^model.heads = .*/model.heads = 4/; s/^model.blocks = .*/model.blocks = 2/' job.toml
train alone 1 --set plan.pipelines=[1] --set plan.failures=0
expect "one rank ends" 0 $?
digest=$(value digest alone)
expect "there is a digest" 32 "$(printf %s "$digest" | wc -c)"
same() { # <run folder> <ranks> [arguments]
  local name=$1 ranks=$2
  shift 2
  train "$name" "$ranks" "$@"
  expect "$name ends" 0 $?
  expect "$name: the digest" "$digest" "$(value digest "$name")"
  expect "$name: recoveries" some "$(grep -q '"kind":"recovery"' "$name/metrics.jsonl" && echo some)"
}
twos=(--set plan.pipelines=[2,2] --set plan.tensor=2)
threes=(--set plan.pipelines=[3,4] --set plan.tensor=[3,1,3] --set plan.schedule=zb-h1)
for phase in gather sum sum_gradient forward backward input_gradient weight_gradient reduce decide commit; do
  [[ $phase == *_gradient && $phase != sum_gradient ]] || same "twos-$phase" 4 "${twos[@]}" --inject "kill:3@1:$phase"
  [[ $phase == backward ]] || same "threes-$phase" 7 "${threes[@]}" --inject "kill:5@1:$phase"
done
for phase in shrink copy; do # in the recovery of another loss, of other shards
  same "threes-$phase" 7 "${threes[@]}" --inject kill:5@1:sum_gradient --inject "kill:0@1:$phase"
done
same waiting 5 "${twos[@]}" --set plan.spares=1 --inject kill:1@1:sum_gradient
same borrowed 5 --set plan.pipelines=[3,2] --set plan.tensor=[2,1,2] --inject kill:2@1:forward
same both 4 "${twos[@]}" --inject kill:2@1:gather --inject kill:3@1:sum
same left 4 "${twos[@]}" --inject drain:1@0
same rows 4 "${twos[@]}" --set plan.recompute=true --inject kill:0@1:sum_gradient
exit $((failures > 0))
