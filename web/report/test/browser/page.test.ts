// The report's page from the user's perspective, in headless Chromium.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { close, downloaded, sample, visit } from "./pages";

after(close);

const figure = (page: Page, id: string): Locator => page.locator(`[id="figure-${id}"]`);
const key = (page: Page, id: string, name: string): Locator => figure(page, id).locator(".key", { hasText: name });
const pressed = (button: Locator): Promise<string | null> => button.getAttribute("aria-pressed");

/** The texts in a chart, including the numbers on its axes. */
const words = (page: Page, id: string): Promise<string[]> =>
  figure(page, id).locator(".canvas svg text").evaluateAll((texts) => texts.map((text) => text.textContent ?? ""));

const numbers = async (page: Page, id: string): Promise<string[]> =>
  (await words(page, id)).filter((word) => /^[\u2212\d]/.test(word));

/** Waits until a chart draws, or does not draw, in the color of one key of its legend. */
async function drawn(page: Page, id: string, name: string, expected: boolean): Promise<void> {
  await page.mouse.move(0, 0); // a key under the pointer brightens its series
  await page.waitForFunction(([where, label, wanted]) => {
    const card = document.getElementById(where as string)!;
    const button = [...card.querySelectorAll(".key")].find((one) => one.textContent!.startsWith(label as string))!;
    const color = getComputedStyle(button.querySelector("svg path")!).stroke;
    return [...card.querySelectorAll(".canvas svg path")].some((path) => getComputedStyle(path).stroke === color) === wanted;
  }, [`figure-${id}`, name, expected]);
}

/** Waits until the numbers on the axes differ from these. */
async function changed(page: Page, id: string, before: string[]): Promise<string[]> {
  const selector = `[id="figure-${id}"] .canvas svg text`;
  await page.waitForFunction(([where, old]) =>
    [...document.querySelectorAll(where)].map((text) => text.textContent).filter((text) => /^[\u2212\d]/.test(text ?? "")).join("|") !== old,
  [selector, before.join("|")]);
  return numbers(page, id);
}

async function drag(page: Page, id: string, from: [number, number], to: [number, number]): Promise<void> {
  const chart = figure(page, id).locator(".canvas");
  await chart.scrollIntoViewIfNeeded();
  const box = (await chart.boundingBox())!;
  await page.mouse.move(box.x + from[0] * box.width, box.y + from[1] * box.height);
  await page.mouse.down();
  await page.mouse.move(box.x + to[0] * box.width, box.y + to[1] * box.height, { steps: 4 });
  await page.mouse.up();
}

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

test("the legend hides and shows series", () => visit(sample, async (page) => {
  await drawn(page, "loss", "Pre-LN", true);
  await key(page, "loss", "Pre-LN").click();
  assert.equal(await pressed(key(page, "loss", "Pre-LN")), "false");
  await drawn(page, "loss", "Pre-LN", false);
  await drawn(page, "loss", "Post-LN", true);
  await key(page, "loss", "Pre-LN").click();
  await drawn(page, "loss", "Pre-LN", true);

  const all = () => figure(page, "loss").locator(".key").evaluateAll((keys) => keys.map((one) => one.getAttribute("aria-pressed")));
  await key(page, "loss", "ReZero").dblclick();
  assert.deepEqual(await all(), ["false", "false", "true"]);
  await key(page, "loss", "ReZero").click({ modifiers: ["Shift"] });
  assert.deepEqual(await all(), ["true", "true", "true"]);
}));

