// How fast the page is: first picture, frames while panning and zooming, new tiles after a step, memory. On a machine that
// does other work too, CPU time says more than the clock: that of the server, and of the page's own process.
// node bench/page.mjs TRACE [TRACE2]: starts `schedlab view` on it. node bench/page.mjs http://...: measures a page
// that is served.
import { readFileSync } from "node:fs";
import { binary, browser, open, settled, view } from "../tests/browser/lib.mjs";

/** Nothing takes so long to be read, on a busy machine either: in ms. */
const PATIENCE_OF_READING = 600_000;
const given = process.argv.slice(2);
if (!given.length) {
  console.error("usage: node bench/page.mjs TRACE... | ADDRESS");
  process.exit(2);
}

const quantile = (values, q) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))];
const ms = (value) => `${value.toFixed(1)} ms`;

/** Holds a key for a time; the distances of frames, and what the page's own drawing took of each. */
async function hold(page, key, time) {
  await page.evaluate(() => {
    window.benchFrames = [];
    window.benchDraws = [];
    let last = 0;
    const step = (now) => {
      if (last) window.benchFrames.push(now - last);
      last = now;
      window.benchDraws.push(Number(document.body.dataset.frame));
      window.benchTimer = requestAnimationFrame(step);
    };
    window.benchTimer = requestAnimationFrame(step);
  });
  await page.keyboard.down(key);
  await page.waitForTimeout(time);
  await page.keyboard.up(key);
  const result = await page.evaluate(() => {
    cancelAnimationFrame(window.benchTimer);
    return { frames: window.benchFrames, draws: window.benchDraws };
  });
  await settled(page);
  return result;
}

function report(name, { frames, draws }) {
  const late = frames.filter((value) => value > 17.5).length;
  console.log(
    `${name.padEnd(22)} frame median ${ms(quantile(frames, 0.5))}, p95 ${ms(quantile(frames, 0.95))}, ` +
      `${late} of ${frames.length} late; ` +
      `drawing median ${ms(quantile(draws, 0.5))}, p95 ${ms(quantile(draws, 0.95))}, longest ${ms(Math.max(...draws))}`,
  );
}

/** The CPU time of a process so far, in ms. */
function cpuTime(pid) {
  if (!pid) return 0;
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** The processes that draw the page. */
async function renderers() {
  const { processInfo } = await system.send("SystemInfo.getProcessInfo");
  return processInfo.filter(({ type }) => type === "renderer").map(({ id }) => id);
}

async function spent() {
  return { server: cpuTime(served?.pid), page: (await renderers()).map(cpuTime).reduce((a, b) => a + b, 0) };
}

const since = (before, now) => `CPU time: server ${now.server - before.server} ms, page ${now.page - before.page} ms`;

/** Goes to another place and waits until everything is there. */
async function jump(page, from, to) {
  await page.evaluate(({ from: a, to: b }) => (location.hash = `t=${Math.round(a)}-${Math.round(b)}`), { from, to });
  await page.waitForTimeout(200);
  await settled(page);
}

/** Turns the wheel once: from the event until every new tile is drawn, and until marks and curves are there too. */
async function step(page, name, key, delta) {
  const before = await spent();
  await page.evaluate(() => {
    window.benchStep = new Promise((done) => {
      addEventListener(
        "wheel",
        () => {
          const [begin, was] = [performance.now(), document.body.dataset.window];
          let tiles = 0;
          const look = () => {
            const { window: now, tiles: all, picture } = document.body.dataset;
            const [moved, took] = [now !== was, performance.now() - begin];
            if (moved && all === "complete" && !tiles && took > 1) tiles = took;
            if (tiles && picture === "complete") done({ tiles, whole: took });
            else requestAnimationFrame(() => setTimeout(look));
          };
          requestAnimationFrame(() => setTimeout(look));
        },
        { capture: true, once: true },
      );
    });
  });
  await page.keyboard.down(key);
  await page.mouse.wheel(0, delta);
  await page.keyboard.up(key);
  const { tiles, whole } = await page.evaluate(() => window.benchStep);
  await settled(page);
  const label = `  ${name}`.padEnd(22);
  console.log(
    `${label} ${ms(tiles)} until the new tiles, ${ms(whole)} until the rest; ${since(before, await spent())}`,
  );
}

// What is measured is a release build.
const built = binary(["build/wheel/scripts/schedlab", "target/release/schedlab"]);
const elsewhere = /^http:/.test(given[0]);
if (!built && !elsewhere) {
  console.error("no release build was found: run `make build`, or give its path as SCHEDLAB");
  process.exit(2);
}
const served = elsewhere ? null : await view(built, ...given);
const started = performance.now();
const atAddress = cpuTime(served?.pid);
const chrome = await browser();
const system = await chrome.newBrowserCDPSession();
const page = await open(chrome, served?.address ?? given[0], { width: 1920, height: 1080 });
const first = await page.evaluate(() => document.body.dataset.firstPicture);
const whole = Math.round(performance.now() - started);
console.log(
  `first picture          ${first} ms after the page was asked for (${whole} ms with the start of the browser)`,
);
{
  const now = await spent();
  console.log(
    `  CPU time             server ${atAddress} ms until it printed the address, ${now.server} ms until now; page ${now.page} ms`,
  );
}
await page.waitForFunction(() => document.body.dataset.reading === "false", null, { timeout: PATIENCE_OF_READING });
console.log(`whole trace read       server ${cpuTime(served?.pid)} ms of CPU time`);
await page.waitForFunction(() => document.body.dataset.checked === "true", null, { timeout: PATIENCE_OF_READING });
console.log(`violations known       server ${cpuTime(served?.pid)} ms of CPU time`);
await settled(page);
const end = Number((await page.evaluate(() => document.body.dataset.window)).split("-").at(-1));
await page.mouse.move(900, 700);
for (const [name, share] of [
  ["half of the trace", 0.5],
  ["a tenth", 0.1],
  ["a thousandth", 0.001],
  ["a 100,000th", 0.00001],
]) {
  const span = Math.max(1000, end * share);
  const begin = share < 0.5 ? end * 0.3 : 0;
  await jump(page, begin, begin + span);
  console.log(name);
  // A turn by 630 is a factor of 4, one of 800 half the width of the lanes.
  for (let i = 0; i < 2; i++) await step(page, "pan by half", "Shift", 800);
  for (let i = 0; i < 2; i++) await step(page, "zoom in by 4", "Control", -630);
  for (let i = 0; i < 2; i++) await step(page, "zoom out by 4", "Control", 630);
  report(`panning, ${name}`, await hold(page, "d", 1500));
}
await jump(page, end * 0.3, end * 0.4);
report("zooming in", await hold(page, "w", 1500));
report("zooming out", await hold(page, "s", 1500));
const session = await page.context().newCDPSession(page);
await session.send("HeapProfiler.collectGarbage");
const heap = (await page.evaluate(() => performance.memory?.usedJSHeapSize)) ?? 0;
console.log(`JavaScript heap        ${(heap / 1e6).toFixed(1)} MB`);
const memory = (pid, name) =>
  (Number(new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024).toFixed(
    0,
  );
for (const id of await renderers())
  console.log(`renderer               ${memory(id, "RssAnon")} MB of anonymous memory`);
if (served) console.log(`server                 ${memory(served.pid, "VmHWM")} MB at most`);
await chrome.close();
await served?.close();
