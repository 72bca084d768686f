// Runs one suite of the page's tests, as ctest does: node run.mjs BUILD_DIRECTORY unit|browser [PLUMB_PROGRAM]
// Exits with 77 where the suite cannot run on this machine.
//
// unit (the test `page`), in Node.js: scales, formats, escapes, the limits of zooming. browser (`page_browser`): pages that
// `plumb report` wrote, in headless Chromium: legend, axes, zoom, downloads, sorting, dark mode, a phone's width, the
// keyboard, print, hostile text everywhere, and axe-core's rules of accessibility (MPL-2.0; for these tests only).
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { install } from "../packages.mjs";

const [build, suite, program] = [resolve(process.argv[2]), process.argv[3], process.argv[4]];
const here = dirname(fileURLToPath(import.meta.url));
const skip = (reason) => {
  console.error(`Skipped: ${reason}`);
  process.exit(77);
};

/** The first of these programs that is on the PATH. */
const find = (...names) =>
  (process.env.PATH ?? "").split(delimiter).flatMap((folder) => names.map((name) => join(folder, name))).find(existsSync);

const env = { ...process.env, PLUMB_PROGRAM: program };
const packages = [join(build, "report", "node_modules"), join(build, "page", "node_modules")];
if (suite === "browser") {
  env.PLUMB_CHROMIUM ??= find("chromium", "chromium-browser", "google-chrome");
  if (!env.PLUMB_CHROMIUM) skip("no Chromium (Debian: chromium) opens the report's page");
}
if (suite === "browser" || !existsSync(join(packages[0], "esbuild"))) {
  if (!install(join(build, "page"))) skip("npm could not fetch the packages that test the report's page");
}

// Node 18 reads no TypeScript: the tests are bundled, each with what it tests.
const root = packages.find((folder) => existsSync(join(folder, "esbuild")));
const esbuild = createRequire(join(root, "..", "package.json"))("esbuild");
const tests = readdirSync(join(here, suite)).filter((name) => name.endsWith(".test.ts"));
const bundles = join(build, "page", suite);
mkdirSync(bundles, { recursive: true });
await esbuild.build({
  entryPoints: tests.map((name) => join(here, suite, name)),
  outdir: bundles, outExtension: { ".js": ".mjs" }, bundle: true, platform: "node", format: "esm", target: "node18",
  nodePaths: packages, external: ["playwright-core", "axe-core"], sourcemap: "inline", logLevel: "warning",
});
const files = tests.map((name) => join(bundles, name.replace(/ts$/, "mjs")));
const run = spawnSync(process.execPath, ["--enable-source-maps", "--max-old-space-size=512", "--test", ...files], { env, stdio: "inherit" });
process.exit(run.status ?? 1);
