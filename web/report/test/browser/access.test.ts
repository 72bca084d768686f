// The page for every reader: in the dark, by keyboard, on a phone, on paper.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { changed, close, figure, key, numbers, pressed, sample, visit } from "./pages";

after(close);

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
  const pdf = await page.pdf({ preferCSSPageSize: true });
  assert.match(pdf.toString("latin1"), /^%PDF-[^]*\/MediaBox \[0 0 59[45]/, "A4");
  assert.deepEqual(JSON.parse((await page.evaluate(() => document.body.dataset.printed))!),
    { charts: sample.figures.length, open: true, dark: false });
  assert.ok(!await page.locator("details.settings").evaluate((details: HTMLDetailsElement) => details.open), "as it was before");
  assert.ok(await page.evaluate(() => document.documentElement.classList.contains("dark")), "as it was before");

  // The same layout on the screen, at the width of the paper within its margins: overflow would be printed smaller.
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize({ width: 672, height: 1000 });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.deepEqual(await overflow(page), []);
  const clipped = await page.locator("pre, .scroll").evaluateAll((elements) => elements.filter((element) => element.scrollWidth > element.clientWidth + 1).length);
  assert.equal(clipped, 0);
  for (const id of sample.figures.map((one) => one.id)) {
    assert.ok(await figure(page, id).locator(".canvas svg").isVisible());
    assert.ok(await figure(page, id).locator(".tools").isHidden());
  }
}, { colorScheme: "dark" }));
