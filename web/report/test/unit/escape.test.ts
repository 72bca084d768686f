import assert from "node:assert/strict";
import { test } from "node:test";
import { csvLine, fileName } from "../../src/dom";
import { figureCsv, tableCsv } from "../../src/export";
import { readResults } from "../../src/results";

/** A CSV reader written from the grammar of RFC 4180. */
function readCsv(text: string): string[][] {
  const rows: string[][] = [[""]];
  let quoted = false;
  for (let i = 0; i < text.length; ++i) {
    const row = rows[rows.length - 1];
    const c = text[i];
    if (quoted) {
      if (c !== '"') row[row.length - 1] += c;
      else if (text[i + 1] === '"') row[row.length - 1] += text[++i];
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ",") row.push("");
    else if (c === "\n") rows.push([""]);
    else row[row.length - 1] += c;
  }
  assert.ok(!quoted);
  return rows.slice(0, -1);
}

const HOSTILE = [
  '<img src=x onerror="alert(1)">', "</script><script>alert(1)</script>", "a,b", 'say "no"', "two\nlines", "\r\n", "{a|b} {value}",
  "${1+1}", "@PLUMB_RESULTS@", "&lt;b&gt;", "\u202Etxt.exe", "", " spaces ", "__proto__", "Überzeugung, 日本語",
];

const FORMULAS = ["=cmd|' /C calc'!A0", "@SUM(1)", "+1+1", "-2+3", "-", "\t=1", "\r\n", "@PLUMB_RESULTS@"];

test("every text comes back from a line of CSV, but formulas begin with an apostrophe", () => {
  assert.deepEqual(readCsv(csvLine(HOSTILE) + "\n"), [HOSTILE.map((text) => (FORMULAS.includes(text) ? `'${text}` : text))]);
  assert.deepEqual(readCsv(csvLine(FORMULAS) + "\n"), [FORMULAS.map((text) => `'${text}`)]);
  const plain = ["-1.5", "+2", "-1e-9", "a=b", " =1", "'=1", "\u2212\u0031"];
  assert.deepEqual(readCsv(csvLine(plain) + "\n"), [plain]);
  assert.deepEqual(readCsv(csvLine([1.5, null, undefined, -1e-9, true]) + "\n"), [["1.5", "", "", "-1e-9", "true"]]);
});

test("a figure's and a table's CSV hold every text and every digit", () => {
  const results = readResults({
    figures: [{ x: { label: HOSTILE[0] }, y: { label: HOSTILE[3] }, series: [
      { name: HOSTILE[4], x: [1, 2], y: [0.1 + 0.2, null], low: [0, 0], high: [1, 1] }, { name: HOSTILE[1], x: [HOSTILE[2]], y: [7] }] }],
    tables: [{ columns: [HOSTILE[3], "b"], rows: [[HOSTILE[0], 1 / 3], [null, false]] }],
  });
  assert.deepEqual(readCsv(figureCsv(results.figures[0])), [
    ["series", HOSTILE[0], HOSTILE[3], "low", "high"], [HOSTILE[4], "1", "0.30000000000000004", "0", "1"], [HOSTILE[4], "2", "", "0", "1"],
    [HOSTILE[1], HOSTILE[2], "7", "", ""],
  ]);
  assert.deepEqual(readCsv(tableCsv(results.tables[0])), [[HOSTILE[3], "b"], [HOSTILE[0], "0.3333333333333333"], ["", "false"]]);
});

test("names of files have no path, no control and no leading dot", () => {
  assert.equal(fileName("gradient_by_layer", "csv"), "gradient_by_layer.csv");
  assert.equal(fileName("../../etc/passwd", "csv"), "etc-passwd.csv");
  assert.equal(fileName("C:\\x\u0000y", "json"), "C-x-y.json");
  assert.equal(fileName(".profile", "svg"), "profile.svg");
  assert.equal(fileName("\u202Etxt.exe", "csv"), "txt.exe.csv");
  assert.equal(fileName("größe 1", "png"), "größe-1.png");
  assert.equal(fileName("日本", "csv"), "日本.csv");
  for (const empty of ["", "...", "<>"]) assert.equal(fileName(empty, "csv"), "data.csv");
  assert.ok(fileName("x".repeat(1000), "csv").length < 100);
});

test("results of any shape are read", () => {
  const whole = { title: "", subtitle: "", summary: [], settings: [], verdicts: [], figures: [], tables: [] };
  for (const odd of [null, undefined, 3, "text", [], { figures: 3, tables: "x", verdicts: {}, settings: null, summary: 7, title: null }]) {
    const { title, subtitle, summary, settings, verdicts, figures, tables } = readResults(odd);
    assert.deepEqual({ title, subtitle, summary, settings, verdicts, figures, tables }, { ...whole, title: "Study" });
  }
  const odd = readResults({
    figures: [null, { series: [null, { x: "no", y: [1, "2", null, true], low: [1] }], x: 7, kind: "<b>", notes: [null, 3] }],
    tables: [null, { columns: [1, null], rows: [null, 5, [{ a: 1 }, [2]]] }], verdicts: [null, { verdict: "constructor" }],
    settings: [null, { items: [null, ["only"]] }],
  });
  assert.equal(odd.figures[1].kind, "line");
  assert.deepEqual(odd.figures[1].series[1].y, [1, null, null, null]);
  assert.deepEqual(odd.figures[1].series[1].x, [0, 1, 2, 3]);
  assert.equal(odd.figures[1].series[1].low, undefined);
  assert.deepEqual(odd.tables[1].rows, [[], [], ['{"a":1}', "[2]"]]);
  assert.equal(odd.verdicts[1].verdict, "undecided");
  assert.deepEqual(odd.settings, [{ group: "", items: [["", ""], ["only", ""]] }], "a group of no settings has nothing to show");
});

test("prose has the minus signs of print", () => {
  const { summary } = readResults({ summary: ["as depth to the power -0.44 (-1 to 2), of Post-LN, 3-4, f-1"] });
  assert.deepEqual(summary, ["as depth to the power −0.44 (−1 to 2), of Post-LN, 3-4, f-1"]);
});
