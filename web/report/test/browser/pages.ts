// Pages for the tests: made-up results as `plumb report` shows them, in a browser that records every error.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const PATIENCE = 60_000; // allows for a busy machine

const folder = mkdtempSync(join(tmpdir(), "plumb-page-"));
let browser: Browser | null = null;

export async function close(): Promise<void> {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
}

/** The report of these results, as `plumb report` writes it. */
export function rendered(results: object): string {
  writeFileSync(join(folder, "results.json"), JSON.stringify({ schema: "plumb.study/1", ...results }));
  execFileSync(process.env.PLUMB_PROGRAM!, ["report", folder], { stdio: ["ignore", "ignore", "inherit"] });
  return readFileSync(join(folder, "report.html"), "utf8");
}

/** Opens the report of these results, calls `visitor`, and fails if the browser reported errors meanwhile. Nothing moves
 *  slowly, unless the options ask for `inMotion`. */
export async function visit(results: object, visitor: (page: Page) => Promise<void>, options: BrowserContextOptions = {}): Promise<void> {
  rendered(results);
  await visitAddress(`file://${join(folder, "report.html")}`, visitor, options);
}

export const inMotion: BrowserContextOptions = { reducedMotion: "no-preference" };

/** The same for a report at an address; requests to other addresses count as errors. */
export async function visitAddress(address: string, visitor: (page: Page) => Promise<void>, options: BrowserContextOptions = {}): Promise<void> {
  browser ??= await chromium.launch({ executablePath: process.env.PLUMB_CHROMIUM, args: FLAGS, timeout: PATIENCE });
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url()) && request.url() !== address) complaints.push(`request: ${request.url()}`);
  });
  await page.goto(address);
  await page.waitForFunction(() =>
    document.querySelector("main") && [...document.querySelectorAll("figure:not([hidden]) .canvas")].every((canvas) => canvas.querySelector("svg, canvas")));
  await visitor(page);
  assert.deepEqual(complaints, []);
  await context.close();
}

export const figure = (page: Page, id: string): Locator => page.locator(`[id="figure-${id}"]`);
export const key = (page: Page, id: string, name: string): Locator => figure(page, id).locator(".key", { hasText: name });
export const pressed = (button: Locator): Promise<string | null> => button.getAttribute("aria-pressed");

/** The texts in a chart, including the numbers on its axes. */
export const words = (page: Page, id: string): Promise<string[]> =>
  figure(page, id).locator(".canvas svg text").evaluateAll((texts) => texts.map((text) => text.textContent ?? ""));

export const numbers = async (page: Page, id: string): Promise<string[]> =>
  (await words(page, id)).filter((word) => /^[\u2212\d]/.test(word));

/** Waits until the numbers on the axes differ from these. */
export async function changed(page: Page, id: string, before: string[]): Promise<string[]> {
  const selector = `[id="figure-${id}"] .canvas svg text`;
  await page.waitForFunction(([where, old]) =>
    [...document.querySelectorAll(where)].map((text) => text.textContent).filter((text) => /^[\u2212\d]/.test(text ?? "")).join("|") !== old,
  [selector, before.join("|")]);
  return numbers(page, id);
}

/** The name and the content of what an action downloads. */
export async function downloaded(page: Page, action: () => Promise<void>): Promise<{ name: string; bytes: Buffer }> {
  const [download] = await Promise.all([page.waitForEvent("download"), action()]);
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
}

const steps = [...Array(40).keys()].map((i) => 25 * i);

/** Results with a figure of each kind and tables short and long. Numbers are invented. */
export const sample = {
  title: "Warm-up and the place of the norm",
  subtitle: "A sample with invented numbers",
  created: "2026-03-14T09:26:53Z",
  plumb_version: "0.1.0",
  command: "plumb study layernorm --out out/layernorm " + "--set training.learning_rates=[1e-3,3e-3] ".repeat(6),
  summary: ["Pre-LN trains without warm-up.", "Post-LN does not."],
  settings: [{ group: "model", items: [["d_model", "128"], ["layers", "6"]] }],
  verdicts: [
    { id: "v1", claim: "Pre-LN needs no warm-up", source: "A paper", verdict: "supported", setting: "6+6 layers, d_model 128", quantity: "loss without warm-up − with", effect: { mean: 0.01, low: -0.02, high: 0.04, seeds: 5 }, rule: "supported if the 95% interval lies below 0.1", reason: "", evidence: "2.1 against 2.2.", figure: "loss" },
    { id: "v2", claim: "The bound is tight", source: "A paper", verdict: "contradicted", evidence: "It is 250 times too large.", figure: "growth" },
    { id: "v3", claim: "BLEU is higher", source: "A talk", verdict: "this setting cannot test it", effect: { mean: 1, low: null, high: null, seeds: 1 }, reason: "One seed.", evidence: "The intervals overlap.", figure: "bleu" },
  ],
  figures: [
    {
      id: "loss", title: "Validation loss", caption: "By step.", kind: "line", x: { label: "step" }, y: { label: "loss" },
      notes: ["All runs share their batches."],
      series: [
        { name: "Post-LN", group: "post-ln", x: steps, y: steps.map((x) => 1 + 8 * Math.exp(-x / 600)) },
        { name: "Pre-LN", group: "pre-ln", x: steps, y: steps.map((x) => 1 + 8 * Math.exp(-x / 200)),
          low: steps.map((x) => 0.9 + 8 * Math.exp(-x / 200)), high: steps.map((x) => 1.1 + 8 * Math.exp(-x / 200)) },
        { name: "ReZero", group: "rezero", x: steps, y: steps.map((x, i) => (i < 9 ? 9 + x / 200 : null)) },
      ],
    },
    {
      id: "growth", title: "Growth", kind: "scatter", x: { label: "depth" }, y: { label: "norm" },
      series: [{ name: "measured", group: "pre-ln", x: [0, 1, 2, 3, 4], y: [0, 1, 10, 100, 1000] }],
    },
    {
      id: "bleu", title: "BLEU", kind: "bar", x: { label: "scheme" }, y: { label: "BLEU" },
      series: [{ name: "BLEU", group: "", x: ["Post-LN", "Pre-LN", "ReZero"], y: [8.4, 34.1, 33.9], low: [8, 33, 33], high: [9, 35, 35] }],
    },
    {
      id: "spectrum", title: "Spectrum", kind: "density", x: { label: "eigenvalue" }, y: { label: "density", log: true },
      series: [{ name: "Post-LN", group: "post-ln", x: [-2, -1, 0, 1, 2], y: [1e-6, 0.01, 1, 0.02, 1e-5] }],
    },
    {
      id: "dense", title: "Many points", kind: "line", x: { label: "step" }, y: { label: "rate" },
      series: [{ name: "rate", group: "a", x: [...Array(1500).keys()], y: [...Array(1500).keys()].map((i) => Math.sin(i / 90) * 40) }],
    },
  ],
  tables: [
    { id: "runs", title: "Runs", caption: "A dash marks a run that diverged.", columns: ["scheme", "loss", "diverged"],
      rows: [["post-ln", null, true], ["pre-ln", 2.5, false], ["rezero", 2.25, false]] },
    { id: "long", title: "Every step", columns: ["step", "loss"], rows: [...Array(2345).keys()].map((i) => [i, 1 / (i + 1)]) },
  ],
};
