import assert from "node:assert/strict";
import { test } from "node:test";
import { colorIndex, Groups, LIGHT, shade } from "../../src/palette";

test("no other group has the colors of Post-LN and Pre-LN", () => {
  const names = Array.from({ length: 40 }, (_, i) => `scheme ${i}`);
  const groups = new Groups(["post-ln", "pre-ln", ...names]);
  const own = ["post-ln", "pre-ln"].map((name) => shade(LIGHT, groups.of(name), 0, 1));
  for (const name of names) assert.ok(!own.includes(shade(LIGHT, groups.of(name), 0, 1)), name);
});

test("colors repeat only after all others were used", () => {
  const used = new Set(Array.from({ length: 13 }, (_, group) => colorIndex(group, 13)));
  assert.equal(used.size, 13);
  assert.equal(colorIndex(13, 13), 2);
  assert.equal(colorIndex(23, 13), 12);
  assert.equal(colorIndex(24, 13), 2);
});
