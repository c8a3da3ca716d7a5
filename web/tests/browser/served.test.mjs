// The page on `schedlab view`: what needs the server.
import assert from "node:assert/strict";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { join } from "node:path";
import {
  PATIENCE,
  binary,
  browser,
  data,
  difference,
  folder,
  noBrowser,
  open,
  schedlab,
  settled,
  view,
  WEB,
  windowOf,
} from "./lib.mjs";

const command = noBrowser ? null : binary();
const skip = noBrowser || (command ? false : "no schedlab with the verb view has been built");
const HOSTILE = "<script>alert(1)</script>";
let chrome;
let files;
const open_ = [];

before(async () => {
  if (skip) return;
  files = folder();
  const sim = (name, ...args) => schedlab(command, "sim", ...args, "-o", files.file(name));
  const bug = ["-k", "linux-4.1", "-m", "bulldozer-64", "-w", "make-r", "-d", "1s"];
  sim("bug.arrows", ...bug);
  sim("fix.arrows", ...bug, "--set", "fix.group_imbalance=on");
  const tasks = { [HOSTILE]: { loop: -1, run: 3000, sleep: 1000 }, hog: { loop: -1, run: 1000000 } };
  writeFileSync(files.file("hostile.json"), JSON.stringify({ tasks }));
  sim("hostile.arrows", "-k", "linux-6.12", "-m", "up", "-w", files.file("hostile.json"), "-d", "100ms");
  sim("whole.arrows", "-k", "linux-6.12", "-m", "quad-smt", "-w", "messaging", "-d", "300ms");
  chrome = await browser();
});

after(async () => {
  await chrome?.close();
  await Promise.all(open_.map((server) => server.close()));
  files?.remove();
});

async function serve(...args) {
  const server = await view(command, ...args);
  open_.push(server);
  return server.address;
}

/** Opens a page, runs the test, and holds that the page reported no error. */
async function on(address, hash, run) {
  const page = await open(chrome, `${address}${hash ? `#${hash}` : ""}`);
  try {
    await run(page);
    assert.deepEqual(page.errors, []);
  } finally {
    await page.context().close();
  }
}

const checked = (page) =>
  page.waitForFunction(() => document.body.dataset.checked === "true", null, { timeout: PATIENCE });

test("the bug of wc-01 is found from the list of violations", { skip }, async () => {
  await on(await serve(files.file("bug.arrows")), "panel=violations", async (page) => {
    await page.waitForSelector(".jump", { timeout: PATIENCE });
    await page.click(".jump >> nth=0");
    await settled(page);
    assert.match(await data(page, "pick"), /^0\.(task|cpu)\.\d+\.\d+$/);
    assert.equal(await data(page, "panel"), "details");
    const { from, to } = await windowOf(page);
    assert.ok(to > from);
    const expected = JSON.parse(schedlabJson("check", files.file("bug.arrows"), "--json"));
    await page.keyboard.press("4");
    await settled(page);
    assert.equal(await page.locator(".jump").count(), Math.min(200, expected.violations.length));
  });
});

test("the picture in the manual is what one sees", { skip }, async () => {
  await on(await serve(files.file("bug.arrows")), "panel=violations", async (page) => {
    await page.waitForSelector(".jump", { timeout: PATIENCE });
    await page.click(".jump >> nth=0");
    await page.mouse.move(640, 4);
    await settled(page);
    const now = await page.screenshot();
    const path = join(WEB, "../docs/img/view.png");
    if (process.env.SCHEDLAB_WRITE_PICTURES) writeFileSync(path, now);
    const share = await difference(chrome, now, readFileSync(path));
    assert.ok(
      share < 0.05,
      `${(share * 100).toFixed(1)}% of docs/img/view.png differs: SCHEDLAB_WRITE_PICTURES=1 writes it`,
    );
  });
});

/** `check` ends with 1 where it finds something. */
function schedlabJson(...args) {
  try {
    return schedlab(command, ...args);
  } catch (error) {
    if (error.status === 1) return error.stdout;
    throw error;
  }
}

test("a selection has the numbers of stats --from --to", { skip }, async () => {
  const [from, to] = [100_000_000, 150_000_000];
  const address = await serve(files.file("whole.arrows"));
  const { total } = JSON.parse(
    schedlab(command, "stats", files.file("whole.arrows"), "--json", "--from", `${from}ns`, "--to", `${to}ns`),
  );
  await on(address, `select=${from}-${to}&panel=selection`, async (page) => {
    const shown = page.locator(".figures");
    assert.equal(Number(await shown.getAttribute("data-run-us")), total.run_us);
    assert.equal(Number(await shown.getAttribute("data-wait-us")), total.wait_us);
    assert.match(await page.textContent("#panel-body"), /Ran while others waited/);
    assert.ok((await page.locator(".wakers .arc").count()) > 0, "who wakes whom");
  });
});

test("a task that was not woken in the selection has no latency", { skip }, async () => {
  schedlab(command, "sim", "li:tasks=2", "-k", "linux-6.12", "-d", "100ms", "-o", files.file("hogs.arrows"));
  await on(await serve(files.file("hogs.arrows")), "panel=selection&select=40000000-60000000", async (page) => {
    const cells = page.locator("[aria-label='Tasks that waited longest'] td:last-child");
    assert.deepEqual(await cells.allTextContents(), ["-", "-"]);
  });
});

test("a curve is drawn in a window of nanoseconds too", { skip }, async () => {
  await on(await serve(files.file("hostile.arrows")), "t=50000000-50000050&show=cpu", async (page) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Shift+E")]);
    assert.match(readFileSync(await download.path(), "utf8"), /<polyline[^>]+stroke-width="1.25"/);
  });
});

