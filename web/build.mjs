// Builds the page into dist/, prints what it weighs, and fails over the limit. `--unit` bundles the unit tests instead.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 500 * 1024;
const common = { bundle: true, format: "esm", target: "es2022", logLevel: "warning", legalComments: "none" };

async function page() {
  rmSync("dist", { recursive: true, force: true });
  mkdirSync("dist");
  await build({ ...common, entryPoints: ["src/main.ts"], outfile: "dist/app.js", minify: true, charset: "utf8" });
  await build({ ...common, entryPoints: ["src/style.css"], outfile: "dist/app.css", minify: true });
  for (const name of ["index.html", "icon.svg"]) copyFileSync(`src/${name}`, `dist/${name}`);
  let total = 0;
  for (const name of readdirSync("dist").sort()) {
    const bytes = readFileSync(`dist/${name}`);
    const packed = gzipSync(bytes, { level: 9 }).length;
    total += packed;
    console.log(
      `${name.padEnd(12)} ${String(bytes.length).padStart(8)} bytes, ${String(packed).padStart(7)} compressed`,
    );
  }
  console.log(`${"all".padEnd(12)} ${String(total).padStart(24)} compressed (the limit is ${LIMIT})`);
  // The script is also put into one self-contained page, inside a script element.
  if (readFileSync("dist/app.js", "utf8").includes("</script")) throw new Error("app.js contains </script");
  if (total > LIMIT) throw new Error(`the page weighs ${total} bytes compressed; the limit is ${LIMIT}`);
}

async function unit() {
  rmSync("build/unit", { recursive: true, force: true });
  const entryPoints = readdirSync("tests/unit")
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `tests/unit/${name}`);
  await build({ ...common, entryPoints: ["tests/synthetic.ts"], outfile: "build/synthetic.mjs", platform: "node" });
  await build({ ...common, entryPoints, outdir: "build/unit", platform: "node", outExtension: { ".js": ".mjs" } });
}

await (process.argv.includes("--unit") ? unit() : page());
