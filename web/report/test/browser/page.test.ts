// The report's page in headless Chromium: its parts, its tables and what is downloaded.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, downloaded, figure, key, numbers, sample, visit, words } from "./pages";

after(close);

test("the page shows every part of the results", () => visit(sample, async (page) => {
  assert.equal(await page.title(), sample.title);
  assert.equal(await page.locator("h1").textContent(), sample.title);
  assert.equal(await page.locator("figure").count(), sample.figures.length);
  assert.equal(await page.locator(".verdicts tbody tr").count(), sample.verdicts.length);
  assert.deepEqual(await page.locator(".facts span").allTextContents(), ["March 14, 2026", "Plumb 0.1.0", "5 figures", "2 tables"]);
  assert.ok((await words(page, "loss")).includes("loss"));
  assert.ok((await numbers(page, "spectrum")).includes("10⁻²"));
  assert.equal(await key(page, "loss", "ReZero").locator("em").textContent(), "diverged");
}));

test("claims without an answer are folded, and a link unfolds them", () => visit(sample, async (page) => {
  const folded = page.locator("details.unanswered");
  assert.match((await folded.locator("summary").textContent())!, /Not answered.*1 of 3/);
  assert.equal(await page.locator("#verdict-v3").isVisible(), false);
  await page.locator('a[href="#verdict-v3"]').first().click();
  assert.equal(await page.locator("#verdict-v3").isVisible(), true);
}));

test("a narrow page has its contents in a menu", () => visit(sample, async (page) => {
  const menu = page.locator(".contents-menu");
  await page.setViewportSize({ width: 1280, height: 800 });
  assert.equal(await menu.isVisible(), false);
  await page.setViewportSize({ width: 390, height: 800 });
  const box = (await menu.locator("summary").boundingBox())!;
  assert.ok(box.y + box.height <= 800 && box.height >= 44);
  await menu.locator("summary").click();
  await menu.locator('a[href="#settings"]').click();
  assert.equal(await menu.locator("nav").isVisible(), false);
  assert.ok(page.url().endsWith("#settings"));
}));

test("the parts of a figure are one entry with a switch between them, and all on paper", () => {
  const series = (name: string, x: number[]) => ({ name, group: name, x, y: x });
  const part = (id: string, name: string) => ({ id, title: "Gains", part_of: "gain", part: name, series: [series("Post-LN", [1, 2]), series(name, [1, 3])] });
  const results = {
    verdicts: [{ id: "v", claim: "Keel gains", verdict: "supported", figure: "gain_part2" }, { id: "w", claim: "More is less", verdict: "supported", figure: "more" }],
    figures: [part("gain", "DeepNorm"), part("gain_part2", "Keel"), { id: "more", title: "More", series: [series("Pre-LN", [1, 2])] }],
  };
  return visit(results, async (page) => {
    const [first, second] = [figure(page, "gain"), figure(page, "gain_part2")];
    assert.deepEqual(await page.locator(".contents .level-2").allTextContents(), ["1 Gains", "2 More"]);
    assert.ok((await page.locator(".facts span").allTextContents()).includes("2 figures"));
    assert.deepEqual(await page.locator("td.where").allTextContents(), ["Figure 1", "Figure 2"]);
    assert.deepEqual([await first.isVisible(), await second.isVisible()], [true, false]);
    await first.getByLabel("Part of the figure").selectOption("part 2 of 2: Keel");
    assert.deepEqual([await first.isVisible(), await second.isVisible()], [false, true]);
    await second.locator(".canvas svg").waitFor();
    const box = (await second.locator(".canvas svg").boundingBox())!;
    assert.ok(Math.abs(box.width - (await figure(page, "more").locator(".canvas svg").boundingBox())!.width) < 1, "as wide as others");
    await page.getByRole("button", { name: "Dark mode" }).click(); // draws the hidden part, too
    await second.getByLabel("Part of the figure").selectOption("part 1 of 2: DeepNorm");
    await page.waitForFunction(() => document.querySelector("#figure-gain .canvas svg")!.getBoundingClientRect().width > 600);
    assert.deepEqual([await first.isVisible(), await second.isVisible()], [true, false]);
    await page.locator('td.where a[href="#figure-gain_part2"]').click();
    assert.deepEqual([await first.isVisible(), await second.isVisible()], [false, true]);
    await page.locator('.contents a[href="#parts-gain"]').click();
    assert.ok(await page.locator("#parts-gain").evaluate((parts) => Math.abs(parts.getBoundingClientRect().top) < 900));

    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    for (const one of [first, second]) assert.ok(await one.locator(".canvas svg").isVisible());
    await page.emulateMedia({ media: "screen" });
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    await first.waitFor({ state: "hidden" });
  });
});

