// Installs the page's packages, those for its tests included, in a folder outside of the source tree:
//   node packages.mjs FOLDER
// Done in an instant when the lock file has not changed since the last time. Exits with 77 if they cannot be fetched.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const files = ["package.json", "package-lock.json", ".npmrc"];
const AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"; // the system's; Node brings a list of its own

/** True if the packages are in FOLDER/node_modules afterwards. */
export function install(folder) {
  const stamp = join(folder, "packages.stamp");
  const wanted = files.map((file) => readFileSync(join(here, file), "utf8")).join("\n");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return true;
  mkdirSync(folder, { recursive: true });
  for (const file of files) copyFileSync(join(here, file), join(folder, file));
  const env = { ...process.env };
  if (!env.NODE_EXTRA_CA_CERTS && existsSync(AUTHORITIES)) env.NODE_EXTRA_CA_CERTS = AUTHORITIES;
  const flags = ["--include=dev", "--include=optional", "--ignore-scripts", "--prefer-offline", "--loglevel=error"];
  const npm = spawnSync("npm", ["ci", ...flags], { cwd: folder, env, stdio: ["ignore", "inherit", "inherit"], timeout: 300_000 });
  if (npm.status !== 0) return false;
  writeFileSync(stamp, wanted);
  return true;
}

if (resolve(process.argv[1] ?? "") === fileURLToPath(import.meta.url)) {
  if (!install(resolve(process.argv[2]))) {
    console.error("Skipped: npm could not fetch the packages that check the report's page");
    process.exit(77);
  }
}
