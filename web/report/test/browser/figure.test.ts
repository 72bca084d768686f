// A reader works with a figure: its legend, its axes, its zoom.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { changed, close, figure, inMotion, key, numbers, pressed, sample, visit } from "./pages";

after(close);

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

async function drag(page: Page, id: string, from: [number, number], to: [number, number]): Promise<void> {
  const chart = figure(page, id).locator(".canvas");
  await chart.scrollIntoViewIfNeeded();
  const box = (await chart.boundingBox())!;
  await page.mouse.move(box.x + from[0] * box.width, box.y + from[1] * box.height);
  await page.mouse.down();
  await page.mouse.move(box.x + to[0] * box.width, box.y + to[1] * box.height, { steps: 4 });
  await page.mouse.up();
}

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
}, inMotion));

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
}, inMotion));

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
}, inMotion));

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
    paths.filter((path) => (path.getAttribute("transform") ?? "").startsWith("matrix("))
      .map((path) => path.getAttribute("fill")).filter((fill) => fill !== "none"));  // a name in two lines has such a path
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
