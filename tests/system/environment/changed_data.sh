#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# changed_data.sh <rheo> <work folder>: a data file that is overwritten in place while a job has it mapped ends the job before the next
# checkpoint, with an error that names the file; one that is replaced by another file changes nothing.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 1000000
train.microbatch = { sequences = 2, tokens = 32 }
checkpoint.every_steps = 40
END
sed -i 's/^data.paths.*/data.paths = ["text", "large"]/' job.toml
large() { awk 'BEGIN {for (i = 0; i < 60000; ++i) print "line " i " of a file that is mapped"}'; }
judge() { # <run folder> <exit code> <what the sentence says>
  expect "$1: the exit code" 4 "$2"
  expect "$1: what and where" 1 "$(grep -cE "^rheo: data: 'large' was changed in place while the run reads it: $3" "$1.out")"
  "$rheo" train job.toml --set "run.folder=$1" --ended >ended.out
  expect "$1: the folder says so" 4 $?
}

large >large
train overwritten 4 &
job=$!
reached overwritten 45
for _ in {1..500}; do
  newest=$(cd overwritten && compgen -G 'step-*' | sort -V | tail -1)
  [[ -n $newest ]] && break
  sleep 0.01
done
printf 'X' | dd of=large bs=1 seek=1000000 conv=notrunc status=none
before=$(grep -c '"kind":"step"' overwritten/metrics.jsonl)
wait $job
judge overwritten $? 'it was last modified at .* UTC, now at .* UTC; data must stay as they are'
expect "a checkpoint was there before" yes "$([[ -n $newest ]] && echo yes)"
after=$(cd overwritten && compgen -G 'step-*' | sort -V | tail -1)
expect "none was taken of what the changed data made" yes "$( ((${after#step-} <= before)) && echo yes || echo "$after after $before")"

# Replaced: the run keeps the file that it has opened, to the end of its epoch and beyond.
large >large
train replaced 4 &
job=$!
reached replaced 5
large | tr a-z A-Z >other && mv other large
reached replaced 100
kill -USR1 "$(pid_of replaced 1)"
wait $job
expect "a file that was replaced ends nothing" 75 $?

exit $((failures > 0))
