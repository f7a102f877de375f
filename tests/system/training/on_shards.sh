# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by tests of jobs on a grid of four shards: writes the job, runs it on one rank, and compares other runs with that digest.
# shellcheck source=tests/support/jobs.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../support/jobs.sh"

begin_on_shards() { # <work folder> <steps> <blocks>: its standard input are more lines of job.toml. Sets `digest`, that of one rank
  begin_in "$1" < <(
    cat <<END
model.dropout = 0.1
train.steps = $2
train.shards = 4
train.microbatch = { sequences = 2, tokens = 16 }
END
    cat
  )
  sed -i "s/^model.width = .*/model.width = 64/; s/^model.heads = .*/model.heads = 4/; s/^model.blocks = .*/model.blocks = $3/" job.toml
  train alone 1 --set plan.pipelines=[1] --set plan.failures=0
  expect "one rank ends" 0 $?
  digest=$(value digest alone)
  expect "there is a digest" 32 "$(printf %s "$digest" | wc -c)"
}
same() { # <run folder> <ranks> [arguments]: a job that ends with the digest of one rank
  local name=$1 ranks=$2
  shift 2
  train "$name" "$ranks" "$@"
  expect "$name ends" 0 $?
  expect "$name: the digest" "$digest" "$(value digest "$name")"
}
alike() { # <claim> <run folder> <another>
  expect "$1: a digest" 32 "$(value digest "$2" | tr -d '\n' | wc -c)"
  expect "$1: the same" "$(value digest "$2")" "$(value digest "$3")"
}
with_checkpoint() { # <run folder> <ranks> [arguments]: the first steps of a job, which end with a checkpoint that is surely written
  train "$@" --max-time 0.001s
  expect "$1 pauses" 75 $?
}