test("runs are hidden and shown with their mean", () => visit({ figures: [{ id: "sweep", title: "Sweep", kind: "line", series: [
  { name: "first", x: [1, 2], y: [1, 2] }, { name: "first, runs", x: [1, 1], y: [0, 2], style: "points", companion: true },
  { name: "second", x: [1, 2], y: [3, 4] }] }] }, async (page) => {
  assert.deepEqual(await figure(page, "sweep").locator(".key").allTextContents(), ["first", "second"]);
  const drawings = () => figure(page, "sweep").locator(".canvas svg path").count();
  const all = await drawings();
  await key(page, "sweep", "first").click();
  await page.waitForFunction((before) => document.querySelectorAll("#figure-sweep .canvas svg path").length <= before - 5, all);
  await key(page, "sweep", "first").click();
  await page.waitForFunction((before) => document.querySelectorAll("#figure-sweep .canvas svg path").length === before, all);
  await key(page, "sweep", "second").dblclick();
  assert.deepEqual(await figure(page, "sweep").locator(".key").evaluateAll((keys) => keys.map((one) => one.getAttribute("aria-pressed"))),
    ["false", "true"]);
}));

test("an axis turns logarithmic and says what it cannot show", () => visit(sample, async (page) => {
  const button = figure(page, "growth").getByRole("button", { name: "log y" });
  const linear = await numbers(page, "growth");
  assert.ok(linear.includes("400"), linear.join(" "));
  assert.equal(await pressed(button), "false");
  await button.click();
  const log = await changed(page, "growth", linear);
  for (const label of ["1", "10", "100", "1,000"]) assert.ok(log.includes(label), log.join(" "));
  assert.equal(await pressed(button), "true");
  assert.match((await figure(page, "growth").locator(".omitted").textContent())!, /^1 value is not shown/);
  await button.click();
  assert.deepEqual(await changed(page, "growth", log), linear);
  assert.ok(await figure(page, "growth").locator(".omitted").isHidden());
}));

test("a horizontal axis turns logarithmic, too", () => visit(sample, async (page) => {
  const button = figure(page, "dense").getByRole("button", { name: "log x" });
  const linear = await numbers(page, "dense");
  assert.ok(!linear.includes("100"), linear.join(" "));
  await button.click();
  const log = await changed(page, "dense", linear);
  for (const label of ["100", "1,000"]) assert.ok(log.includes(label), log.join(" "));
  assert.match((await figure(page, "dense").locator(".omitted").textContent())!, /^1 value is not shown/);
  await button.click();
  assert.deepEqual(await changed(page, "dense", log), linear);
}));

test("a box zooms in, and the button or a double click resets", () => visit(sample, async (page) => {
  const whole = await numbers(page, "loss");
  const reset = figure(page, "loss").getByRole("button", { name: "Reset" });
  assert.ok(await reset.isHidden());
  await drag(page, "loss", [0.3, 0.3], [0.5, 0.7]);
  const part = await changed(page, "loss", whole);
  assert.ok(!part.includes("0"), part.join(" "));
  await reset.click();
  assert.deepEqual(await changed(page, "loss", part), whole);
  assert.ok(await reset.isHidden());
  await drag(page, "loss", [0.3, 0.3], [0.5, 0.7]);
  await changed(page, "loss", whole);
  await figure(page, "loss").locator(".canvas").dblclick();
  await reset.waitFor({ state: "hidden" });
}));

test("zooming ends at both ends, and never freezes", () => visit(sample, async (page) => {
  for (const id of ["loss", "spectrum", "dense"]) {
    const chart = figure(page, id).locator(".canvas");
    await chart.scrollIntoViewIfNeeded();
    const whole = await numbers(page, id);
    const box = (await chart.boundingBox())!;
    const turn = (delta: number) => chart.evaluate((element, [deltaY, clientX, clientY]) => {
      for (let i = 0; i < 150; ++i) {
        element.dispatchEvent(new WheelEvent("wheel", { deltaY, clientX, clientY, ctrlKey: true, bubbles: true, cancelable: true }));
      }
    }, [delta, box.x + 0.4 * box.width, box.y + 0.4 * box.height]);
    await turn(-60);
    const deep = await changed(page, id, whole);
    assert.ok(deep.length >= 4, `${id}: ${deep.join(" ")}`);
    await turn(60);
    assert.deepEqual(await changed(page, id, deep), whole);
    assert.ok(await figure(page, id).getByRole("button", { name: "Reset" }).isHidden());
  }
}));

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