test("results with nothing in them make a page", async () => {
  await visit({}, async (page) => assert.equal(await page.locator("h1").textContent(), "Study"));
  const odd = { figures: [{}, { kind: "bar" }, { series: [{ name: "", x: [], y: [] }, { x: ["a", 1], y: [null, null] }] }, null],
    tables: [{}, null], verdicts: [{}, null], settings: [{}, null], summary: [null] };
  await visit(odd, async (page) => assert.equal(await page.locator("figure").count(), 4));
});

test("figures and tables are downloaded whole", () => visit(sample, async (page) => {
  const menu = async (item: string) => {
    await figure(page, "loss").locator("summary").click();
    return downloaded(page, () => figure(page, "loss").getByRole("button", { name: item }).click());
  };
  const csv = await menu("Data (CSV)");
  assert.equal(csv.name, "loss.csv");
  const lines = csv.bytes.toString().trimEnd().split("\n");
  assert.equal(lines[0], "series,step,loss,low,high");
  assert.equal(lines.length, 1 + 3 * 40);
  assert.equal(lines[1], "Post-LN,0,9,,");
  const json = await menu("Data (JSON)");
  assert.equal(json.name, "loss.json");
  assert.deepEqual(JSON.parse(json.bytes.toString()).series[1].y, sample.figures[0].series[1].y);
  const svg = await menu("Image (SVG)");
  assert.equal(svg.name, "loss.svg");
  assert.match(svg.bytes.toString(), /^<svg[^]*Validation loss[^]*<\/svg>$/);
  const png = await menu("Image (PNG)");
  assert.equal(png.name, "loss.png");
  assert.equal(png.bytes.subarray(1, 4).toString(), "PNG");
  const table = await downloaded(page, () => page.getByRole("button", { name: "Download Runs as CSV" }).click());
  assert.equal(table.name, "runs.csv");
  assert.equal(table.bytes.toString(), "scheme,loss,diverged\npost-ln,,true\npre-ln,2.5,false\nrezero,2.25,false\n");
  const results = await downloaded(page, () => page.getByRole("button", { name: "Download results.json" }).click());
  assert.equal(results.name, "results.json");
  assert.deepEqual(JSON.parse(results.bytes.toString()), { schema: "plumb.study/1", ...JSON.parse(JSON.stringify(sample)) });
}));

test("every figure is saved at once", () => visit(sample, async (page) => {
  const names: string[] = [];
  page.on("download", (download) => names.push(download.suggestedFilename()));
  await page.getByRole("button", { name: "Save every figure as SVG" }).click();
  while (names.length < sample.figures.length) await page.waitForEvent("download");
  assert.deepEqual(names.sort(), sample.figures.map((one) => `${one.id}.svg`).sort());
}));

test("tables sort, and say which rows they leave out", () => visit(sample, async (page) => {
  const table = page.locator("#table-runs");
  const first = () => table.locator("tbody td:first-child").allTextContents();
  assert.deepEqual(await first(), ["post-ln", "pre-ln", "rezero"]);
  await table.getByRole("button", { name: "loss" }).click();
  assert.deepEqual(await first(), ["pre-ln", "rezero", "post-ln"]);
  await table.getByRole("button", { name: "loss" }).click();
  assert.deepEqual(await first(), ["rezero", "pre-ln", "post-ln"]);
  assert.ok(!(await table.textContent())!.includes("Showing"));

  const long = page.locator("#table-long");
  assert.equal(await long.locator("tbody tr").count(), 1000);
  assert.match((await long.textContent())!, /Showing 1,000 of 2,345 rows/);
  const all = await downloaded(page, () => long.getByRole("button", { name: "Download all rows" }).click());
  assert.equal(all.bytes.toString().trimEnd().split("\n").length, 2346);

  await figure(page, "dense").getByRole("button", { name: "Show the data as a table" }).click();
  assert.match((await figure(page, "dense").textContent())!, /Showing 1,000 of 1,500 rows/);
  const data = await downloaded(page, () => figure(page, "dense").getByRole("button", { name: "Download all rows" }).click());
  assert.equal(data.bytes.toString().trimEnd().split("\n").length, 1501);
}));