test("a click on a wait says who ran there and who woke the task", { skip }, async () => {
  await on(await serve(files.file("whole.arrows")), "panel=waits", async (page) => {
    await page.click(".jump >> nth=0");
    await settled(page);
    const text = await page.textContent("#panel-body");
    assert.match(text, /This wait/);
    assert.match(text, /Meanwhile there ran/);
  });
});

test("a simulated trace says why it decided, decision by decision", { skip }, async () => {
  await on(await serve(files.file("hostile.arrows")), "pick=0.cpu.0.50000000&panel=decision", async (page) => {
    await page.waitForSelector(".rule", { timeout: PATIENCE });
    const first = await data(page, "pick");
    await page.keyboard.press(",");
    await page.waitForFunction((before_) => document.body.dataset.pick !== before_, first);
    await settled(page);
    assert.ok((await page.locator(".queue").count()) > 0);
    assert.ok((await page.textContent(".rule")).length > 10);
    assert.equal(await page.locator("#panel-body script").count(), 0);
  });
});

test("two traces: the figures of diff stand beside them", { skip }, async () => {
  const [a, b] = [files.file("bug.arrows"), files.file("fix.arrows")];
  const document_ = JSON.parse(schedlab(command, "diff", a, b, "--json"));
  const names = Object.keys(document_.rows.find(({ name }) => name === "all tasks").figures);
  await on(await serve(a, b), "panel=diff", async (page) => {
    await page.waitForSelector("#panel-body table", { timeout: PATIENCE });
    assert.equal(await page.locator("#panel-body table >> nth=0 >> tbody tr").count(), names.length);
    assert.equal(await page.locator(".pane").count(), 2);
  });
});

test("a task named <script> is text", { skip }, async () => {
  await on(await serve(files.file("hostile.arrows")), "", async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("script");
    await page.waitForFunction(() => Number(document.body.dataset.hits) > 0);
    await page.keyboard.press("Enter");
    await settled(page);
    assert.match(await page.textContent("#panel-body h2"), /<script>alert\(1\)<\/script>/);
  });
});

test("a trace that grows grows on the screen", { skip }, async () => {
  const whole = readFileSync(files.file("whole.arrows"));
  const growing = files.file("growing.arrows");
  writeFileSync(growing, whole.subarray(0, Math.floor(whole.length / 2)));
  await on(await serve(growing, "--follow"), "", async (page) => {
    const before_ = (await windowOf(page)).to;
    appendFileSync(growing, whole.subarray(Math.floor(whole.length / 2)));
    await page.waitForFunction((end) => Number(document.body.dataset.end) > end, before_, { timeout: PATIENCE });
    await settled(page);
    assert.ok((await windowOf(page)).to > before_, "the window follows the end");
  });
});

test("a trace that was cut says so", { skip }, async () => {
  const whole = readFileSync(files.file("whole.arrows"));
  // In the second of its two batches.
  writeFileSync(files.file("cut.arrows"), whole.subarray(0, Math.floor(whole.length * 0.9)));
  await on(await serve(files.file("cut.arrows")), "", async (page) => {
    assert.ok((await page.locator(".remark").count()) > 0, "a remark");
    assert.ok(Number(await data(page, "rows")) > 5);
  });
});

test("a page from elsewhere gets nothing", { skip }, async () => {
  const address = await serve(files.file("hostile.arrows"));
  const other = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>elsewhere</title>");
  });
  await new Promise((done) => other.listen(0, "127.0.0.1", done));
  const page = await (await chrome.newContext()).newPage();
  await page.goto(`http://127.0.0.1:${other.address().port}/`);
  const got = await page.evaluate(async (target) => {
    const read = async (url, init) => {
      try {
        return (await (await fetch(url, init)).text()).length;
      } catch {
        return 0;
      }
    };
    return [
      await read(`${target}api/traces`),
      await read(`${target}api/traces`, { mode: "no-cors" }),
      await read(new URL("/", target).href),
    ];
  }, address);
  assert.deepEqual(got, [0, 0, 0]);
  const framed = await page.evaluate(
    (target) =>
      new Promise((done) => {
        const frame = document.createElement("iframe");
        frame.onload = () =>
          done(
            frame.contentDocument === null || frame.contentDocument.title === ""
              ? "refused"
              : frame.contentDocument.title,
          );
        frame.src = target;
        document.body.append(frame);
      }),
    address,
  );
  assert.equal(framed, "refused");
  await page.context().close();
  other.close();
});

test("violations that are computed later come to the page", { skip }, async () => {
  await on(await serve(files.file("bug.arrows")), "", async (page) => {
    const late = await page.evaluate(() => document.body.dataset.checked);
    if (late !== "true") await checked(page);
    await page.keyboard.press("n");
    await page.waitForFunction(() => document.body.dataset.pick !== "");
  });
});

test("one file carries the page and the trace", { skip }, async () => {
  const file = files.file("view.html");
  schedlab(command, "view", files.file("bug.arrows"), "--from", "0ms", "--to", "300ms", "-o", file);
  await on(`file://${file}`, "panel=waits", async (page) => {
    assert.ok(Number(await data(page, "rows")) > 64);
    await page.click(".jump >> nth=0");
    await settled(page);
    assert.match(await page.textContent("#panel-body"), /This wait/);
    await page.keyboard.press("5");
    await settled(page);
    assert.match(await page.textContent("#panel-body"), /without its server|No decisions/);
  });
});
