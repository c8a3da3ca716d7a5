// What the tests of the page share: a browser, a small server for pages that carry their data, and `schedlab view`.
import { chromium } from "playwright-core";
import { spawn, execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

export const WEB = resolve(import.meta.dirname, "../..");
const CHROMIUM = [
  process.env.CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
].find((path) => path && existsSync(path));

/** Nothing takes so long, on a machine that has much else to do either: in ms. */
export const PATIENCE = 180_000;

/** Why nothing here can run, or false. */
export const noBrowser = CHROMIUM ? false : "no chromium on this machine";

export async function browser() {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--font-render-hinting=none"],
  });
}

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'";
const TYPES = { js: "text/javascript", css: "text/css", svg: "image/svg+xml", html: "text/html; charset=utf-8" };

/** Serves the built page with bundles: `/NAME` is the page that carries `pages[NAME]`. */
export async function site(pages) {
  const index = readFileSync(join(WEB, "dist/index.html"), "utf8");
  const server = createServer((request, response) => {
    const name = new URL(request.url, "http://x").pathname.slice(1);
    response.setHeader("content-security-policy", POLICY);
    if (name in pages) {
      const data = JSON.stringify(pages[name]).replaceAll("<", "\\u003c");
      response.setHeader("content-type", TYPES.html);
      response.end(
        index.replace(
          '<script type="module"',
          () => `<script type="application/json" id="bundle">${data}</script><script type="module"`,
        ),
      );
      return;
    }
    const path = join(WEB, "dist", name);
    if (!/^[a-z]+\.[a-z]+$/.test(name) || !existsSync(path)) {
      response.statusCode = 404;
      response.end();
      return;
    }
    response.setHeader("content-type", TYPES[name.split(".")[1]]);
    response.end(readFileSync(path));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { address: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

/** Waits until the picture and the panel show everything. */
export async function settled(page) {
  await page.waitForFunction(
    () => {
      const { state, picture, panel } = document.body.dataset;
      return state === "failed" || (state === "ready" && picture === "complete" && panel !== "loading");
    },
    null,
    { timeout: PATIENCE },
  );
  // A click or a key answers in the next frames: two of them, then the state again.
  await page.evaluate(
    () => new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 60)),
  );
  await page.waitForFunction(
    () => document.body.dataset.picture !== "loading" && document.body.dataset.panel !== "loading",
    null,
    { timeout: PATIENCE },
  );
}

/** Opens an address; what the page reports as an error is kept in `page.errors`. */
export async function open(chrome, address, { width = 1280, height = 720, colorScheme = "light" } = {}) {
  const context = await chrome.newContext({ viewport: { width, height }, colorScheme, acceptDownloads: true });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.errors = [];
  page.on("pageerror", (error) => page.errors.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") page.errors.push(message.text());
  });
  page.on("dialog", (dialog) => {
    page.errors.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(address);
  await settled(page);
  return page;
}

export const data = (page, name) => page.evaluate((key) => document.body.dataset[key], name);

/** The visible window, in ns. */
export async function windowOf(page) {
  const [from, to] = (await data(page, "window")).split(/(?<=\d)-/).map(Number);
  return { from, to, span: to - from };
}

const BUILT = ["target/debug/schedlab", "target/release/schedlab", "build/wheel/scripts/schedlab"];

/** The command under test: $SCHEDLAB, or the first of these that was built. */
export function binary(built = BUILT) {
  const paths = [process.env.SCHEDLAB, ...built.map((path) => resolve(WEB, "..", path))];
  const found = paths.find((path) => path && existsSync(path));
  if (!found) return null;
  try {
    return execFileSync(found, ["view", "--help"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).includes(
      "--no-open",
    )
      ? found
      : null;
  } catch {
    return null;
  }
}

export function folder() {
  const path = mkdtempSync(join(tmpdir(), "schedlab-view-"));
  return { path, file: (name) => join(path, name), remove: () => rmSync(path, { recursive: true, force: true }) };
}

export function schedlab(command, ...args) {
  return execFileSync(command, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    maxBuffer: 64 * 1024 * 1024,
  });
}

/** Starts `schedlab view` and reads the address that it prints. */
export async function view(command, ...args) {
  const process_ = spawn(command, ["view", "--no-open", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const lines = [];
  const address = await new Promise((found, failed) => {
    const look = (line) => {
      lines.push(line);
      const match = /http:\/\/127\.0\.0\.1:\d+\/\S+/.exec(line);
      if (match) found(match[0]);
    };
    createInterface({ input: process_.stdout }).on("line", look);
    createInterface({ input: process_.stderr }).on("line", look);
    process_.on("exit", (code) => failed(new Error(`schedlab view ended with ${code}: ${lines.join("\n")}`)));
  });
  return {
    address,
    lines,
    pid: process_.pid,
    close: () =>
      new Promise((done) => {
        process_.removeAllListeners("exit");
        process_.on("exit", done);
        process_.kill("SIGINT");
      }),
  };
}

/** Two pictures are compared by the mean colours of blocks of so many pixels, ... */
const BLOCK = 10;
/** ... which may differ by so much in a channel, of 255. */
const NEAR = 30;

/** The share of blocks in which two pictures differ; 1 if their sizes do. */
export async function difference(chrome, a, b) {
  const page = await (await chrome.newContext()).newPage();
  const share = await page.evaluate(
    async ({ pictures, block, near }) => {
      const [one, two] = await Promise.all(
        pictures.map(async (data) => {
          const image = new Image();
          image.src = `data:image/png;base64,${data}`;
          await image.decode();
          const [columns, rows] = [Math.floor(image.width / block), Math.floor(image.height / block)];
          const full = new OffscreenCanvas(image.width, image.height);
          const pixels = full.getContext("2d");
          pixels.drawImage(image, 0, 0);
          const { data: from } = pixels.getImageData(0, 0, image.width, image.height);
          const means = new Float64Array(columns * rows * 3);
          for (let y = 0; y < rows * block; y++) {
            for (let x = 0; x < columns * block; x++) {
              const cell = (Math.floor(y / block) * columns + Math.floor(x / block)) * 3;
              for (let k = 0; k < 3; k++) means[cell + k] += from[(y * image.width + x) * 4 + k] / block ** 2;
            }
          }
          return { width: image.width, height: image.height, means };
        }),
      );
      if (one.width !== two.width || one.height !== two.height) return 1;
      let differ = 0;
      for (let i = 0; i < one.means.length; i += 3) {
        if ([0, 1, 2].some((k) => Math.abs(one.means[i + k] - two.means[i + k]) > near)) differ++;
      }
      return differ / (one.means.length / 3);
    },
    { pictures: [a.toString("base64"), b.toString("base64")], block: BLOCK, near: NEAR },
  );
  await page.context().close();
  return share;
}
