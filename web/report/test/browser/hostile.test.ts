// Text from results is shown as text, wherever it appears on the page.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { close, downloaded, visit } from "./pages";

after(close);

/** Text that runs code, opens elements, fills templates or breaks the layout unless it is treated as plain text. */
const hostile = (place: string): string =>
  `<img src=x onerror="document.body.dataset.ran='${place}'"></script><script>document.body.dataset.ran='${place}'</script>` +
  `{b|c}{value}%s\${1}@PLUMB_TITLE@&lt;b&gt;"'\`</title></svg>]]>-->${"w".repeat(120)} ${place}`;

const series = (name: string, more: object = {}) => ({ name: hostile(name), group: hostile(`${name} group`), x: [1, 2, 3], y: [1, 2, 3], ...more });
const figure = (id: string, kind: string, all: object[]) => ({
  id: hostile(id), title: hostile(`${id} title`), caption: hostile(`${id} caption`), kind, notes: [hostile(`${id} note`)],
  x: { label: hostile(`${id} x`) }, y: { label: hostile(`${id} y`) }, series: all,
});
const results = {
  title: hostile("title"), subtitle: hostile("subtitle"), command: hostile("command"), created: hostile("created"),
  plumb_version: hostile("version"), summary: [hostile("summary")],
  settings: [{ group: hostile("settings group"), items: [[hostile("setting"), hostile("value")]] }],
  verdicts: [{ id: hostile("verdict"), claim: hostile("claim"), source: hostile("source"), verdict: hostile("status"),
    evidence: hostile("evidence"), figure: hostile("line") }],
  figures: [
    figure("line", "line", [series("one"), series("two", { low: [0, 1, 2], high: [2, 3, 4] })]),
    figure("bars", "bar", [series("three", { x: [hostile("category"), hostile("other"), hostile("last")] })]),
    figure("dots", "scatter", [series("four")]),
    figure("kind", hostile("kind"), [series("five", { style: hostile("style") })]),
  ],
  tables: [{ id: hostile("table"), title: hostile("table title"), caption: hostile("table caption"), columns: [hostile("column"), "b"],
    rows: [[hostile("cell"), 1], [hostile("word"), hostile("number")]] }],
};

const shows = async (page: Page, selector: string, text: string): Promise<void> => {
  const texts = await page.locator(selector).allTextContents();
  assert.ok(texts.some((one) => one.includes(text)), `${selector} shows ${text}: ${texts.join("\n")}`);
};

async function nothingRan(page: Page): Promise<void> {
  assert.equal(await page.evaluate(() => document.body.dataset.ran), undefined);
  assert.equal(await page.locator("img, iframe, object, embed, b script, main script, .page style").count(), 0);
  assert.equal(await page.locator("script").count(), 3);
}

async function atWidth(page: Page): Promise<void> {
  const wide = await page.evaluate(() => [...document.querySelectorAll("body *")]
    .filter((element) => element.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !element.closest(".scroll, pre, svg, .contents"))
    .map((element) => `${element.tagName}.${element.getAttribute("class")}`));
  assert.deepEqual([await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), wide], [0, []]);
}

test("hostile text is shown letter by letter", () => visit(results, async (page) => {
  assert.equal(await page.title(), hostile("title"));
  const places: [string, string[]][] = [
    ["h1", ["title"]], [".subtitle", ["subtitle"]], [".facts", ["created", "version"]], [".summary p", ["summary"]],
    [".command code", ["command"]], [".verdicts .claim", ["claim", "source"]], [".verdicts .evidence", ["evidence"]],
    [".settings", ["settings group", "setting", "value"]], ["figure h3", ["line title", "bars title"]],
    ["figcaption", ["line caption", "line note", "claim"]], [".key", ["one", "two", "four"]],
    [".card.table", ["table title", "table caption", "column", "cell", "word", "number"]],
    [".contents", ["line title", "table title"]],
  ];
  for (const [selector, names] of places) for (const name of names) await shows(page, selector, hostile(name));
  assert.deepEqual(await page.locator(".verdicts .pill").first().textContent(), "undecided");
  for (const chart of await page.locator(".canvas").all()) assert.ok((await chart.locator("svg text").count()) > 0);
  await nothingRan(page);
  await atWidth(page);
}));

test("hostile text stays text in tooltips and data tables", () => visit(results, async (page) => {
  for (const [index, name] of ["one", "category", "four"].entries()) {
    const chart = page.locator("figure").nth(index).locator(".canvas");
    await chart.scrollIntoViewIfNeeded();
    const box = (await chart.boundingBox())!;
    // A scatter's tooltip belongs to one point: move the pointer along the diagonal until it appears.
    for (let part = 0.12; part < 0.99 && (await chart.locator(".tip").count()) === 0; part += 0.005) {
      await page.mouse.move(box.x + box.width * (index === 2 ? part : 0.3), box.y + box.height * (index === 2 ? 0.925 - part * 0.913 : part));
    }
    await chart.locator(".tip").waitFor();
    await shows(page, `figure:nth-of-type(${index + 1}) .tip`, hostile(name));
    await page.locator("figure").nth(index).getByRole("button", { name: "Show the data as a table" }).click();
  }
  await shows(page, ".figure-data td", hostile("category"));
  await nothingRan(page);
  await atWidth(page);
}));

test("hostile text stays text in what is downloaded", () => visit(results, async (page) => {
  const card = page.locator("figure").first();
  for (const [item, ending] of [["Data (CSV)", "csv"], ["Data (JSON)", "json"], ["Image (SVG)", "svg"], ["Image (PNG)", "png"]]) {
    await card.locator("summary").click();
    const file = await downloaded(page, () => card.getByRole("button", { name: item }).click());
    assert.match(file.name, new RegExp(`^[\\w.-]{1,90}\\.${ending}$`));
    if (ending === "json") assert.equal(JSON.parse(file.bytes.toString()).series[0].name, hostile("one"));
    if (ending !== "svg") continue;
    const found = await page.evaluate((source) => {
      const picture = new DOMParser().parseFromString(source, "image/svg+xml");
      return { elements: [...new Set([...picture.querySelectorAll("*")].map((element) => element.localName))], text: picture.documentElement.textContent };
    }, file.bytes.toString());
    assert.ok(!found.elements.includes("parsererror"), found.text!);
    for (const element of ["script", "img", "foreignObject", "b"]) assert.ok(!found.elements.includes(element), element);
    assert.ok(found.text!.includes("<img src=x onerror="));
  }
  await nothingRan(page);
}));

test("hostile text does not widen a phone's page or a sheet of paper", async () => {
  await visit(results, atWidth, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
  await visit(results, async (page) => {
    assert.equal((await page.pdf({ format: "Letter" })).subarray(0, 5).toString(), "%PDF-");
    await nothingRan(page);
  });
});
