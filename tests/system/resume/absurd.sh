#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# absurd.sh <rheo> <work folder> <change_manifest>: a checkpoint whose manifest has the right digest and absurd numbers ends --resume auto with exit
# code 4 and a sentence that names the file. No rank dies by a signal, and nothing is touched.
set -u
program=$1 change_manifest=$3
rheo=./recorded # each rank through it
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 3
train.microbatch = { sequences = 2, tokens = 32 }
END
cat >recorded <<END
#!/usr/bin/env bash
"$program" "\$@"
code=\$?
echo \$code >>codes
exit \$code
END
chmod +x recorded
hashes() { (cd run && find . -type f ! -name lock -exec sha256sum {} + | sort -k 2); }
start() { # <output>: and the exit codes of the ranks, of which one speaks for the job and the others end with 0
  rm -f codes
  out=$1 train run 2 --set "plan.pipelines=[2]" "${@:2}" --resume auto </dev/null
  code=$?
  codes=$(sort codes | xargs)
}
start stopped --max-time 0.001s
expect "a job is stopped after a step: the codes of its ranks" "0 75" "$codes"
cp run/step-1/manifest.json good

while IFS=: read -r how file said; do
  cp good run/step-1/manifest.json
  "$change_manifest" run/step-1/manifest.json "$how" || exit 1
  before=$(hashes)
  start "$how"
  expect "$how: exit code" 4 $code
  expect "$how: of each rank" "0 4" "$codes"
  expect "$how: a sentence" 1 "$(grep -c "^rheo: 'run/step-1/$file' $said.*; restore it from a copy, " "$how.out")"
  expect "$how: nothing is touched" "$before" "$(hashes)"
done <<'END'
file of 10^18 bytes:model-0.safetensors:has [0-9]* bytes; the manifest says 1000000000000000000
file of -1 bytes:manifest.json:has a 'bytes' that is not a whole number from 0 to
tensor of 10^18 rows:manifest.json:has a 'rows' that is not a whole number from 1 to
tensor of -1 rows:manifest.json:has a 'rows' that is not a whole number from 1 to
tensor of 2^58 elements:model-0.safetensors:does not have the header that the manifest says
generation -1:manifest.json:has a 'generation' that is not a whole number from 0 to
scale of 2^10000:manifest.json:has a 'scale_log2' that is not a whole number from -200 to 200
END

cp good run/step-1/manifest.json
"$change_manifest" run/step-1/manifest.json "no change" || exit 1
expect "without a change it is the same file" "" "$(cmp good run/step-1/manifest.json)"
start going_on
expect "and the run continues" "0 0" "$codes"
exit $((failures > 0))
