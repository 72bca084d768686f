// A served report, as by `plumb watch`: the user's settings survive a reload.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { close, numbers, rendered, sample, visitAddress } from "./pages";

after(close);

const button = (page: Page, id: string, name: string) =>
  page.locator(`[id="figure-${id}"] button`, { hasText: name }).first();

test("zoom, axes and hidden series outlive a reload with more series", async () => {
  let results: object = sample;
  const server = createServer((_, response) => {
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.end(rendered(results));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  try {
    await visitAddress(address, async (page) => {
      const whole = await numbers(page, "loss");
      await page.locator('[id="figure-loss"] .stage').focus();
      for (let i = 0; i < 3; ++i) await page.keyboard.press("+");
      const zoomed = await numbers(page, "loss");
      assert.notDeepEqual(zoomed, whole);
      await button(page, "growth", "log y").click();
      await button(page, "loss", "ReZero").click();
      const figures = sample.figures.map((figure) => figure.id !== "loss" ? figure : {
        ...figure, series: [{ name: "New", group: "new", x: [0, 2000], y: [9, 9.5] }, ...figure.series!],
      });
      results = { ...sample, figures };
      await page.reload();
      await page.waitForSelector('[id="figure-loss"] .canvas svg');
      assert.equal(await button(page, "loss", "New").count(), 1);
      assert.equal(await button(page, "loss", "ReZero").getAttribute("aria-pressed"), "false");
      assert.equal(await button(page, "loss", "New").getAttribute("aria-pressed"), "true");
      assert.equal(await button(page, "growth", "log y").getAttribute("aria-pressed"), "true");
      assert.deepEqual(await numbers(page, "loss"), zoomed);
    });
  } finally {
    server.close();
  }
});
