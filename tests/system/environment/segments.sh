#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# segments.sh <rheo> <work folder> <same_job_number> <rounds>: jobs that begin on one host at the same time, to which Open MPI gives the same
# number, and with it the same names for their shared-memory segments, do not disturb each other; and no segment stays behind.
set -u
rheo=$1 same_job_number=$3 rounds=$4
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 40
train.microbatch = { sequences = 2, tokens = 32 }
run.trace = false
END
segments=${OMPI_MCA_btl_sm_backing_directory:?the folder below which segments are}
numbered() { # <number> <run folder> [arguments]
  local number=$1 folder=$2
  shift 2
  "$same_job_number" "$RHEO_MPIRUN" "$number" "${flags[@]}" -n 4 timeout -k 1 60 "$rheo" train job.toml --set "run.folder=$folder" "$@" >>"$folder.out" 2>&1
}
left() { find "$segments" -mindepth 1; }

train alone 4
digest=$(value digest alone)
[[ -n $digest ]] || { cat alone.out; exit 1; }
most=0
for ((round = 0; round < rounds; ++round)); do
  number=$((1000 + round))
  jobs=()
  for name in a b c; do
    numbered $number "$name-$round" --resume never &
    jobs+=($!)
    sleep "0.$((RANDOM % 3))"
  done
  for _ in {1..400}; do # until two jobs have a segment of the same name at once
    same=$(find "$segments" -name "sm_segment.*.$(printf %x $number)0001.0" 2>/dev/null | wc -l)
    ((same > most)) && most=$same
    ((same > 1)) && break
    [[ -z $(jobs -rp) ]] && break
    sleep 0.01
  done
  for i in 0 1 2; do
    name=$(printf '%s' "abc" | cut -c $((i + 1)))-$round
    wait "${jobs[i]}"
    expect "$name ends" "0 $digest" "$? $(value digest "$name")"
  done
done
# Else the test says nothing: this MPI numbers jobs in another way.
((most > 1)) || { echo "skipped: no two jobs had segments of one name"; ((failures == 0)) && exit 77; }
expect "no segment is left" "" "$(left)"

# All ranks and the launcher killed: what they leave behind is removed by the next job.
train killed 4 --set train.steps=1000000 &
job=$!
reached killed 5
kill_job killed
wait $job 2>/dev/null
train next 4
expect "the next job ends" 0 $?
expect "nothing is left of a killed job" "" "$(left)"

exit $((failures > 0))
