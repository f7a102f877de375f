#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All that a GPU is asked for, by one command, without a network or a compiler: the tests of the CUDA kernels, the same under compute-sanitizer where that
# is there, and the benchmark with its page. The target gpu_pack puts this beside the two programs.
#   run_on_gpu.sh [FOLDER]     where the results go; without it, into results/ beside this file
# Ends with 77 where there is no GPU, with 1 when something failed, and says what.
set -u
here=$(cd "$(dirname "$0")" && pwd)
to=${1:-$here/results}
mkdir -p "$to"
export LD_LIBRARY_PATH="$here:${CUDA_PATH:-/usr/local/cuda}/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

"$here/test_kernels_gpu" --durations yes > "$to/tests.txt" 2>&1
rc=$?
tail -n 3 "$to/tests.txt"
[ $rc = 77 ] && exit 77
nvidia-smi -q > "$to/device.txt" 2>&1
failed=0
[ $rc = 0 ] || { echo "tests failed: $to/tests.txt"; failed=1; }

if command -v compute-sanitizer > /dev/null; then
  for tool in memcheck racecheck; do
    timeout 240 compute-sanitizer --tool "$tool" --error-exitcode 9 "$here/test_kernels_gpu" > "$to/$tool.txt" 2>&1
    case $? in
      0) ;;
      124) echo "$tool: not done within 240 s" ;;
      *) echo "$tool failed: $to/$tool.txt"; failed=1 ;;
    esac
  done
fi

if [ -x "$here/bench_kernels_gpu" ]; then # there where RHEO_BENCH was on
  timeout 600 "$here/bench_kernels_gpu" --report "$to" > "$to/bench.txt" 2>&1 || { echo "the benchmark failed: $to/bench.txt"; failed=1; }
  tail -n 20 "$to/bench.txt"
fi
exit $failed
