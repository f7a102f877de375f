#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# browser.sh <chromium> <rheo> <folder>: a page of a run and one of two runs, opened without a network: their charts are drawn, with round ticks, and
# nothing on them comes from the data as markup. Skips (77) where the browser can't start.
set -u
browser=$1 rheo=$2 folder=$3
# shellcheck source=../../../support/expect.sh
source "$(dirname "$0")/../../../support/expect.sh"
rm -rf "$folder" && mkdir -p "$folder" && cd "$folder" || exit 1

shown() { # <page>: its elements as they are after its scripts have run
  timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-background-networking --host-resolver-rules='MAP * ~NOTFOUND' \
    --user-data-dir="$folder/profile" --window-size=1200,900 --virtual-time-budget=3000 --dump-dom "file://$folder/$1" 2>>browser.log
}
echo '<p>here</p>' >empty.html
shown empty.html | grep -q here || { echo "skipped: $browser shows no page here ($(tail -1 browser.log))"; exit 77; }

printf 'aaaa%.0s' {1..800} >text
cat >c.toml <<'END'
schema = 1
[model]
context = 8
width = 8
heads = 2
blocks = 1
[data]
paths = ["text"]
[train]
steps = 40
microbatches = 2
microbatch = { sequences = 1, tokens = 8 }
[plan]
failures = 0
END
for run in 'a<b>' second; do
  env -u OMPI_COMM_WORLD_RANK -u PMIX_RANK "$rheo" train c.toml --set run.folder="$run" >train.out || { cat train.out; exit 1; }
done
env -u OMPI_COMM_WORLD_RANK -u PMIX_RANK "$rheo" report 'a<b>' --out one.html >/dev/null && "$rheo" report 'a<b>' second --out two.html >/dev/null
expect "the pages are written" 0 $?

shown one.html >one.dom
expect "a page has its sections" 5 "$(grep -o '<h2>[^<]*</h2>' one.dom | wc -l)"
expect "and its charts: two of curves, two of lanes" "2 2" "$(grep -o 'class="chart curves"' one.dom | wc -l) $(grep -o 'class="chart lanes"' one.dom | wc -l)"
expect "curves are drawn" 2 "$(grep -oE '<path class="curve [^>]* d="M[0-9]' one.dom | wc -l)"
expect "boxes are drawn" yes "$(grep -q 'class="box kind-F"' one.dom && echo yes)"
ticks=$(grep -oE 'class="tick x">[0-9]+<' one.dom | grep -oE '[0-9]+' | head -5 | tr '\n' ' ')
expect "ticks of steps are round" "5 10 15 20 25 " "$ticks"
expect "a name is text" "1 0" "$(grep -c '<h1>a&lt;b&gt;</h1>' one.dom) $(grep -c '<h1>a<b>' one.dom)"
expect "light or dark is chosen" yes "$(grep -qE '<html[^>]* data-theme="(light|dark)"' one.dom && echo yes)"
expect "nothing failed" 0 "$(grep -c 'Uncaught' browser.log)"

# A pointer over the curve, then a drag across a part of it: values show, and the axis is that of the part, also in the other chart over steps.
with_script() { # <page> <script>: <page> with a script behind its own
  sed "s|</body>|<script>SVGElement.prototype.setPointerCapture = () => {}; const svgs = document.querySelectorAll('.curves svg'); const at = (kind, x) => { const area = svgs[0].getBoundingClientRect(); svgs[0].dispatchEvent(new PointerEvent(kind, { bubbles: true, button: 0, pointerId: 1, pointerType: 'mouse', clientX: area.left + x, clientY: area.top + 60 })); }; setTimeout(() => { $2 }, 500);</script></body>|" "$1"
}
with_script one.html "at('pointermove', 400);" >pointed.html
shown pointed.html >pointed.dom
expect "the pointer shows step and loss" yes "$(grep -oE '<div class="tip"[^>]*>.*' pointed.dom | grep -qE 'step</span><b>[0-9]+</b>.*training</span><b>[0-9.]+</b>' && echo yes)"
with_script one.html "at('pointerdown', 300); at('pointermove', 350); at('pointermove', 500); at('pointerup', 500);" >zoomed.html
shown zoomed.html >zoomed.dom
ticks_of() { grep -oE 'class="tick x">[0-9]+<' "$1" | grep -oE '[0-9]+' | tr '\n' ' '; }
expect "a drag zooms: fewer steps, other ticks" yes "$([[ $(ticks_of zoomed.dom) != "$(ticks_of one.dom)" && $(ticks_of zoomed.dom) != *"35 "* ]] && echo yes)"
expect "in both charts over steps" 2 "$(grep -oE 'class="reset">Reset zoom' zoomed.dom | wc -l)"

shown two.html >two.dom
expect "two curves of loss" 2 "$(grep -o '<path class="curve curve-[01]"' two.dom | sort -u | wc -l)"
expect "both runs stand in the table" 2 "$(grep -oE '<th scope="row">(a&lt;b&gt;|second)</th>' two.dom | sort -u | wc -l)"
expect "the same digest" yes "$(grep -q 'equal, bit by bit' two.dom && echo yes)"
exit $((failures > 0))
