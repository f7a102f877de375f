// SPDX-License-Identifier: Apache-2.0
// node chart_test.js <chart.js>: the arithmetic of the chart. Ticks are round and inside the range, whatever the range.
"use strict";
const assert = require("node:assert");
const path = require("node:path");
const { roundTicks, tickText, valueText, timeUnit, timeText, lowerBound, nearest } = require(path.resolve(process.argv[2]));

const isRound = (step) => ["1", "2", "5"].includes(step.toExponential(3).replace(/\.?0*e.*/, ""));
let seed = 1;
const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
for (let i = 0; i < 20000; ++i) {
  const size = 10 ** (random() * 24 - 12);
  const from = (random() - 0.5) * size * 10 ** (random() * 4);
  const to = from + size * (0.01 + random());
  const count = 1 + Math.floor(random() * 12);
  const { step, values } = roundTicks(from, to, count);
  const seen = JSON.stringify([from, to, count, step, values]);
  assert(isRound(step), `step is 1, 2 or 5 times a power of ten: ${seen}`);
  assert(values.length <= count + 1, `not more than asked for: ${seen}`);
  assert(values.length >= Math.floor(count / 2.5 - 1), `not many fewer: ${seen}`);
  for (const v of values) {
    const slack = Math.max(Math.abs(v) * 1e-11, step * 1e-6);
    assert(v >= from - slack && v <= to + slack, `inside: ${seen}`);
    assert(Math.abs(v / step - Math.round(v / step)) < 1e-5 * Math.max(1, Math.abs(v / step) * 1e-6), `a multiple of the step: ${seen}`);
  }
}
assert.deepStrictEqual(roundTicks(1.933, 5.436, 5), { step: 1, values: [2, 3, 4, 5] });
assert.deepStrictEqual(roundTicks(0, 0.3, 3), { step: 0.1, values: [0, 0.1, 0.2, 0.3] }); // no 0.30000000000000004
assert.deepStrictEqual(roundTicks(1, 3, 10, 1), { step: 1, values: [1, 2, 3] });          // no half steps
assert.deepStrictEqual(roundTicks(4, 4, 5).values, [4]);
assert.strictEqual(tickText(20000, 5000), "20,000");
assert.strictEqual(tickText(0.25, 0.05), "0.25");
assert.strictEqual(tickText(2, 0.5), "2.0");
assert.strictEqual(valueText(21339.12345), "21,339");
assert.strictEqual(valueText(0), "0");
assert.strictEqual(timeUnit(0.1).name, "ms");
assert.strictEqual(timeText(0.1094), "109 ms");
assert.strictEqual(timeText(0), "0 µs");
assert.strictEqual(lowerBound([1, 2, 5], 3), 2);
assert.strictEqual(nearest([1, 2, 5], 4), 2);
assert.strictEqual(nearest([], 4), -1);
console.log("ok");
