#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All that a GPU is asked for, by one command, without a network or a compiler: trainings on the host that show that the pack is whole; the tests of the
# CUDA kernels and of the executor on a device, the former under compute-sanitizer too where that is there; trainings of 1, 2 and 2+2 ranks that
# share the GPU, one of them killed, in fp32 and bf16, whose digests are compared; the benchmark with its page. The target gpu_pack puts
# this beside what it starts.
#   run_on_gpu.sh [FOLDER]     where the results go; without it into $OUT, and without that into results/ beside this file
# What was said is FOLDER/log.txt. Ends with a table (as JSON: FOLDER/summary.json), with 1 when something failed and with 77 where there is no GPU, which it says.
set -u
here=$(cd "$(dirname "$0")" && pwd)
to=${1:-${OUT:-$here/results}}
mkdir -p "$to" && to=$(cd "$to" && pwd) && rm -f "$to/log.txt" || exit 1
work=$(mktemp -d) || exit 1 # run folders and links: they do not come back
trap 'rm -rf "$work"' EXIT
failed=0
rows=()
lines=()

row() { # <what> <outcome> <seconds> [remark]: a line of the table
  rows+=("$(printf '%-34s %-8s %8s  %s' "$1" "$2" "$3" "${4:-}")")
  lines+=("$(printf '{"what": "%s", "outcome": "%s", "seconds": %s, "remark": "%s"}' "$1" "$2" "$3" "$(printf '%s' "${4:-}" | tr -d '"\\' | tr '\n\t' '  ')")")
  [[ $2 == failed ]] && failed=1
}
conclude() { # <exit code>
  printf '\n%-34s %-8s %8s  %s\n' what outcome seconds remark
  printf '%s\n' "${rows[@]}"
  { printf '[\n'; for ((i = 0; i < ${#lines[@]}; i++)); do printf '  %s%s\n' "${lines[i]}" "$([[ $i == $((${#lines[@]} - 1)) ]] || echo ,)"; done; printf ']\n'; } >"$to/summary.json"
  exit "$1"
}
said=$work/said # by the last one
tried() { # <what> <seconds at most> <command...>: a row for it, what it said goes to log.txt; returns its exit code
  local what=$1 most=$2 begin=$SECONDS rc
  shift 2
  timeout -k 10 "$most" "$@" >"$said" 2>&1
  rc=$?
  { printf '\n== %s: %s\n' "$what" "$*" && cat "$said"; } >>"$to/log.txt"
  case $rc in
    0) row "$what" passed $((SECONDS - begin)) ;;
    77) row "$what" skipped $((SECONDS - begin)) "$(tail -n 1 "$said")" ;;
    124) row "$what" failed $((SECONDS - begin)) "not done within $most s" ;;
    *) row "$what" failed $((SECONDS - begin)) "$(grep -m 1 -E 'FAILED|rror|not found' "$said" || tail -n 1 "$said")" ;;
  esac
  return $rc
}

# Libraries: ours; of those that a system has, only what this one lacks or has too old; cuBLASLt where CUDA puts it, else where Python does.
export LD_LIBRARY_PATH="$here/lib:$here/mpi/lib:$work${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
for library in $(ldd "$here"/bin/* "$here"/lib/*.so* "$here"/mpi/bin/* 2>&1 | sed -n -e 's/^[[:space:]]*\(lib[^ ]*\) => not found.*/\1/p' -e 's/.*\/\(lib[^ :/]*\): version .* not found.*/\1/p' | sort -u); do
  [[ -e $here/lib/system/$library ]] && ln -sf "$here/lib/system/$library" "$work/$library"
done
products=
for folder in ${LD_LIBRARY_PATH//:/ } "${CUDA_PATH:-/usr/local/cuda}/lib64" /usr/local/cuda*/lib64 /usr/lib/x86_64-linux-gnu \
  "$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null)"/{cu13,cublas}/lib; do
  [[ -e $folder/libcublasLt.so.13 ]] && products=$folder && break
done
export LD_LIBRARY_PATH="$LD_LIBRARY_PATH${products:+:$products}"

# The launcher: the pack's, else this machine's.
if [[ -x $here/mpi/bin/mpirun ]]; then
  export OPAL_PREFIX=$here/mpi PRTE_PREFIX=$here/mpi PMIX_PREFIX=$here/mpi RHEO_MPIRUN=$here/mpi/bin/mpirun
else
  RHEO_MPIRUN=$(command -v mpirun) && export RHEO_MPIRUN
fi
export TMPDIR=$work HOME="${HOME:-$work}" # the launcher wants both

tried "rheo info" 60 "$here/bin/rheo" info
cat "$said"
train() { # <what> <kind> <script> [arguments]: a script that trains in a folder of its own; if it fails, the last words of its jobs are kept
  local what=$1 kind=$2 script=$3
  shift 3
  tried "$what" 900 bash "$here/tests/$script" "$here/bin/rheo" "$work/$kind" "$@" || tail -n 8 "$work/$kind"/*.out >>"$to/log.txt"
}
trainings() { # <what> <kind> [keys]: per dtype one digest, whoever computes it and whoever is lost
  local what=$1 kind=$2 digest rate folder
  shift 2
  train "$what" "$kind" device/training.sh "$@"
  for folder in "$work/$kind"/*/; do
    [[ -e $folder/report.json ]] || continue
    digest=$(sed -n 's/^  "digest": "\(.*\)",$/\1/p' "$folder/report.json")
    rate=$(sed -n 's/.*"kind":"step".*"tokens_per_s":\([0-9]*\).*/\1/p' "$folder/metrics.jsonl" | tail -n 1)
    row "  $kind/$(basename "$folder")" ended 0 "digest $digest, ${rate:-no} tokens/s in its last step"
  done
}
if [[ -z ${RHEO_MPIRUN:-} ]]; then
  row "trainings" failed 0 "there is no mpirun, neither in the pack nor in the path"
else
  train "2 ranks on the host" host gpu_pack/host.sh
fi

tried "tests of the kernels" 600 "$here/bin/test_kernels_gpu" --durations yes
if [[ $? == 77 ]]; then
  row "all that needs a device" skipped 0 "$(tail -n 1 "$said")"
  conclude $((failed ? 1 : 77))
fi
nvidia-smi -q >"$to/device.txt" 2>&1
[[ -n $products ]] || row "libcublasLt.so.13" failed 0 "is in none of the folders where CUDA and Python put it: name its folder in LD_LIBRARY_PATH"
tried "tests of the executor on a device" 600 "$here/bin/test_device_gpu" --durations yes
if [[ -n ${RHEO_MPIRUN:-} ]]; then
  trainings "trainings, tiny" tiny
  trainings "trainings, small" small model.width=256 model.heads=4 model.blocks=4 model.context=256 train.microbatch.tokens=256 train.microbatch.sequences=4
fi
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    tried "$tool" 240 compute-sanitizer --tool "$tool" --error-exitcode 9 "$here/bin/test_kernels_gpu"
  done
fi
if [[ -x $here/bin/bench_kernels_gpu ]]; then # there where RHEO_BENCH was on
  tried "benchmark" 600 "$here/bin/bench_kernels_gpu" --report "$to"
  tail -n 20 "$said"
fi
conclude $failed
