import assert from "node:assert/strict";
import { test } from "node:test";
import { formatNumber, formatTick, powerOfTen } from "../../src/format";

test("numbers have four significant digits", () => {
  const cases: [number, string][] = [
    [0, "0"], [-0, "0"], [1, "1"], [-7, "−7"], [1234567, "1,234,567"], [1e7, "1·10⁷"], [0.1, "0.1"], [2.5, "2.5"],
    [3.14159, "3.142"], [-12345.678, "−12,346"], [999.96, "1,000"], [0.00012346, "0.0001235"], [0.000012346, "1.23·10⁻⁵"],
    [-6.02e23, "−6.02·10²³"], [1 / 3, "0.3333"], [100.5, "100.5"], [5e-324, "4.94·10⁻³²⁴"], [1.7976931348623157e308, "1.8·10³⁰⁸"],
  ];
  for (const [value, shown] of cases) assert.equal(formatNumber(value), shown, String(value));
});

test("what is no number is a dash", () => {
  for (const value of [NaN, Infinity, -Infinity, null, undefined]) assert.equal(formatNumber(value), "—");
});

test("fewer digits when asked", () => {
  assert.equal(formatNumber(3.14159, 3), "3.14");
  assert.equal(formatNumber(1234.5, 3), "1,235");
});

test("powers of ten have superscripts", () => {
  assert.equal(powerOfTen(0), "10⁰");
  assert.equal(powerOfTen(-12), "10⁻¹²");
  assert.equal(powerOfTen(308), "10³⁰⁸");
});

test("ticks of one axis have as many digits as their distance needs", () => {
  const cases: [number, number, number, string][] = [ // value, step, largest
    [0.25, 0.25, 1, "0.25"], [1, 0.25, 1, "1.00"], [1.5, 0.5, 3, "1.5"], [20_000, 10_000, 60_000, "20k"], [3e6, 1e6, 5e6, "3M"],
    [2.5e6, 5e5, 5e6, "2.5M"], [0.0015, 5e-4, 3e-3, "0.0015"], [2e-5, 1e-5, 4e-5, "2·10⁻⁵"], [-2e-5, 1e-5, 4e-5, "−2·10⁻⁵"], [0, 0.1, 1, "0"], [1e-20, 0.1, 1, "0"],
    [2_000_001, 1, 2_000_003, "2,000,001"], [6000.0002, 0.0001, 6000.0004, "6,000.0002"], [5e24, 5e24, 2e25, "0.5·10²⁵"],
    [1e25, 5e24, 2e25, "1.0·10²⁵"], [0.5000000002, 1e-10, 0.5000000004, "0.5000000002"],
  ];
  for (const [value, step, largest, shown] of cases) assert.equal(formatTick(value, step, largest), shown);
});
