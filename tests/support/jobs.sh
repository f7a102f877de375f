# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests that start jobs from outside: a folder with something to learn, the start, and what a run folder says.
# They set `rheo` to the program and complete job.toml; cmake/run_mpi.sh names the launcher in RHEO_MPIRUN.
# shellcheck source=tests/support/expect.sh
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
export OMP_NUM_THREADS=1
flags=(--with-ft ulfm --mca pml ob1 --oversubscribe --bind-to none)
((EUID == 0)) && flags+=(--allow-run-as-root)

begin_in() { # <work folder>: goes there; it is empty but for the text and job.toml, whose last lines are the standard input
  mkdir -p "$1" && cd "$1" && rm -rf ./* || exit 1
  local i
  for i in {1..400}; do echo "line $i of a text that is always the same"; done >text
  cat >job.toml <<'END'
schema = 1
data.paths = ["text"]
model.context = 32
model.width = 32
model.heads = 2
model.blocks = 3
train.microbatches = 6
plan.pipelines = [2, 2]
END
  cat >>job.toml
}
: "${rheo:?the program}"
train() { # <run folder> <ranks> [arguments]: what it says goes to <run folder>.out, or $out.out
  local folder=$1 ranks=$2
  shift 2
  "$RHEO_MPIRUN" "${flags[@]}" -n "$ranks" "$rheo" train job.toml --set "run.folder=$folder" "$@" >>"${out:-$folder}.out" 2>&1
}
kill_job() { # <run folder>: as if the power failed. The launcher (of this session: another test may run the same) first, or it would report on the ranks
  # shellcheck disable=SC2046
  kill -KILL "$(pgrep -s 0 -f -n "^[^ ]*(mpirun|prterun).* run.folder=$1( |\$)")" $(pid_of "$1" '*') 2>/dev/null
}
value() { # <key> <run folder>: a text of the report
  sed -n "s/^  \"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" "$2/report.json" 2>/dev/null
}
as_planned() { # <run folder>: each part of its ranks' memory, state and activations, has the size that the plan predicted
  expect "$1: measured memory is as planned" 0 "$(cat "$1"/ranks/*.json | tr -d ' \n' | grep -o '"planned_[a-z_]*_bytes":[0-9]*,"measured_[a-z_]*_bytes":[0-9]*' |
    awk -F '[:,]' '$2 != $4 || ($1 ~ /activations|master|moments|accumulators/ && $2 == 0) {++n} END {print n + (NR == 0)}')"
}
pid_of() { # <run folder> <rank, or * for all>
  # shellcheck disable=SC2086
  sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$1"/ranks/$2.json
}
reached() { # <run folder> <step>: waits until that many steps are recorded
  local steps
  for _ in {1..2400}; do
    steps=$(grep -c '"kind":"step"' "$1/metrics.jsonl" 2>/dev/null)
    ((${steps:-0} >= $2)) && return
    sleep 0.01
  done
}
saved() { # <run folder>: waits until it has a checkpoint, however slow the storage is
  for _ in {1..2400}; do
    compgen -G "$1/step-*" >/dev/null && return
    sleep 0.01
  done
}
