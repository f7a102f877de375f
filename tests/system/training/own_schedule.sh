#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# own_schedule.sh <rheo> <work folder>    a schedule in a file trains with the bits of 1f1b, also when a rank is lost: then what is left is
# done in another order, or by 1f1b where the file says nothing of so many ranks. Ranks that read different files do not begin. An error in a file is one sentence.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2"
cat >job.toml <<'EOF'
schema = 1
[model]
width = 32
heads = 2
blocks = 4
[data]
paths = ["text"]
[train]
steps = 3
microbatches = 6
microbatch = { sequences = 1, tokens = 16 }
[plan]
pipelines = [2]
failures = 0
EOF
"$rheo" schedule zb-v --ranks 2 --microbatches 6 --format pytorch >written.csv
head -c 20 written.csv >torn.csv
train plain 2
expect "1f1b ends" 0 $?
train own 2 --set plan.schedule=written.csv
expect "a schedule from a file ends" 0 $?
expect "with the same bits" "$(value digest plain)" "$(value digest own)"
# As if each host had a file of its own under the one name.
for rank in 0 1; do
  mkdir "$rank" && ln -s ../text "$rank/text"
done
cp written.csv 0/mine.csv
"$rheo" schedule zb-h1 --ranks 2 --microbatches 6 --format pytorch >1/mine.csv
# shellcheck disable=SC2016
"$RHEO_MPIRUN" "${flags[@]}" -n 2 bash -c 'cd "$OMPI_COMM_WORLD_RANK" && exec "$0" train ../job.toml --set run.folder=../two-files --set plan.schedule=mine.csv' \
  "$rheo" >two-files.out 2>&1
expect "two files of one name are refused" 5 $?
expect "before anything runs" 1 "$(grep -cE 'the plan \(schedule files included\) is [0-9a-f]{32} on rank 0 and [0-9a-f]{32} on rank 1: all ranks must have the same' two-files.out)"
"$rheo" schedule interleaved --ranks 2 --microbatches 3 --format pytorch >half.csv
for where in 1@1:backward 3@2:forward; do
  train "lost-$where" 4 --set plan.schedule=half.csv --set 'plan.pipelines=[2, 2]' --set 'plan.shares=[3, 3]' --set plan.failures=1 --inject "kill:$where"
  expect "with rank $where lost the job ends" 0 $?
  expect "with the same bits, too" "$(value digest plain)" "$(value digest "lost-$where")"
done
# A family that pipelines after a loss cannot have: the job says what they run, and why.
train odd 4 --set plan.schedule=dualpipe --set train.microbatches=8 --set 'plan.pipelines=[2, 2]' --set 'plan.shares=[4, 4]' --set plan.failures=1 --inject kill:1@1:forward
expect "dualpipe with a rank lost ends" 0 $?
reason='runs 1f1b: dualpipe cannot be made for 1 rank: this schedule runs in two directions and needs an even number of ranks'
expect "the pipeline of one rank says that it runs 1f1b, and why" 1 "$(grep -c "\"kind\":\"note\".*of 1 rank $reason" odd/metrics.jsonl)"
"$rheo" plan job.toml --set plan.schedule=torn.csv 2>refusal
expect "a torn file is refused" 2 $?
expect "by its name" 1 "$(grep -c 'torn.csv: ' refusal)"
"$rheo" plan job.toml --set plan.schedule=none.csv 2>refusal
expect "one that is not there as well" 2 $?
expect "and reports it" 1 "$(grep -c "'none.csv': no such file" refusal)"
exit $((failures > 0))
