#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh <clang++> <objects> <folder> <reader> <seconds>: builds the readers with libFuzzer under ASan and UBSan in the folder, from the files that they
# need (build_readers.py), and lets it look for faults. Skips (77) when that compiler has no libFuzzer. A find is left in the folder as crash-*, timeout-* or oom-*.
set -u
compiler=$1 objects=$2 folder=$3 reader=$4 seconds=$5
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
mkdir -p "$folder" && cd "$folder" || exit 1

flags=(-std=c++20 -O1 -g "-fsanitize=fuzzer,address,undefined" -fno-sanitize-recover=all -fno-omit-frame-pointer)
if [[ ! -e usable ]]; then
  echo 'extern "C" int LLVMFuzzerTestOneInput(unsigned char const*, unsigned long) { return 0; }' >probe.cpp
  "$compiler" "${flags[@]}" probe.cpp -o probe 2>probe.log || { echo "skipped: $compiler has no libFuzzer ($(head -1 probe.log))"; exit 77; }
  touch usable
fi

"$here/build_readers.py" compile "$objects" "$PWD/readers" "$here"/{libfuzzer,readers,text_readers,token_readers,folder_reader}.cpp -- \
  "$compiler" "${flags[@]}" '-DRHEO_VERSION="fuzz"' -DRHEO_LOOP_LEVEL=baseline -w -Wno-invalid-constexpr "-I$root" "-I$root/include" "-I$root/tests" || exit 1

mkdir -p "corpus-$reader"
RHEO_FUZZ_READER=$reader ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1 ./readers "corpus-$reader" "$here/corpus/$reader" \
  -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=20000 -print_final_stats=1 -artifact_prefix="$folder/$reader-" 2>"$reader.log"
code=$?
tail -20 "$reader.log"
exit $code
