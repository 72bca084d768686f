import assert from "node:assert/strict";
import { test } from "node:test";
import { canSmooth, chosen, smoothed } from "../../src/chosen";
import { readResults } from "../../src/results";

test("a smoothed series is a weighted mean of what came before", () => {
  // Weights 1, w, w² of the last three values, divided by their sum.
  const [, , third] = smoothed([1, 2, 6], 0.5) as number[];
  assert.ok(Math.abs(third - (6 + 2 * 0.5 + 1 * 0.25) / 1.75) < 1e-12);
  assert.deepEqual(smoothed([3, 3, 3], 0.9).map((value) => value!.toFixed(9)), ["3.000000000", "3.000000000", "3.000000000"]);
  assert.deepEqual(smoothed([4, null, 8], 0.9).map((value) => value && Math.round(value)), [4, null, 8]);
});

test("a figure moves to another axis without the points that it does not have", () => {
  const [figure] = readResults({ figures: [{
    kind: "line", x: { label: "step" }, other_x: [{ label: "tokens" }, { label: "hours" }],
    series: [{ x: [1, 2, 3], y: [5, null, 7], low: [4, null, 6], high: [6, null, 8], other_x: [[10, 20, 30], [null, 0.5]] }],
  }] }).figures;
  assert.equal(chosen(figure, 0, 0), figure);
  const tokens = chosen(figure, 1, 0);
  assert.equal(tokens.x.label, "tokens");
  assert.deepEqual(tokens.series[0].x, [10, 20, 30]);
  const hours = chosen(figure, 2, 0).series[0];
  assert.deepEqual([hours.x, hours.y, hours.low], [[0.5], [null], [null]]);
  assert.equal(canSmooth(figure), false);
});
