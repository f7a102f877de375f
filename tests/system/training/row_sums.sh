#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# row_sums.sh <rheo> <work folder>    sums in 32 bits with a scale per row: one digest for one rank, pipelines of two and four under several schedules, two
# pipelines and split backwards, also when a rank of the only pipeline is lost and when a checkpoint is resumed; losses near those of sums in 64 bits, the first the
# same; going from one kind to the other is refused, and taken as a fork.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 5
train.microbatch = { sequences = 2, tokens = 16 }
train.sums = "int32"
checkpoint.every_steps = 2
END
losses() { sed -n 's/.*"kind":"step".*"loss":\([0-9.]*\).*/\1/p' "$1/metrics.jsonl"; }
train one 1 --set plan.pipelines=[1] --set plan.failures=0
expect "one rank ends" 0 $?
same() { # <run folder> <exit code>
  expect "$1 ends" 0 "$2"
  expect "$1: the digest" "$(value digest one)" "$(value digest "$1")"
}
train unfused 3 --set plan.pipelines=[3] --set plan.failures=0 --set plan.schedule=gpipe --set run.fuse=false
same unfused $?
train two 2 --set plan.pipelines=[2] --set plan.failures=0 --set run.threads=2
same two $?
as_planned two
train four 4 --set plan.pipelines=[4] --set plan.failures=0 --set plan.schedule=zb-h1
same four $?
as_planned four
train copies 2 --set plan.pipelines=[2] --set plan.failures=0 --set plan.schedule=dualpipe
same copies $?
as_planned copies
train pipelines 4
same pipelines $?
as_planned pipelines
train kept 4 --set plan.pipelines=[4] --set plan.failures=1 --inject kill:1@3:backward
same kept $?
expect "one recovery" 1 "$(grep -c '"kind":"recovery"' kept/metrics.jsonl)"
train lost 4 --inject kill:2@3:backward
same lost $?
alone=(--set plan.pipelines=[1] --set plan.failures=0)
train whole 1 "${alone[@]}" --set train.steps=200
train resumed 1 "${alone[@]}" --set train.steps=200 --max-time 0.1s
expect "stopped in between" 75 $?
train resumed 2 --set plan.pipelines=[2] --set plan.failures=0 --set train.steps=200
expect "resumed ends" 0 $?
expect "from a checkpoint" 1 "$(grep -cE 'resuming after [0-9]+ steps' resumed.out)"
expect "with the same bits" "$(value digest whole)" "$(value digest resumed)"
train long 1 "${alone[@]}" --set train.sums='"int64"'
expect "sums in 64 bits end" 0 $?
expect "which is another state" 1 "$([[ $(value digest one) != "$(value digest long)" ]] && echo 1)"
expect "the first loss is the same" "$(losses long | head -1)" "$(losses one | head -1)"
# a gradient is off by half a unit of each of 6 or 12 contributions, 2^-18 of the largest of its row (tests/unit/executor/state/row_sums.cpp), and the loss moves by 0.13 in all
expect "all losses are near" 5 "$(paste <(losses one) <(losses long) | awk '{d = $1 - $2; if (d < 1e-5 && d > -1e-5) ++n} END {print n + 0}')"
train long 1 "${alone[@]}" --set train.steps=7
expect "the other kind of sums does not resume" 2 $?
expect "the error names the key" 1 "$(grep -c 'dtypes was fp32, exact int64 sums and is now fp32, exact int32 sums with a scale per row: .* with train.sums = "int64" the bits stay' long.out)"
train long 1 "${alone[@]}" --set train.steps=7 --resume fork
expect "but a fork is" 0 $?
train refused 1 "${alone[@]}" --set train.sums='"int16"'
expect "no other integers" 2 $?
exit $((failures > 0))
