import assert from "node:assert/strict";
import { test } from "node:test";
import { readResults } from "../../src/results";
import { commonSetting, effectText, VERDICT_WORDS } from "../../src/verdicts";

test("an effect has its interval and its seeds", () => {
  assert.equal(effectText({ mean: 1.9712, low: 1.85, high: 2.1, seeds: 10 }), "1.97 (95% interval 1.85 to 2.1; 10 seeds)");
  assert.equal(effectText({ mean: 3, low: null, high: null, seeds: 1 }), "3 (1 seed)");
  assert.equal(effectText({ mean: null, low: null, high: null, seeds: 0 }), "");
});

// Shown by the words that C++ writes (analysis/rules.cpp, to_string).
test("a pill says the verdict's word", () => {
  const words = ["supported", "contradicted", "no effect of that size", "undecided", "this setting cannot test it"];
  const read = readResults({ verdicts: words.map((verdict) => ({ verdict })) }).verdicts;
  assert.deepEqual(read.map((one) => VERDICT_WORDS[one.verdict]), words);
});

test("verdicts of every kind are read, and those of older documents", () => {
  const words = ["supported", "contradicted", "undecided", "this setting cannot test it", "confirmed", "unclear", "<b>", 7,
    "no effect of that size"];
  const read = readResults({ verdicts: words.map((verdict) => ({ verdict })) }).verdicts;
  assert.deepEqual(read.map((one) => one.verdict),
    ["supported", "contradicted", "undecided", "untestable", "supported", "undecided", "undecided", "undecided",
      "smaller"]);
  assert.deepEqual(read[0].effect, { mean: null, low: null, high: null, seeds: 0 });
});

test("the setting of most verdicts is found", () => {
  const common = (settings: string[]) => commonSetting(readResults({ verdicts: settings.map((setting) => ({ setting })) }).verdicts);
  assert.equal(common(["a", "a", "b"]), "a");
  assert.equal(common(["a", "b", "b"]), "b");
  assert.equal(common(["a", "b"]), "");
  assert.equal(common(["a", "b", "c", "c"]), "");
  assert.equal(common(["a"]), "");
  assert.equal(common([]), "");
});
