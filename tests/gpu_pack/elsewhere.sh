#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# elsewhere.sh <cmake> <build folder>    makes gpu_pack, unpacks it elsewhere and starts it with nothing of the build in its environment. Without a
# GPU all that needs none passes, and the rest is skipped in a sentence.
set -u
# shellcheck source=tests/expect.sh
. "$(dirname "$0")/../expect.sh"
"$1" --build "$2" --target gpu_pack || exit 1
elsewhere=$(mktemp -d) || exit 1
trap 'rm -rf "$elsewhere"' EXIT
tar xzf "$2/gpu_pack.tar.gz" -C "$elsewhere" || exit 1
env -i PATH=/usr/bin:/bin "$elsewhere/gpu_pack/run_on_gpu.sh" "$elsewhere/results"
rc=$?
summary=$elsewhere/results/summary.json
expect "rheo starts" 1 "$(grep -c '"rheo info", "outcome": "passed"' "$summary")"
expect "two ranks train" 1 "$(grep -c '"2 ranks on the host", "outcome": "passed"' "$summary")"
if [[ $rc == 77 ]]; then
  expect "what needs a device says so" 1 "$(grep -c '"all that needs a device", "outcome": "skipped".*needs a GPU' "$summary")"
else
  expect "all that needs a device passes" 0 $rc
fi
expect "the summary is JSON" 0 "$(python3 -m json.tool "$summary" >/dev/null 2>&1; echo $?)"
exit $((failures > 0))
