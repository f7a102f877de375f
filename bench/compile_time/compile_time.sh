#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# compile_time.sh [--json] [compiler...]      default: g++, and nvcc when it is there
# What it costs to include each umbrella header of the library, to compile each example that needs the library alone, and
# to let the compiler plan and prove plans of growing size (within its default limits). Processor seconds of the whole
# compiler (user and system, the least of three), so other programs disturb it little. Examples are compiled as from headers alone and as
# they are where they link rheo::compiled. Nothing is subtracted:
# the lines "nothing" and "<vector> <string>" show what every C++ file pays.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
json=no
[[ ${1:-} == --json ]] && { json=yes; shift; }
compilers=("$@")
if ((${#compilers[@]} == 0)); then
  compilers=(g++)
  command -v nvcc >/dev/null && compilers+=(nvcc)
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1 LC_ALL=C TIMEFORMAT='%U %S %R'

measure() { # <compiler> <name> <file> [flags...]: one line of the table
  local compiler=$1 name=$2 file=$3 best="" real="" took u s r flags
  shift 3
  if [[ $compiler == *nvcc* ]]; then
    flags=(-std=c++20 -x cu -O2 -c -Xcudafe --diag_suppress=177)
  else
    flags=(-std=c++20 -O2 -c)
  fi
  for _ in 1 2 3; do
    if ! { took=$( { time "$compiler" "${flags[@]}" "-I$root/include" "$@" "$file" -o "$work/out.o" >"$work/log" 2>&1; } 2>&1 ); }; then
      best=""
      break
    fi
    read -r u s r <<<"$took"
    best=$(awk -v a="$u" -v b="$s" -v least="${best:-1e9}" 'BEGIN { t = a + b; printf "%.2f", t < least ? t : least }')
    real=$(awk -v r="$r" -v least="${real:-1e9}" 'BEGIN { printf "%.2f", r < least ? r : least }')
    awk -v t="$best" 'BEGIN { exit t < 5 }' && break # a long one is not repeated
  done
  if [[ $json == yes ]]; then
    printf '{"bench":"compile_time","compiler":"%s","what":"%s","processor_s":%s,"wall_s":%s}\n' "$compiler" "$name" "${best:-null}" "${real:-null}"
  elif [[ -n $best ]]; then
    printf '  %-56s%8s s\n' "$name" "$best"
  else
    printf '  %-56s  not compiled: %s\n' "$name" "$(grep -m1 error "$work/log" | cut -c1-120)"
  fi
}

for compiler in "${compilers[@]}"; do
  [[ $json == yes ]] || echo "$("$compiler" --version | grep -m1 -E 'g\+\+|clang|release'), processor seconds"
  echo 'int main() {}' >"$work/nothing.cpp"
  measure "$compiler" nothing "$work/nothing.cpp"
  printf '#include <vector>\n#include <string>\nint main() {}\n' >"$work/standard.cpp"
  measure "$compiler" "<vector> <string>" "$work/standard.cpp"
  for header in "$root"/include/rheo/*.hpp; do
    name=rheo/$(basename "$header")
    printf '#include "%s"\nint main() {}\n' "$name" >"$work/header.cpp"
    measure "$compiler" "$name" "$work/header.cpp"
  done
  for example in "$root"/examples/[0-9]*.cpp; do
    measure "$compiler" "examples/$(basename "$example")" "$example"
    [[ $compiler == *nvcc* ]] || measure "$compiler" "examples/$(basename "$example"), rheo::compiled" "$example" -DRHEO_COMPILED
  done
  for size in "4 4" "4 8" "8 16" "8 32" "16 32"; do
    read -r ranks microbatches <<<"$size"
    measure "$compiler" "plan proved: $ranks ranks x $microbatches microbatches" "$here/proof.cpp" "-DRANKS=$ranks" "-DMICROBATCHES=$microbatches"
  done
done