/** The smallest contrast (WCAG 2.2) between the page's text and its background, and where it is. */
const faintest = (page: Page): Promise<{ ratio: number; where: string }> => page.evaluate(() => {
  const channels = (color: string) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = (color: number[]) => {
    const [r, g, b] = color.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let worst = { ratio: 21, where: "" };
  for (const element of document.querySelectorAll("h1, h2, h3, p, td, th button, a, .key, .tool, dt, dd, code, cite, summary, span, em, b, .canvas text")) {
    if (!element.textContent?.trim() || element.getClientRects().length === 0) continue;
    let behind: Element | null = element;
    while (behind && channels(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const style = getComputedStyle(element);
    const color = channels(element instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [luminance(color), luminance(channels(getComputedStyle(behind ?? document.body).backgroundColor))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst.ratio) worst = { ratio, where: `${element.tagName}.${element.getAttribute("class")}: ${element.textContent}` };
  }
  return worst;
});

test("dark mode follows the system, then the button, and is legible", () => visit(sample, async (page) => {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await paper();
  const button = page.getByRole("button", { name: "Dark mode" });
  assert.equal(await pressed(button), "true");
  let contrast = await faintest(page);
  assert.ok(contrast.ratio >= 4.5, `${contrast.ratio} at ${contrast.where}`);
  await button.click();
  assert.equal(await pressed(button), "false");
  assert.notEqual(await paper(), dark);
  contrast = await faintest(page);
  assert.ok(contrast.ratio >= 4.5, `${contrast.ratio} at ${contrast.where}`);
  await button.click();
  assert.equal(await paper(), dark);
}, { colorScheme: "dark" }));

test("the page follows the system's changes until a choice, which outlasts it", () => visit(sample, async (page) => {
  const button = page.getByRole("button", { name: "Dark mode" });
  const becomes = (expected: boolean) =>
    page.waitForFunction((wanted) => document.documentElement.classList.contains("dark") === wanted, expected);
  await becomes(true);
  await page.emulateMedia({ colorScheme: "light" });
  await becomes(false);
  assert.equal(await pressed(button), "false");
  await button.click();
  await page.reload();
  await becomes(true);
  assert.equal(await pressed(button), "true");
}, { colorScheme: "dark" }));

test("the keyboard reaches and works everything", () => visit(sample, async (page) => {
  const nameless = await page.locator("button, a, summary, [tabindex='0']").evaluateAll((elements) =>
    elements.filter((element) => !(element.getAttribute("aria-label") ?? element.textContent ?? "").trim()).map((element) => element.outerHTML));
  assert.deepEqual(nameless, []);
  const focused = () => page.evaluate(() => document.activeElement?.textContent);

  // The legend keeps the focus while its keys are redrawn.
  await key(page, "loss", "Post-LN").focus();
  await page.keyboard.press("Space");
  assert.equal(await pressed(key(page, "loss", "Post-LN")), "false");
  assert.equal(await focused(), "Post-LN");
  await page.keyboard.press("Enter");
  assert.equal(await pressed(key(page, "loss", "Post-LN")), "true");
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "Pre-LN");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.ok(await page.evaluate(() => document.activeElement!.matches("#figure-loss .stage")), "the chart comes after its legend");

  // The chart.
  const reset = figure(page, "loss").getByRole("button", { name: "Reset" });
  const whole = await numbers(page, "loss");
  await page.keyboard.press("+");
  await page.keyboard.press("+");
  const part = await changed(page, "loss", whole);
  assert.ok(await reset.isVisible());
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const right = await changed(page, "loss", part);
  await page.keyboard.press("Escape");
  assert.deepEqual(await changed(page, "loss", right), whole);
  assert.ok(await reset.isHidden());
  await page.keyboard.press("+");
  await reset.focus();
  await page.keyboard.press("Enter");
  await reset.waitFor({ state: "hidden" });
  assert.ok(await page.evaluate(() => document.activeElement!.matches("#figure-loss .stage")), "focus has somewhere to go");

  // The menu.
  const menu = figure(page, "loss").locator("details.menu");
  await menu.locator("summary").focus();
  await page.keyboard.press("Enter");
  assert.ok(await menu.evaluate((details: HTMLDetailsElement) => details.open));
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "Data (CSV)");
  await page.keyboard.press("Escape");
  assert.ok(!await menu.evaluate((details: HTMLDetailsElement) => details.open));
  assert.ok(await page.evaluate(() => document.activeElement!.matches("#figure-loss summary")));

  // The buttons.
  const pressedByKey = async (button: Locator): Promise<void> => {
    const before = await pressed(button);
    await button.focus();
    await page.keyboard.press("Enter");
    assert.notEqual(await pressed(button), before);
    await page.keyboard.press("Space");
    assert.equal(await pressed(button), before);
  };
  await pressedByKey(page.getByRole("button", { name: "Dark mode" }));
  await pressedByKey(figure(page, "growth").getByRole("button", { name: "log y" }));
  await pressedByKey(figure(page, "growth").getByRole("button", { name: "Show the data as a table" }));

  // The table.
  await page.locator("#table-runs th button").nth(1).focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#table-runs th").nth(1).getAttribute("aria-sort"), "descending");
}));

/** What axe-core finds against the rules of accessibility (WCAG 2.2 A and AA, and good practice). */
async function complaints(page: Page): Promise<string[]> {
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
  const rules = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
  await page.evaluate(readFileSync(rules, "utf8"));
  return page.evaluate(async () => {
    const found = await (globalThis as unknown as { axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe.run();
    return found.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`));
  });
}

for (const [how, options] of Object.entries({
  light: {}, dark: { colorScheme: "dark" as const }, phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
})) {
  test(`axe-core has nothing to say: ${how}`, () => visit(sample, async (page) => assert.deepEqual(await complaints(page), []), options));
}

const runs = {
  subject: "training runs",
  figures: [{
    id: "loss", title: "Loss", kind: "line", x: { label: "step" }, y: { label: "nats" }, other_x: [{ label: "target tokens" }],
    series: [{ name: "rate 0.1", x: [...Array(40).keys()], y: [...Array(40).keys()].map((i) => (i % 2) * 10),
      other_x: [[...Array(40).keys()].map((i) => (i === 39 ? null : 3000 + i))] }],
  }, {
    id: "sweep", title: "Sweep", kind: "line", x: { label: "rate", log: true }, y: { label: "nats" },
    series: [{ name: "no warm-up", style: "dashed", x: [0.001, 0.003], y: [3, 2], hollow: [1] }],
  }],
};

test("a figure turns to another axis, and is smoothed", () => visit(runs, async (page) => {
  assert.equal(await page.locator(".brand .kind").textContent(), "training runs");
  const steps = await numbers(page, "loss");
  assert.ok(steps.includes("30") && steps.includes("10"), steps.join(" "));
  await figure(page, "loss").getByRole("combobox", { name: "Horizontal axis" }).selectOption("by target tokens");
  const tokens = await changed(page, "loss", steps);
  assert.ok(tokens.includes("3,020") && !tokens.includes("30"), tokens.join(" "));
  assert.ok(await figure(page, "loss").locator(".omitted").isHidden());
  await figure(page, "loss").getByRole("slider").fill("0.95");
  const smooth = await changed(page, "loss", tokens);  // the mean of 0 and 10, apart from the start
  assert.ok(!smooth.includes("10") && smooth.includes("5"), smooth.join(" "));
  assert.equal(await figure(page, "sweep").getByRole("slider").count(), 0);
}));

test("a hollow marker, and rates as ticks", () => visit(runs, async (page) => {
  const fills = await figure(page, "sweep").locator(".canvas svg path").evaluateAll((paths) =>
    paths.filter((path) => (path.getAttribute("transform") ?? "").startsWith("matrix(")).map((path) => path.getAttribute("fill")));
  assert.ok(fills.includes("#ffffff") && fills.length === 2, fills.join(" "));
  assert.deepEqual((await numbers(page, "sweep")).filter((word) => word.startsWith("0.00")), ["0.0010", "0.0015", "0.0020", "0.0025", "0.0030"]);
}, { colorScheme: "light" }));

test("a finger reads numbers below the chart", () => visit(sample, async (page) => {
  const chart = figure(page, "loss").locator(".canvas");
  await chart.scrollIntoViewIfNeeded();
  await chart.tap();
  const tip = figure(page, "loss").locator(".readout .tip");
  await tip.waitFor();
  assert.match((await tip.textContent())!, /Pre-LN/);
  const [above, below] = [(await chart.boundingBox())!, (await tip.boundingBox())!];
  assert.ok(below.y >= above.y + above.height - 1);
}, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }));

const overflow = (page: Page): Promise<string[]> => page.evaluate(() => {
  if (document.documentElement.scrollWidth <= document.documentElement.clientWidth) return [];
  return [...document.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map((element) => `${element.tagName}.${element.getAttribute("class")}`);
});

test("the page fits a phone", () => visit(sample, async (page) => {
  assert.deepEqual(await overflow(page), []);
  const widths = await page.locator(".canvas svg").evaluateAll((charts) => charts.map((chart) => chart.getBoundingClientRect().right));
  assert.equal(widths.length, sample.figures.length);
  for (const right of widths) assert.ok(right <= 360);
  const sizes = await page.locator(".tool, .key").evaluateAll((tools) =>
    tools.map((tool) => tool.getBoundingClientRect()).filter((box) => box.width > 0).map((box) => Math.min(box.width, box.height)));
  for (const size of sizes) assert.ok(size >= 44, "large enough for a finger");
  await figure(page, "loss").locator("summary").tap();
  assert.deepEqual(await overflow(page), []);

  // A finger scrolls the page, unless it is to draw the box for zooming.
  const swipe = () => figure(page, "loss").locator(".canvas").evaluate((canvas) => {
    const box = canvas.getBoundingClientRect();
    const touch = (type: string, part: number) => canvas.dispatchEvent(new PointerEvent(type, { pointerType: "touch", bubbles: true,
      cancelable: true, clientX: box.left + part * box.width, clientY: box.top + part * box.height }));
    touch("pointerdown", 0.4);
    touch("pointermove", 0.5);
    touch("pointerup", 0.6);
  });
  const reset = figure(page, "loss").getByRole("button", { name: "Reset" });
  await swipe();
  assert.ok(await reset.isHidden());
  await figure(page, "loss").getByRole("button", { name: "Zoom by touch" }).tap();
  await swipe();
  await reset.waitFor();
}, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }));

test("paper shows every figure, the whole command and all settings", () => visit(sample, async (page) => {
  await page.evaluate(() => addEventListener("beforeprint", () => {
    const charts = [...document.querySelectorAll("figure .canvas svg")].map((chart) => chart.getBoundingClientRect());
    document.body.dataset.printed = JSON.stringify({
      charts: charts.filter((box) => box.width > 300 && box.height > 200).length,
      open: document.querySelector<HTMLDetailsElement>("details.settings")!.open,
      dark: document.documentElement.classList.contains("dark"),
    });
  }));
  const pdf = await page.pdf({ format: "Letter" });
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  assert.deepEqual(JSON.parse((await page.evaluate(() => document.body.dataset.printed))!),
    { charts: sample.figures.length, open: true, dark: false });
  assert.ok(!await page.locator("details.settings").evaluate((details: HTMLDetailsElement) => details.open), "as it was before");
  assert.ok(await page.evaluate(() => document.documentElement.classList.contains("dark")), "as it was before");

  // The same layout on the screen, at the width of the paper within its margins: overflow would be printed smaller.
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize({ width: 695, height: 900 });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.deepEqual(await overflow(page), []);
  const clipped = await page.locator("pre, .scroll").evaluateAll((elements) => elements.filter((element) => element.scrollWidth > element.clientWidth + 1).length);
  assert.equal(clipped, 0);
  for (const id of sample.figures.map((one) => one.id)) {
    assert.ok(await figure(page, id).locator(".canvas svg").isVisible());
    assert.ok(await figure(page, id).locator(".tools").isHidden());
  }
}, { colorScheme: "dark" }));
