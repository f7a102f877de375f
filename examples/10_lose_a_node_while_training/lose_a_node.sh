#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lose_a_node.sh <rheo> <folder for the runs>: a job on six ranks, three nodes, first undisturbed; then node 1 is lost, both of its ranks at once. The
# others continue in the same job, and end with the same bits. The launcher is $RHEO_MPIRUN, or the mpirun in the path.
set -u
rheo=$1 runs=$2
here=$(cd "$(dirname "$0")" && pwd)
flags=(--with-ft ulfm --mca pml ob1 --oversubscribe --bind-to none)
((EUID == 0)) && flags+=(--allow-run-as-root)
rm -rf "$runs" && mkdir -p "$runs" || exit 1
export OMP_NUM_THREADS=1

train() { # <run> [more arguments]: on the headers of this library
  local run=$1
  shift
  "${RHEO_MPIRUN:-mpirun}" "${flags[@]}" -n 6 "$rheo" train "$here/job.toml" --data "$here/../../include" --set "run.folder=$runs/$run" "$@" \
    >"$runs/$run.out" 2>&1 || { echo "$run failed:"; cat "$runs/$run.out"; exit 1; }
}
digest() { # <run>
  sed -n 's/^  "digest": "\(.*\)",$/\1/p' "$runs/$1/report.json"
}

"$rheo" plan "$here/job.toml" --ranks 6 | grep -E '^as it stands'
train undisturbed
echo "undisturbed: $(sed -n 's/^  ended  *//p' "$runs/undisturbed.out")"

train lost --inject kill:2@20:commit --inject kill:3@20:commit
sed -n 's/^\(lost .*\) continued after [0-9.]* ms, .*kept ([0-9]* %)/node 1: \1 continued/p' "$runs/lost.out"
echo "without node 1: $(sed -n 's/^  ended  *//p' "$runs/lost.out")"

[[ -n $(digest lost) && $(digest lost) == "$(digest undisturbed)" ]] && echo "the digests are equal: the loss changed no bit of the result"
