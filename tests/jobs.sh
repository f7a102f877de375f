# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests that start jobs from outside: a folder with something to learn, the start, and what a run folder says.
# They set `rheo` to the program and write job.toml; cmake/run_mpi.sh names the launcher in RHEO_MPIRUN.
# shellcheck source=tests/expect.sh
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
export OMP_NUM_THREADS=1
flags=(--with-ft ulfm --mca pml ob1 --oversubscribe --bind-to none)
((EUID == 0)) && flags+=(--allow-run-as-root)

begin_in() { # <work folder>: goes there; it is empty but for the text
  mkdir -p "$1" && cd "$1" && rm -rf ./* || exit 1
  local i
  for i in {1..400}; do echo "line $i of a text that is always the same"; done >text
}
train() { # <run folder> <ranks> [arguments]
  local folder=$1 ranks=$2
  shift 2
  "$RHEO_MPIRUN" "${flags[@]}" -n "$ranks" "$rheo" train job.toml --set "run.folder=$folder" "$@" >>"$folder.out" 2>&1
}
value() { # <key> <run folder>: a text of the report
  sed -n "s/^  \"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" "$2/report.json" 2>/dev/null
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
