// Bundles the page into one self-contained HTML template, dist/report.html.
// The template holds @PLUMB_TITLE@ and @PLUMB_RESULTS@ where the title and the results go.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const read = (...path) => readFileSync(join(here, ...path), "utf8");

async function bundle(entry) {
  const built = await esbuild.build({
    entryPoints: [join(here, entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2020",
    charset: "utf8",
    legalComments: "none", // the full licenses are at the end of the page
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "warning",
  });
  return built.outputFiles[0].text.trim();
}

const licenses = () =>
  ["echarts/NOTICE", "echarts/LICENSE", "zrender/LICENSE", "tslib/LICENSE.txt"]
    .map((file) => `${file}\n\n${read("node_modules", ...file.split("/")).trim()}`)
    .join("\n\n----------------------------------------\n\n");

/** Code inside <script> or <style> must not close it. */
const sealed = (code) => code.replace(/<\/(script|style)/gi, "<\\/$1").replace(/<!--/g, "<\\!--");

const fill = (template, name, text) => template.split(`@PLUMB_${name}@`).join(text);

let page = read("src", "page.html");
page = fill(page, "STYLE", sealed(await bundle("src/style.css")));
const script = sealed(await bundle("src/main.ts"));
page = fill(page, "SCRIPT", script);
page = fill(page, "SCRIPT_HASH", createHash("sha256").update(script).digest("base64"));
page = fill(page, "LICENCES", sealed(licenses()));
mkdirSync(join(here, "dist"), { recursive: true });
writeFileSync(join(here, "dist", "report.html"), page);
