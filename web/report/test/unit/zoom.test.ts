import assert from "node:assert/strict";
import { test } from "node:test";
import { Groups, LIGHT } from "../../src/palette";
import { firstView, makePlot } from "../../src/plot";
import { readResults } from "../../src/results";
import { linearScale } from "../../src/scale";
import { moved, type Range, zoomed } from "../../src/zoom";

test("zooming out ends at the whole figure", () => {
  assert.deepEqual(zoomed([-5, 0.5], [0, 0.5], [0, 1], linearScale()), [0, 0.5]);
  assert.deepEqual(zoomed([-5, 5], [0.2, 0.5], [0, 1], linearScale()), [0, 1]);
});

test("zooming in ends where labels could not differ", () => {
  let range: Range = [0, 1];
  for (let i = 0; i < 500; ++i) {
    range = zoomed([0.6 - (0.6 - range[0]) * 0.5, 0.6 + (range[1] - 0.6) * 0.5], range, [0, 1], linearScale());
  }
  assert.ok(range[1] - range[0] > 1e-10 && range[1] - range[0] < 1e-8, String(range));
  assert.ok(linearScale().ticks(...range, 6).length >= 2);
  assert.deepEqual(zoomed([NaN, NaN], [0.2, 0.4], [0, 1], linearScale()), [0.2, 0.4]);
  assert.deepEqual(zoomed([2, 3], [0.2, 0.4], [0, 1], linearScale()), [0.2, 0.4]);
});

test("moving keeps the length and ends at the edge", () => {
  const near = (a: Range, b: Range) => a.every((value, i) => Math.abs(value - b[i]) < 1e-12);
  assert.ok(near(moved([0.2, 0.4], [0, 1], 0.5), [0.3, 0.5]));
  assert.ok(near(moved([0.2, 0.4], [0, 1], -3), [0, 0.2]));
  assert.ok(near(moved([0.7, 0.9], [0, 1], 3), [0.8, 1]));
});

test("a figure of nearly equal or huge values has a range to draw", () => {
  const values = [[1, 1 + 1e-13, 1], [0, 0, 0], [-1.7e308, 1.7e308, 0], [1e-320, 2e-320, 0], [5e9, 5e9, 5e9], [3, 3, 3]];
  for (const y of values) {
    const figure = readResults({ figures: [{ series: [{ name: "a", x: [1, 2, 3], y }] }] }).figures[0];
    const plot = makePlot(figure, firstView(figure), new Groups(["a"]), LIGHT);
    assert.ok(plot.yScale.resolves(...plot.y), `${y}: ${plot.y}`);
    assert.ok(plot.yScale.ticks(...plot.y, 5).length >= (y[0] === y[2] ? 1 : 2), `${y}: ${plot.y}`);
  }
});

test("a run that diverged does not squeeze the others, but is whole when alone", () => {
  const figure = readResults({ figures: [{ kind: "line", series: [
    { name: "good", x: [1, 2, 3], y: [6, 5, 4] }, { name: "bad", x: [1, 2, 3], y: [6, 500, null] },
  ] }] }).figures[0];
  const groups = new Groups(["good", "bad"]);
  const both = makePlot(figure, firstView(figure), groups, LIGHT);
  assert.ok(both.y[1] < 8, String(both.y));
  assert.deepEqual(both.leaving, ["bad"]);
  const alone = makePlot(figure, { ...firstView(figure), hidden: new Set([0]) }, groups, LIGHT);
  assert.ok(alone.y[1] > 500);
  assert.deepEqual(alone.leaving, []);
});

test("an interval is drawn whole on a log axis, and ends where it reaches zero", () => {
  const figure = readResults({ figures: [{ y: { log: true }, series: [
    { name: "a", x: [1, 2], y: [0.142, 0.2], low: [0.058, 0.1], high: [0.347, 0.4] },
    { name: "b", x: [1, 2], y: [1, 1], low: [-1, 0.9], high: [3, 1.1] },
  ] }] }).figures[0];
  const plot = makePlot(figure, firstView(figure), new Groups(["a", "b"]), LIGHT);
  const low = (series: number) => 10 ** plot.series[series].points[0]!.band![0];
  assert.ok(Math.abs(low(0) - 0.058) < 1e-9, String(low(0)));
  assert.ok(plot.y[0] <= Math.log10(0.058) && 10 ** plot.y[0] > 0.005, String(plot.y));
  assert.ok(10 ** plot.y[0] < low(1) * 1.001, String(low(1)));
});
