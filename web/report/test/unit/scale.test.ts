import assert from "node:assert/strict";
import { test } from "node:test";
import { linearScale, logScale, type Scale, type Tick } from "../../src/scale";

/** The number that a label shows. */
function valueOf(label: string): number {
  const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const plain = label
    .replace(/[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+$/, (power) => "e" + [...power].map((digit) => (digit === "⁻" ? "-" : digits.indexOf(digit))).join(""))
    .replace(/^(\u2212?)10e/, "$11e").replace("·10e", "e").replace(/,/g, "").replace(/\u2212/g, "-")
    .replace(/k$/, "e3").replace(/M$/, "e6");
  return Number(plain);
}

const at = (ticks: Tick[]): number[] => ticks.map((tick) => tick.at);
const labels = (ticks: Tick[]): string[] => ticks.map((tick) => tick.label);

/** Properties of every axis: few ticks, in order, inside the view, each labeled with its value. */
function holds(scale: Scale, low: number, high: number, count: number): void {
  const ticks = scale.ticks(low, high, count);
  const about = `${low} to ${high}: ${labels(ticks).join(" ")}`;
  assert.ok(ticks.length >= 2 && ticks.length <= 3 * count + 3, about);
  const slack = (high - low) * 1e-6;
  ticks.forEach((tick, i) => {
    assert.ok(tick.at >= low - slack && tick.at <= high + slack, about);
    if (i > 0) assert.ok(tick.at > ticks[i - 1].at, about);
    const shown = scale.forward(valueOf(tick.label));
    assert.ok(shown !== null && Math.abs(shown - tick.at) <= (high - low) * 0.01, `${about}; ${tick.label} stands at ${tick.at}`);
  });
  assert.equal(new Set(labels(ticks)).size, ticks.length, about);
}

test("ticks of a linear axis are round numbers", () => {
  assert.deepEqual(labels(linearScale().ticks(0, 1, 5)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
  assert.deepEqual(labels(linearScale().ticks(-3, 52, 6)), ["0", "10", "20", "30", "40", "50"]);
  assert.deepEqual(labels(linearScale().ticks(0, 60_000, 4)), ["0", "20k", "40k", "60k"]);
  assert.deepEqual(labels(linearScale().ticks(-2e-5, 2e-5, 4)), ["−2·10⁻⁵", "−1·10⁻⁵", "0", "1·10⁻⁵", "2·10⁻⁵"]);
});

test("ticks of whole numbers are whole", () => {
  assert.deepEqual(labels(linearScale(true).ticks(1, 3, 8)), ["1", "2", "3"]);
  assert.deepEqual(labels(linearScale(true).ticks(0.9, 6.1, 4)), ["2", "4", "6"]);
});

test("ticks of a logarithmic axis are powers of ten", () => {
  assert.deepEqual(at(logScale().ticks(-4, 0, 5)), [-4, -3, -2, -1, 0]);
  assert.deepEqual(labels(logScale().ticks(-4, 0, 5)), ["10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]);
  assert.deepEqual(labels(logScale().ticks(0, 1, 4)), ["1", "2", "5", "10"]);
});

test("inverse undoes forward", () => {
  for (const value of [-250, -1, -1e-4, 1e-9, 0.3, 7, 1e6]) {
    for (const scale of [linearScale(), logScale()]) {
      const there = scale.forward(value);
      if (there === null) assert.ok(value <= 0);
      else assert.ok(Math.abs(scale.inverse(there) - value) <= 1e-9 * Math.abs(value), `${value}`);
    }
  }
  assert.equal(logScale().forward(0), null);
  assert.equal(logScale().forward(-1), null);
});

test("axes zoomed as far as they go have ticks that tell their values", () => {
  for (const count of [3, 5, 8]) {
    for (const center of [0, 1, -1, 0.5, 1 / 3, 6000, -123_456.789, 3e-7, 2.5e9]) {
      for (let span = 10; span > 1e-12; span /= 7) {
        const view: [number, number] = [center - span / 2, center + span / 2];
        if (linearScale().resolves(...view)) holds(linearScale(), ...view, count);
        const log: [number, number] = [center % 11 - span / 2, center % 11 + span / 2];
        if (logScale().resolves(...log)) holds(logScale(), ...log, count);
      }
    }
  }
});

test("an axis ends its zoom before its numbers run out of digits", () => {
  for (const scale of [linearScale(), logScale()]) {
    assert.ok(scale.resolves(0.5, 0.50001));
    assert.ok(!scale.resolves(0.5, 0.5 + 1e-15));
    assert.ok(!scale.resolves(0.5, 0.5));
    assert.ok(!scale.resolves(0.5, NaN));
  }
  assert.ok(linearScale().resolves(-1e-30, 1e-30), "around zero there are digits enough");
  assert.ok(!linearScale().resolves(-1e-320, 1e-320));
});

test("views that no number resolves have no ticks, and take no time", () => {
  const views: [number, number][] = [
    [0.5, 0.5 + 1e-16], [1, 1 + Number.EPSILON], [1e17, 1e17 + 16], [3, 3 + 2e-15], [-1, -1 + 3e-16], [0, 5e-324], [1e-320, 3e-320],
    [-1.7e308, 1.7e308], [0, Infinity], [-Infinity, Infinity], [NaN, 1], [0, NaN], [2, 1],
  ];
  for (const scale of [linearScale(), linearScale(true), logScale()]) {
    for (const view of views) {
      assert.ok(scale.ticks(...view, 6).length < 30, `${view}`);
      assert.ok(scale.ticks(...view, 6).every((tick) => Number.isFinite(tick.at)), `${view}`);
      assert.ok(scale.minorTicks(...view).length < 100, `${view}`);
    }
  }
});
