#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All that a GPU is asked for, without a network or a compiler, in parts: for a machine that is lent for a limited time, in calls of limited length.
# The target gpu_pack puts this beside what it starts.
#   run_on_gpu.sh [FOLDER [PART...]]    where the results go; without it into $OUT, and without that into results/ beside this file
#     host          2 ranks on the host, one of them killed: the pack is whole
#     kernels       the tests of the CUDA kernels
#     executor      the tests of the executor on a device
#     memory, products, models    the benchmark by families, a line of JSON for each measurement
#     train         1 rank, 2+2, and 2+2 one of whom is killed, in fp32 and bf16: one digest for each
#     nccl          the same by NCCL: ranks that share the device from 2.30 on, else with a device each; skipped where neither is possible
#     rates         tokens per second of GPT-2 124M and of models like Llama with 0.5, 1.5 and 7 billion parameters
#     large-rates   the same of the last three with 524,288 tokens a step, so that what is done once a step counts as little as in a real training
#     small-losses  as train, with GPT-2 124M, which its paper calls small
#     tiny, small   all trainings of tests/system/device/training.sh, with a tiny model and with a small one
#     memcheck, racecheck    the tests of the kernels under compute-sanitizer, operation by operation
#     report        the benchmark's page with its pictures
# Without parts all of them, in this order. Three calls of ten minutes take, the most valuable first:
#   kernels executor memory products models train nccl / rates large-rates small-losses tiny / memcheck racecheck report small
# In the environment: RHEO_BUDGET_S, 540: seconds after which nothing is begun, and by which what runs is cut off. RHEO_KEYS: keys of a config for all
# trainings of train, rates and small-losses, as "model.width=16 run.attention=cudnn ..."; RHEO_RATE_STEPS: steps of each rate. Both are for trying this file out.
# FOLDER has at most 8 files: summary.json, which is written after every row; log.txt, the output; now.txt, that of the step in progress; device.txt;
# memory.jsonl, products.jsonl, models.jsonl, which grow as they are measured; report.html. Ends with a table, with 1 when something failed, with 77 where
# there is no GPU, which it says, and with 143 when a signal ended it. The device's clocks and settings stay as they are.
set -euo pipefail
SECONDS=0
here=$(cd "$(dirname "$0")" && pwd)
known=(host kernels executor memory products models train nccl rates large-rates small-losses tiny small memcheck racecheck report)
to=${1:-${OUT:-$here/results}}
parts=("${@:2}")
[[ ${#parts[@]} -gt 0 ]] || parts=("${known[@]}")
for part in "${parts[@]}"; do
  [[ " ${known[*]} " == *" $part "* ]] || { echo "run_on_gpu.sh: '$part' is no part; there are: ${known[*]}"; exit 2; }
done
budget=${RHEO_BUDGET_S:-540}
read -r -a more_keys <<<"${RHEO_KEYS:-}"
mkdir -p "$to" && to=$(cd "$to" && pwd)
rm -f "$to"/{log.txt,now.txt,summary.json}
work=$(mktemp -d) # run folders and links: they do not come back
[[ $EUID == 0 ]] && { ip link set lo up 2>/dev/null || true; } # ranks of one host may meet by it

# Rows.
failed=0
rows=()
lines=()
row() { # <what> <passed|failed|skipped|cut|ended> <seconds> [remark]: a line of the table, and the summary as far as it is known
  local i
  rows+=("$(printf '%-34s %-8s %6s  %s' "$1" "$2" "$3" "${4:-}")")
  lines+=("$(printf '{"what": "%s", "outcome": "%s", "seconds": %s, "remark": "%s"}' "$1" "$2" "$3" "$(printf '%s' "${4:-}" | tr -d '"\\' | tr '[:cntrl:]' ' ')")")
  [[ $2 != failed ]] || failed=1
  {
    printf '[\n'
    for ((i = 0; i < ${#lines[@]}; i++)); do printf '  %s%s\n' "${lines[i]}" "$( ((i + 1 == ${#lines[@]})) || echo ,)"; done
    printf ']\n'
  } >"$to/.summary"
  mv "$to/.summary" "$to/summary.json"
  printf '%4s s  %s\n' $SECONDS "${rows[-1]}"
}
conclude() { # <exit code>
  printf '\n%-34s %-8s %6s  %s\n' what outcome s remark
  printf '%s\n' "${rows[@]}"
  exit "$1"
}

# Processes: all that a step starts carries a mark in its environment, by which it is found and ended. No rank of one step stays on the GPU for the next.
mark=$$-$(date +%s%N)
ours() {
  local file
  while read -r file; do
    file=${file#/proc/}
    echo "${file%%/*}"
  done < <(grep -lszx "RHEO_GPU_RUN=$mark" /proc/[0-9]*/environ || true)
}
end_ours() {
  local pids
  for _ in {1..25}; do
    pids=$(ours)
    [[ -n $pids ]] || return 0
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null || true
    sleep 0.2
  done
}

now= # the step that runs
began=0
code=0
said=$work/said # by the last one
: >"$said"
keep_said() { # now.txt goes to log.txt; of what is very long, the beginning and the end
  [[ -e $to/now.txt ]] || return 0
  mv "$to/now.txt" "$said"
  {
    printf '\n== %s\n' "$now"
    if (($(wc -c <"$said") > 1000000)); then
      head -c 200000 "$said"
      printf '\n...\n'
      tail -c 800000 "$said"
    else
      cat "$said"
    fi
  } >>"$to/log.txt"
}
signalled() { # <name>
  trap '' TERM INT HUP
  # shellcheck disable=SC2046
  kill $(jobs -p) 2>/dev/null || true # the clock
  disown -a
  end_ours
  keep_said
  [[ -z $now ]] || row "$now" cut $((SECONDS - began)) "ended by $1"
  conclude 143
}
trap 'signalled TERM' TERM
trap 'signalled INT' INT
trap 'signalled HUP' HUP
trap 'end_ours; rm -rf "$work"' EXIT

limit=0
run() { # <what> <seconds at most> <command...>: false when there is no time for it, which is a row; else its exit code is in code, 124: cut off after limit
  local most=$2 leader clock
  limit=$((budget - SECONDS))
  if ((limit < 5)); then
    row "$1" skipped 0 "no time left in this call"
    return 1
  fi
  ((limit <= most)) || limit=$most
  now=$1 began=$SECONDS code=0
  shift 2
  printf '%s\n' "$*" >"$to/now.txt"
  RHEO_GPU_RUN=$mark setsid "$@" >>"$to/now.txt" 2>&1 </dev/null &
  leader=$!
  env -i sleep "$limit" & # a clock without the mark
  clock=$!
  wait -n "$leader" "$clock" || code=$?
  if kill "$clock" 2>/dev/null; then
    wait "$clock" 2>/dev/null || true
  else
    code=124
    kill -TERM -- "-$leader" 2>/dev/null || true # programs say where they are
    sleep 1
  fi
  end_ours
  disown "$leader" 2>/dev/null || true # one that even KILL does not end is not waited for
  keep_said
}
last_words() { grep -v '^[[:space:]]*$' "$said" | tail -n 1 | head -c 200; }
what_failed() { grep -m 1 -E 'FAILED|^rheo: |rror|not found' "$said" | head -c 300 || last_words; }
judged() { # <seconds at most> [remark]: a row for what ran
  local took=$((SECONDS - began))
  case $code in
    0) row "$now" passed $took "${2:-}" ;;
    77) row "$now" skipped $took "$(last_words)" ;;
    124) if grep -q 'FAILED:' "$said"; then
           row "$now" failed $took "$(grep -m 1 'FAILED:' "$said" | head -c 300)"
         elif ((limit < $1)); then
           row "$now" cut $took "cut off, no time left in this call; nothing failed so far"
         else
           row "$now" failed $took "not done within $1 s: $(last_words)"
         fi ;;
    *) row "$now" failed $took "$(what_failed)" ;;
  esac
  now=
}
tried() { # <what> <seconds at most> <command...>
  run "$@" || return 0
  judged "$2"
}

# Libraries: ours; those that our MPI brings, before others of their names; of those that a system has, only what this one lacks or has too old; the
# driver's where the loader does not know it; cuBLASLt, NCCL, and cuDNN with CUDA's runtime, where CUDA puts them, else where Python does.
export LD_LIBRARY_PATH="$here/lib:$here/mpi/lib:$here/mpi/lib/openmpi:$work${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
for library in $({ ldd "$here"/bin/* "$here"/lib/*.so* "$here"/mpi/bin/* 2>&1 || true; } | sed -n -e 's/^[[:space:]]*\(lib[^ ]*\) => not found.*/\1/p' -e 's/.*\/\(lib[^ :/]*\): version .* not found.*/\1/p' | sort -u); do
  [[ ! -e $here/lib/system/$library ]] || ln -sf "$here/lib/system/$library" "$work/$library"
done
export PATH="$PATH:/usr/local/nvidia/bin:/usr/sbin:/sbin"
if ! ldconfig -p 2>/dev/null | grep 'libcuda[.]so[.]1' >/dev/null && [[ -d /usr/local/nvidia/lib64 ]]; then
  export LD_LIBRARY_PATH="$LD_LIBRARY_PATH:/usr/local/nvidia/lib64"
fi
# shellcheck disable=SC2206
folders=(${LD_LIBRARY_PATH//:/ } "${CUDA_PATH:-/usr/local/cuda}"/lib{64,} /usr/local/cuda*/{lib64,lib,targets/x86_64-linux/lib} /usr/lib/x86_64-linux-gnu
  $(python3 -c 'import glob, nvidia; print(*(f for p in nvidia.__path__ for f in glob.glob(p + "/*/lib")))' 2>/dev/null || true)
  /opt/*/.venv/lib/python3*/site-packages/nvidia/{cu13,cublas,cudnn,cuda_runtime,nccl}/lib)
holding() { # <library>: the first folder that holds it
  local folder
  for folder in "${folders[@]}"; do
    [[ ! -e $folder/$1 ]] || { echo "$folder"; return; }
  done
}
products=$(holding libcublasLt.so.13)
for folder in "$products" "$(holding libcudnn.so.9)" "$(holding libcudart.so.13)" "$(holding libnccl.so.2)"; do
  export LD_LIBRARY_PATH="$LD_LIBRARY_PATH${folder:+:$folder}"
done

# The launcher: the pack's, else this machine's.
if [[ -x $here/mpi/bin/mpirun ]]; then
  export OPAL_PREFIX=$here/mpi PRTE_PREFIX=$here/mpi PMIX_PREFIX=$here/mpi RHEO_MPIRUN=$here/mpi/bin/mpirun
else
  RHEO_MPIRUN=$(command -v mpirun || true)
  export RHEO_MPIRUN
fi
export TMPDIR=$work HOME="${HOME:-$work}" # the launcher wants both

# The device, as it is found.
tried "rheo info" 20 "$here/bin/rheo" info
cat "$said"
found=$(cat "$said")
gpus=$(grep '^GPUs' <<<"$found" || true)
nccl=$(grep '^NCCL' <<<"$found" || true)
{
  printf 'cuBLASLt  %s\n' "$([[ -n $products ]] && readlink -f "$products/libcublasLt.so.13" || echo none)"
  cat "$said"
  timeout 6 nvidia-smi -q 2>&1 || true
} >"$to/device.txt"
sed -n -e 1p -e '/^=.*NVSMI/,/^ *Product Architecture/p' -e '/^ *FB Memory Usage/,/^ *Free/p' -e '/^ *Clocks$/,/^ *Memory/p' "$to/device.txt" | head -n 30 || true

# Parts.
trains() { # <what> <seconds at most> <kind> <script> [arguments]: trainings in a folder of their own: a row for each of them; if one fails, the last words of its jobs are kept
  local what=$1 most=$2 kind=$3 script=$4 digest rate folder
  shift 4
  [[ -n $RHEO_MPIRUN ]] || { row "$what" failed 0 "there is no mpirun, neither in the pack nor in the path"; return 0; }
  run "$what" "$most" bash "$here/tests/system/$script" "$here/bin/rheo" "$work/$kind" "$@" || return 0
  judged "$most"
  ((code == 0)) || tail -n 8 "$work/$kind"/*.out >>"$to/log.txt" 2>&1 || true
  for folder in "$work/$kind"/*/; do
    [[ -e $folder/report.json ]] || continue
    digest=$(sed -n 's/^  "digest": "\(.*\)",$/\1/p' "$folder/report.json")
    rate=$(sed -n 's/.*"kind":"step".*"tokens_per_s":\([0-9]*\).*/\1/p' "$folder/metrics.jsonl" | tail -n 1)
    row "  $kind/$(basename "$folder")" ended 0 "digest ${digest:-none}, ${rate:-no} tokens/s in its last step"
  done
}
trains_by_nccl() { # as train, by NCCL, which comes up beside the first steps: so there are more of them, and a rank is killed later
  local devices
  devices=$(sed -n 's/^GPUs  *//p' <<<"$found" | tr ',' '\n' | grep -c . || true)
  if [[ $nccl == *none:* ]]; then
    row "trainings by NCCL" skipped 0 "${nccl#*none: }"
  elif [[ $nccl != *"may share"* && $devices -lt 4 ]]; then
    row "trainings by NCCL" skipped 0 "NCCL wants a device for each of 4 ranks"
  else
    NCCL_MULTI_RANK_GPU_ENABLE=1 RHEO_KILLED_IN=5 trains "trainings by NCCL" 150 nccl gpu_pack/digests.sh "fp32 bf16" "${small[@]}" "${more_keys[@]}" \
      train.steps=9 'run.transport="nccl"'
  fi
}
measured() { # <family> <seconds at most>: its lines lie in FOLDER as they come
  local file=$to/$1.jsonl remark
  [[ -x $here/bin/bench_kernels_gpu ]] || { row "benchmark, $1" skipped 0 "the pack was made without RHEO_BENCH"; return 0; }
  # shellcheck disable=SC2016
  run "benchmark, $1" "$2" bash -c 'exec "$1" --only "$2" --json >"$3"' - "$here/bin/bench_kernels_gpu" "$1" "$file" || return 0
  remark="$(sed -n 's/.*"copy_bytes_per_s": \([^,]*\), "bf16_flop_per_s": \([^,]*\), .*/a copy moves \1 B\/s, a product makes \2 flop\/s in bf16;/p' "$file") $(grep -c '"kernel"' "$file" || true) measurements"
  if [[ $code == 124 ]]; then
    row "$now" cut $((SECONDS - began)) "$remark"
    now=
  else
    judged "$2" "$remark"
  fi
}
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1 || true)
sanitized() { # <tool> <seconds in all> <option or ""> <tests...>: none takes more than half of what is left, but for the last
  local tool=$1 end=$((SECONDS + $2)) option=$3 test took most errors
  shift 3
  [[ -n $sanitizer ]] || { row "$tool" skipped 0 "there is no compute-sanitizer, neither in the path nor in /usr/local/cuda*/bin"; return 0; }
  for test in "$@"; do
    most=$((end - SECONDS))
    ((most >= 5)) || { row "$tool, $test" skipped 0 "no time left for $tool"; continue; }
    ((most < 20)) || [[ $test == "${*: -1}" ]] || most=$((most / 2))
    # shellcheck disable=SC2086
    run "$tool, $test" "$most" "$sanitizer" --tool "$tool" --error-exitcode 9 --launch-timeout 0 $option "$here/bin/test_kernels_gpu" -# "[#$test]" --durations yes || continue
    took=$((SECONDS - began))
    errors=$(grep -E '^=========.*(Invalid|Misaligned|Race reported|hazard|Error)' "$said" | grep -vE 'ERROR SUMMARY|SUMMARY: 0|Target application|terminate' | head -n 1 | head -c 200 || true)
    if grep -q 'Device not supported' "$said"; then
      row "$tool" skipped $took "Device not supported"
      now=
      return 0
    elif [[ $code == 124 && -z $errors ]]; then
      row "$now" cut $took "cut off, no error so far"
    elif [[ $code == 0 ]]; then
      row "$now" passed $took "$(grep -E 'SUMMARY' "$said" | tail -n 1 | head -c 100)"
    else
      row "$now" failed $took "${errors:-$(what_failed)}"
    fi
    now=
  done
}
tokens() { # random tokens below a vocabulary, small ones often, in llm.c's form; the same everywhere
  local vocabulary=32000 key
  for key in "${more_keys[@]}"; do [[ $key != model.vocabulary=* ]] || vocabulary=${key#*=}; done
  [[ -e $work/tokens.bin ]] || LC_ALL=C awk -v vocabulary="$vocabulary" -v count=2000000 '
    function word(n) { printf "%c%c%c%c", n % 256, int(n / 256) % 256, int(n / 65536) % 256, int(n / 16777216) }
    BEGIN {
      word(20240520); word(1); word(count)
      for (i = 3; i < 256; ++i) word(0)
      for (seed = 1; count > 0; --count) {
        seed = (seed * 16807) % 2147483647
        token = int(vocabulary * (seed / 2147483647) ^ 3)
        printf "%c%c", token % 256, int(token / 256)
      }
    }' >"$work/tokens.bin"
  echo "data.paths=[\"$work/tokens.bin\"]"
}
gpt2=(model.vocabulary=50304 model.context=1024 model.width=768 model.heads=12 model.blocks=12 model.tied=true)
llama() { # <context> <width> <heads> <heads of keys and values> <blocks> <width of the MLP>
  echo model.family=llama model.vocabulary=32000 "model.context=$1" "model.width=$2" "model.heads=$3" "model.kv_heads=$4" "model.blocks=$5" "model.mlp_width=$6" model.tied=false
}
free_memory() { timeout 5 nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits 2>/dev/null | head -n 1 || true; }
rate() { # <model> <steps> <seconds at most> <tokens per second to reach, or ""> <sequences> <tokens> <microbatches> <keys...>: ended after so many steps
  local name=$1 steps=${RHEO_RATE_STEPS:-$2} most=$3 target=$4 before free remark all=() folder=$work/rates/$1
  all=("$(tokens)" train.dtype=bf16 "train.microbatch.sequences=$5" "train.microbatch.tokens=$6" "train.microbatches=$7" "${@:8}" "${more_keys[@]}")
  [[ -n $RHEO_MPIRUN ]] || { row "rate of $name" failed 0 "there is no mpirun, neither in the pack nor in the path"; return 0; }
  end_ours
  free=$(free_memory)
  for _ in {1..10}; do # what the one before had is given back in time
    ((budget - SECONDS > 5)) || break
    sleep 0.5
    before=$free
    free=$(free_memory)
    [[ $free != "$before" ]] || break
  done
  run "rate of $name" "$most" bash "$here/tests/system/gpu_pack/rate.sh" "$here/bin/rheo" "$work/rates" "$name" "$steps" "${all[@]}" || return 0
  remark=$(sed -n 's/.*"kind":"step".*"tokens":\([0-9]*\),"duration_s":\([0-9.e+-]*\),.*/\1 \2/p' "$folder/metrics.jsonl" 2>/dev/null | awk -v target="$target" '
    { tokens[NR] = $1; took[NR] = $2 }
    END {
      if (NR == 0) exit
      for (i = NR > 1 ? int(NR / 2) + 1 : 1; i <= NR; ++i) { t += tokens[i]; s += took[i]; ++n }
      printf "%.0f tokens/s in the last %d of %d steps", t / s, n, NR
      if (target != "") printf ", target %d, %.1f %% of it", target, 100 * t / s / target
    }' || true)
  remark="${remark:+$remark; }${free:+$free MiB were free before; }$(sed -n 's/.*"loss":\([0-9.]*\).*/loss \1/p' "$folder/metrics.jsonl" 2>/dev/null | tail -n 1)"
  if [[ $code == 124 && $remark == *tokens/s* ]]; then
    row "$now" cut $((SECONDS - began)) "$remark"
    now=
  else
    judged "$most" "$remark"
  fi
}
for part in "${parts[@]}"; do
  [[ $part != host ]] || trains "2 ranks on the host" 60 host gpu_pack/host.sh
done
if [[ $gpus == *none:* ]]; then
  test_code=0
  sentence=$(timeout 20 "$here/bin/test_kernels_gpu" --list-tags 2>&1) || test_code=$?
  if [[ $test_code == 77 ]]; then
    row "all that needs a device" skipped 0 "$(tail -n 1 <<<"$sentence")"
    conclude $((failed ? 1 : 77))
  fi
  row "the device" failed 0 "rheo info finds none where the tests do: $gpus"
fi
[[ -n $products ]] || row "libcublasLt.so.13" failed 0 "is in none of the folders where CUDA and Python put it: name its folder in LD_LIBRARY_PATH"
no_products=(attention row_sums layer_norm rms_norm norm_backward) # tests without cuBLASLt, whose kernels would take all of the time of a racecheck
lines_at_once=()
command -v stdbuf >/dev/null && lines_at_once=(stdbuf -oL) # a test that is cut off has printed what was done before
small=(model.width=256 model.heads=4 model.blocks=4 model.context=256 train.microbatch.tokens=256 train.microbatch.sequences=4)
for part in "${parts[@]}"; do
  case $part in
    kernels) tried "tests of the kernels" 120 "${lines_at_once[@]}" "$here/bin/test_kernels_gpu" --durations yes ;;
    executor) tried "tests of the executor on a device" 90 "${lines_at_once[@]}" "$here/bin/test_device_gpu" --durations yes ;;
    memory) measured memory 50 ;;
    products) measured products 70 ;;
    models) measured models 120 ;;
    train) trains "trainings, short" 120 train gpu_pack/digests.sh "fp32 bf16" "${small[@]}" "${more_keys[@]}" ;;
    nccl) trains_by_nccl ;;
    rates)
      # shellcheck disable=SC2046
      {
        rate GPT-2-124M 40 50 "" 16 1024 1 "${gpt2[@]}"
        rate Llama-0.5B 12 60 149000 8 2048 4 $(llama 2048 1280 20 4 24 3456)
        rate Llama-1.5B 10 70 58900 8 2048 4 $(llama 2048 2048 16 8 28 5632)
        rate Llama-7B 6 130 13800 1 4096 4 $(llama 4096 4096 32 32 32 11008) 'train.sums="int32"' plan.memory_mib=137000 plan.recompute=selective
        rate Llama-7B-bf16-state 6 130 13800 2 4096 2 $(llama 4096 4096 32 32 32 11008) 'train.sums="int32"' 'train.state="bf16"' plan.memory_mib=137000
      } ;;
    large-rates)
      # shellcheck disable=SC2046
      {
        rate Llama-0.5B-large 4 70 149000 8 2048 32 $(llama 2048 1280 20 4 24 3456)
        rate Llama-1.5B-large 3 100 58900 8 2048 32 $(llama 2048 2048 16 8 28 5632)
        rate Llama-7B-large 2 200 13800 1 4096 128 $(llama 4096 4096 32 32 32 11008) 'train.sums="int32"' plan.memory_mib=137000 plan.recompute=selective
      } ;;
    small-losses)
      trains "GPT-2 124M, ranks lost" 110 small-losses gpu_pack/digests.sh bf16 "$(tokens)" train.microbatch.sequences=4 train.microbatch.tokens=1024 train.microbatches=8 \
        "${gpt2[@]}" "${more_keys[@]}" ;;
    tiny) trains "trainings, tiny" 200 tiny device/training.sh ;;
    small) trains "trainings, small" 200 small device/training.sh "${small[@]}" ;;
    memcheck)
      sanitized memcheck 100 "--report-api-errors no" "${no_products[@]}" cross_entropy residual rope swiglu gelu embedding adamw digest exact exact_rows pack store initialise linear ;;
    racecheck) sanitized racecheck 60 "" "${no_products[@]}" ;;
    report)
      if [[ -x $here/bin/bench_kernels_gpu ]]; then
        tried "benchmark, report" 240 "$here/bin/bench_kernels_gpu" --report "$work/report" --repeats 10
        cp "$work/report/report.html" "$to/" 2>/dev/null || true
        cat "$work/report/results.jsonl" >>"$to/log.txt" 2>/dev/null || true
      else
        row "benchmark, report" skipped 0 "the pack was made without RHEO_BENCH"
      fi ;;
  esac
done
conclude $failed
