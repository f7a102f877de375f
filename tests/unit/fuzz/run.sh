#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh <clang++> <folder> <reader> <seconds>: builds the readers with libFuzzer under ASan and UBSan in the folder, when something changed,
# and lets it look for faults. Skips (77) when that compiler has no libFuzzer. A find is left in the folder as crash-*, timeout-* or oom-*.
set -u
compiler=$1 folder=$2 reader=$3 seconds=$4
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
mkdir -p "$folder" && cd "$folder" || exit 1

flags=(-std=c++20 -O1 -g "-fsanitize=fuzzer,address,undefined" -fno-sanitize-recover=all -fno-omit-frame-pointer)
if [[ ! -e usable ]]; then
  echo 'extern "C" int LLVMFuzzerTestOneInput(unsigned char const*, unsigned long) { return 0; }' >probe.cpp
  "$compiler" "${flags[@]}" probe.cpp -o probe 2>probe.log || { echo "skipped: $compiler has no libFuzzer ($(head -1 probe.log))"; exit 77; }
  touch usable
fi

cmake "-DASSETS=$root/executor/report/assets" "-DOUT=$PWD/page_asset.cpp.new" -P "$root/cmake/embed_page.cmake" || exit 1
cmp -s page_asset.cpp.new page_asset.cpp || mv page_asset.cpp.new page_asset.cpp

# What the readers are made of, and nothing that needs MPI or BLAS.
sources=("$here"/{libfuzzer,readers,text_readers,folder_reader}.cpp
  "$root"/executor/checkpoint/{checkpoint,checkpoint_files,checkpoint_manifest,checkpoint_publish,checkpoint_writer,huggingface,safetensors}.cpp
  "$root"/executor/config/{config,inject,schedule_file,strict_json,to_toml,toml}.cpp "$root"/executor/data/{data,token_files}.cpp
  "$root"/executor/device/backend.cpp "$root"/executor/os/mapped_copy.cpp
  "$root"/executor/plan/{layer_profile_file,plan_file,plan_report,plan_tables,planning,text_table}.cpp
  "$root"/executor/records/{record_files,record_line,report,run_folder}.cpp "$root"/executor/report/{blocks,energy_section,memory_section,run_page,step_section}.cpp
  "$PWD/page_asset.cpp"
  "$root"/executor/state/resident_state.cpp "$root"/kernels/{digest/digest_host,detail/loops,detail/loops_choice}.cpp)
stale() { # an object that is missing, or older than a file that it was made of
  [[ -e $1 && -e ${1%.o}.d ]] || return 0
  local file
  # shellcheck disable=SC2013 # names without blanks, several in a line
  for file in $(sed 's/^[^:]*: //; s/\\$//' "${1%.o}.d"); do
    [[ $file -nt $1 || ! -e $file ]] && return 0
  done
  return 1
}
objects=()
for source in "${sources[@]}"; do
  object=$(basename "$source" .cpp).o
  objects+=("$object")
  if stale "$object"; then
    "$compiler" "${flags[@]}" -MMD -DRHEO_VERSION='"fuzz"' -DRHEO_LOOP_LEVEL=baseline -w -Wno-invalid-constexpr -I"$root" -I"$root/include" -c "$source" -o "$object" || exit 1
    rm -f readers
  fi
done
[[ -e readers ]] || "$compiler" "${flags[@]}" "${objects[@]}" -lfmt -o readers || exit 1

mkdir -p "corpus-$reader"
RHEO_FUZZ_READER=$reader ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1 ./readers "corpus-$reader" "$here/corpus/$reader" \
  -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=20000 -print_final_stats=1 -artifact_prefix="$folder/$reader-" 2>"$reader.log"
code=$?
tail -20 "$reader.log"
exit $code
