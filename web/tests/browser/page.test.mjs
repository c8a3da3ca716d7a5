// The page with a trace that it carries: everything that needs no server.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { createRequire } from "node:module";
import { bundleOf, make } from "../../build/synthetic.mjs";
import { browser, data, noBrowser, open, settled, site, windowOf } from "./lib.mjs";

const HOSTILE = "<script>alert(1)</script>";
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const END = 5e8;
const skip = noBrowser;
let chrome;
let served;

before(async () => {
  if (skip) return;
  const names = [`${HOSTILE}`, '"><img src=x onerror=alert(2)>', "&amp;\u202e\u0000x"];
  const one = () => make({ cpus: 8, tasks: 24, end: END, seed: 5, names });
  const b = make({ cpus: 8, tasks: 24, end: END * 0.8, seed: 6 });
  const empty = make({ cpus: 1, tasks: 0, end: 0, seed: 1 });
  Object.assign(empty, { spans: { cpu: [], task: [] }, steps: [], marks: {}, violations: [] });
  empty.info.remarks = ["The trace has no events."];
  const long = ["a_name_that_is_too_long_for_its_place_beside_the_lanes"];
  const partial = make({ cpus: 2, tasks: 4, end: END, seed: 7, names: long });
  Object.assign(partial.info, { tasks: 154, partial: "one process", remarks: ["one process; record without --only"] });
  // Nothing is known of its CPUs: 0 is that state, and the length of a queue that nobody knows is none.
  partial.spans.cpu.forEach((span) => (span.state = 0));
  partial.steps.forEach((step) => (step.length = 2 ** 32 - 1));
  Object.assign(partial.info, { losses: 0, lost_from: null });
  Object.assign(partial.marks, { loss: [] });
  const many = make({ cpus: 64, tasks: 3000, end: 5e7, seed: 8 });
  served = await site({
    one: bundleOf([one()]),
    two: bundleOf([one(), b]),
    empty: bundleOf([empty]),
    many: bundleOf([many]),
    partial: bundleOf([partial]),
  });
  chrome = await browser();
});

after(async () => {
  await chrome?.close();
  served?.close();
});

/** Opens a page, runs the test, and holds that the page reported no error. */
async function on(name, hash, run, options) {
  const page = await open(chrome, `${served.address}${name}${hash ? `#${hash}` : ""}`, options);
  try {
    await run(page);
    assert.deepEqual(page.errors, []);
  } finally {
    await page.context().close();
  }
}

const press = async (page, ...keys) => {
  for (const key of keys) await page.keyboard.press(key);
  await settled(page);
};

test("a trace opens, and says what it is", { skip }, () =>
  on("one", "", async (page) => {
    assert.match(await page.textContent("#names"), /made-up\.arrows/);
    assert.match(await page.title(), /made-up\.arrows/);
    assert.deepEqual(await windowOf(page), { from: 0, to: END, span: END });
    assert.ok(Number(await data(page, "rows")) > 30);
  }),
);

test("the tasks are counted that are shown, as in stats", { skip }, () =>
  on("partial", "", async (page) => {
    assert.match(await page.textContent("#panel-body dl"), /Tasks4(?!\d)/);
  }),
);

test("wheel and keys zoom and pan, and Z undoes", { skip }, () =>
  on("one", "", async (page) => {
    await page.mouse.move(700, 500);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -500);
    await page.keyboard.up("Control");
    await page.waitForFunction((end) => document.body.dataset.window !== `0-${end}`, END);
    await settled(page);
    const zoomed = await windowOf(page);
    assert.ok(zoomed.span < END * 0.5, `the wheel zooms in: ${zoomed.span}`);
    await press(page, "w");
    assert.ok((await windowOf(page)).span < zoomed.span);
    const before_ = await windowOf(page);
    await press(page, "d");
    assert.ok((await windowOf(page)).from > before_.from);
    await press(page, "z");
    assert.deepEqual(await windowOf(page), before_);
    await press(page, "0");
    assert.equal((await windowOf(page)).span, END);
  }),
);

test("from a few nanoseconds to the whole in one step", { skip }, () =>
  on("one", `t=${END / 2}-${END / 2 + 50}`, async (page) => {
    assert.equal((await windowOf(page)).span, 50);
    await press(page, "0");
    assert.equal((await windowOf(page)).span, END);
    await press(page, "z");
    assert.equal((await windowOf(page)).span, 50);
  }),
);

test("a drag selects, F zooms to it, Escape clears", { skip }, () =>
  on("one", "", async (page) => {
    await page.mouse.move(400, 400);
    await page.mouse.down();
    await page.mouse.move(500, 410, { steps: 3 });
    await page.mouse.up();
    await settled(page);
    const [from, to] = (await data(page, "selection")).split("-").map(Number);
    assert.ok(to > from);
    assert.equal(await data(page, "panel"), "selection");
    await press(page, "f");
    const { span } = await windowOf(page);
    assert.ok(span >= to - from && span < (to - from) * 1.2);
    await press(page, "Escape");
    assert.equal(await data(page, "selection"), "");
  }),
);

test("what is said of a place goes when the place moves", { skip }, () =>
  on("one", "", async (page) => {
    const said = page.locator("#tooltip");
    const point = async (y) => {
      await page.mouse.move(500, y);
      await said.waitFor({ state: "visible" });
    };
    await point(345);
    await press(page, "w");
    assert.ok(await said.isHidden(), "after zooming");
    await point(346);
    await press(page, "t");
    assert.ok(await said.isVisible(), "nothing has moved");
    await press(page, "PageDown");
    await said.waitFor({ state: "hidden" });
    await point(347);
    await press(page, "/");
    await page.keyboard.type("cc1");
    await press(page, "Control+Enter");
    assert.ok(await said.isHidden(), "after hiding rows");
  }),
);

test("the names of curves have their colours, in a saved picture too", { skip }, () =>
  on("one", "counters=latency", async (page) => {
    const names = page.locator(".counter-legend > *");
    assert.deepEqual(await names.allTextContents(), ["median", "p99"]);
    const colours = await names.evaluateAll((all) => all.map((one) => getComputedStyle(one).color));
    assert.notEqual(colours[0], colours[1]);
    const svg = await exported(page, "Shift+E");
    assert.match(svg, /<text[^>]+fill="#2569ad"[^>]*>median</);
    assert.match(svg, /<text[^>]+fill="#c65a11"[^>]*>p99</);
  }),
);

test("the length of a selection covers no time of the axis", { skip }, () =>
  on("one", "select=180000000-240000000", async (page) => {
    const times = [...(await exported(page, "Shift+E")).matchAll(/<text x="([\d.]+)"[^>]*>(\d+ ms|60.00 ms)</g)];
    const at = Object.fromEntries(times.map(([, x, text]) => [text, Number(x)]));
    const flag = at["60.00 ms"];
    assert.ok(flag && at["100 ms"] && at["300 ms"], JSON.stringify(at));
    for (const [text, x] of Object.entries(at)) {
      const apart = text === "60.00 ms" || x + 30 < flag - 30 || x > flag + 30;
      assert.ok(apart, `${text} at ${x}, the flag at ${flag}`);
    }
  }),
);

test("a heat map says what its numbers count", { skip }, () =>
  on("one", "", async (page) => {
    await page.mouse.move(500, 160);
    await page.waitForFunction(() =>
      /^CPU \d+[\d.]* tasks \(mean\)/.test(document.body.querySelector("#tooltip").textContent),
    );
    assert.match(await exported(page, "Shift+E"), />0 to \d+ tasks</);
  }),
);

test("a link to a heat map that the trace does not have says so", { skip }, () =>
  on("one", "heat=load", async (page) => {
    const text = await exported(page, "Shift+E");
    assert.match(text, />Load</);
    assert.match(text, />not in this trace</);
  }),
);

test("the list of violations jumps to its place", { skip }, () =>
  on("one", "panel=violations", async (page) => {
    await page.click(".jump >> nth=0");
    await settled(page);
    const { from, to } = await windowOf(page);
    assert.ok(from > 0 && from < END * 0.3 && to > END * 0.5 && to < END);
    assert.match(await data(page, "pick"), /^0\.cpu\.7\./);
    assert.equal(await data(page, "panel"), "details");
  }),
);

test("N goes to the violation by the keyboard", { skip }, () =>
  on("one", "", async (page) => {
    await press(page, "n");
    assert.match(await data(page, "pick"), /^0\.cpu\.7\./);
  }),
);

test("a wait shows who ran meanwhile and whether a CPU was idle", { skip }, () =>
  on("one", "panel=waits", async (page) => {
    await page.click(".jump >> nth=0");
    await settled(page);
    const text = await page.textContent("#panel-body");
    assert.match(text, /Meanwhile there ran/);
    assert.match(text, /another CPU was idle on which it may run|No other allowed CPU/);
    assert.ok((await page.locator("#panel-body table tbody tr").count()) > 0);
  }),
);

test("hostile names are text everywhere", { skip }, () =>
  on("one", "", async (page) => {
    await press(page, "/");
    await page.keyboard.type("script");
    await page.waitForFunction(() => document.body.dataset.hits === "1");
    assert.match(await page.textContent("#search-results"), /<script>alert\(1\)<\/script>/);
    await press(page, "Enter");
    assert.match(await data(page, "pick"), /^0\.task\.0\./);
    assert.match(await page.textContent("#panel-body h2"), /<script>alert\(1\)<\/script>/);
    await page.mouse.move(600, 560);
    for (const panel of ["3", "4", "2"]) await press(page, panel);
    assert.equal(await page.locator("#panel-body script, #panel-body img, #search-results img").count(), 0);
    const svg = await exported(page, "Shift+E");
    assert.ok(!svg.includes(HOSTILE) && !/<img/.test(svg));
    assert.equal(
      await page.evaluate(
        (text) =>
          new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror, script")?.textContent ??
          "",
        svg,
      ),
      "",
    );
  }),
);

async function exported(page, key) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press(key)]);
  const path = await download.path();
  return key === "e" ? readFileSync(path) : readFileSync(path, "utf8");
}

test("what is seen is saved as PNG and as SVG", { skip }, () =>
  on("one", "t=100000000-150000000&show=cpu", async (page) => {
    const png = await exported(page, "e");
    assert.deepEqual([...png.subarray(1, 4)], [...Buffer.from("PNG")]);
    assert.ok(png.readUInt32BE(16) > 1000, "twice the width of the page");
    const svg = await exported(page, "Shift+E");
    assert.match(svg, /^<svg xmlns/);
    assert.match(svg, />CPU 3</);
    assert.ok(svg.length > 10_000 && svg.length < 3_000_000, `${svg.length} bytes`);
  }),
);

test("what nobody knows is hatched, in red where events were lost", { skip }, async () => {
  const hatched = (svg) => new Set(svg.match(/url\(#hatch-\w+/g));
  await on("partial", "", async (page) => {
    const svg = await exported(page, "Shift+E");
    assert.deepEqual(hatched(svg), new Set(["url(#hatch-soft"]));
    assert.doesNotMatch(svg, /<polyline[^>]+stroke-width="1.25"/, "no curve of queues that are not known");
  });
  await on("one", "", async (page) => {
    assert.ok(hatched(await exported(page, "Shift+E")).has("url(#hatch-unknown"));
  });
});

test("a name in bold leaves room for the number beside it", { skip }, () =>
  on("partial", "pick=0.task.0.1000", async (page) => {
    const svg = await exported(page, "Shift+E");
    const [name, number] = await page.evaluate((text) => {
      const picture = document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
      document.body.append(picture);
      const texts = [...picture.querySelectorAll("text")];
      const at = texts.findIndex((one) => one.textContent.startsWith("a_name") && one.hasAttribute("font-weight"));
      return texts.slice(at, at + 2).map((one) => {
        const { x, width } = one.getBBox();
        return { text: one.textContent, from: x, to: x + width };
      });
    }, svg);
    assert.equal(number.text, "1000");
    assert.ok(name.to + 4 < number.from, JSON.stringify([name, number]));
  }),
);

test("a link shows the same again", { skip }, async () => {
  let address = "";
  const state = async (page) => ({
    window: await data(page, "window"),
    rows: await data(page, "rows"),
    pick: await data(page, "pick"),
    panel: await data(page, "panel"),
    theme: await page.evaluate(() => document.documentElement.dataset.theme),
    search: await page.textContent("#panel-body h2"),
  });
  let shown;
  await on("one", "", async (page) => {
    await press(page, "w", "w", "ArrowDown", "ArrowDown", "p", "t");
    await page.waitForFunction(
      () => /pin=/.test(document.body.dataset.address ?? "") && /theme=/.test(document.body.dataset.address ?? ""),
    );
    address = new URL(page.url()).hash.slice(1);
    shown = await state(page);
  });
  await on("one", address, async (page) => assert.deepEqual(await state(page), shown));
});

test("the browser's way back leads to the link before", { skip }, () =>
  on("one", "t=0-100000000", async (page) => {
    await page.waitForFunction(() => document.body.dataset.address === "t=0-100000000");
    await page.evaluate(() => (location.hash = "t=200000000-300000000"));
    await page.waitForFunction(() => document.body.dataset.window === "200000000-300000000");
    await page.goBack();
    await page.waitForFunction(() => document.body.dataset.window === "0-100000000");
  }),
);

test("the keyboard alone suffices", { skip }, () =>
  on("one", "", async (page) => {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.id), "search");
    const reached = new Set();
    for (let i = 0; i < 14; i++) {
      await page.keyboard.press("Tab");
      reached.add(
        await page.evaluate(() => document.activeElement.className.split(" ")[0] || document.activeElement.id),
      );
      const seen = await page.evaluate(() => {
        const style = getComputedStyle(document.activeElement);
        return document.activeElement === document.body || style.outlineStyle !== "none";
      });
      assert.ok(seen, "the focus is visible");
    }
    assert.ok(reached.has("tool") && reached.has("lanes-canvas") && reached.has("tab"), [...reached].join());
    for (let i = 0; i < 40 && !(await page.evaluate(() => document.activeElement.matches(".lanes-canvas"))); i++)
      await page.keyboard.press("Tab");
    await press(page, "ArrowDown", "ArrowDown");
    const pick = await data(page, "pick");
    assert.notEqual(pick, "");
    await press(page, "ArrowRight");
    assert.notEqual(await data(page, "pick"), pick);
    await press(page, "m");
    assert.ok(await data(page, "selection"));
    await press(page, "?");
    assert.ok(await page.locator("dialog[open]").isVisible());
    await press(page, "Escape");
    assert.equal(await page.locator("dialog[open]").count(), 0);
    const rows = await data(page, "rows");
    await press(page, "Space");
    assert.notEqual(await data(page, "rows"), rows);
  }),
);

test("search filters, and the filter can be taken back", { skip }, () =>
  on("one", "", async (page) => {
    const all = Number(await data(page, "rows"));
    await press(page, "/");
    await page.keyboard.type("cc1");
    await press(page, "Control+Enter");
    assert.ok(Number(await data(page, "rows")) < all);
    await page.click("#filters button");
    await settled(page);
    assert.equal(Number(await data(page, "rows")), all);
  }),
);

test("what is found shows its id beside a long name", { skip }, () =>
  on("partial", "", async (page) => {
    await press(page, "/");
    await page.keyboard.type("too_long");
    await page.waitForFunction(() => document.body.dataset.hits === "1");
    const hint = page.locator(".hit-hint");
    assert.match(await hint.textContent(), /^1000/);
    assert.ok(await hint.evaluate((one) => one.scrollWidth <= one.clientWidth), "the id is whole");
  }),
);

test("menus hide lanes, show marks and curves", { skip }, () =>
  on("one", "", async (page) => {
    const all = Number(await data(page, "rows"));
    await page.click("#tools >> text=Show");
    await page.click("[role=menuitemcheckbox] >> text=Tasks >> nth=0");
    await settled(page);
    assert.ok(Number(await data(page, "rows")) < all);
    await page.click("[role=menuitemcheckbox] >> text=Wake-up latency");
    await page.keyboard.press("Escape");
    await settled(page);
    assert.equal(await page.locator(".counter").count(), 2);
    await page.click("#tools >> text=Marks");
    await page.click("[role=menuitemcheckbox] >> text=Wake-ups");
    await page.waitForFunction(() => /marks=[a-z,]*wake/.test(document.body.dataset.address ?? ""));
  }),
);

test("two traces have one axis, and zoom together", { skip }, () =>
  on("two", "", async (page) => {
    assert.equal(await page.locator(".pane").count(), 2);
    await press(page, "w", "w");
    const { span } = await windowOf(page);
    assert.ok(span < END);
    assert.match(await page.textContent("#panes"), /B/);
    await press(page, "6");
    assert.match(await page.textContent("#panel-body"), /without its server/);
  }),
);

test("an empty trace says that it is empty", { skip }, () =>
  on("empty", "", async (page) => {
    assert.match(await page.textContent(".remarks"), /no events/);
  }),
);

test("a partial recording says so once", { skip }, () =>
  on("partial", "", async (page) => {
    assert.deepEqual(await page.locator(".remark").allTextContents(), ["One process; record without --only"]);
  }),
);

test("thousands of rows: only those that are seen are drawn", { skip }, () =>
  on("many", "", async (page) => {
    assert.ok(Number(await data(page, "rows")) > 3000);
    await page.mouse.move(600, 500);
    await page.mouse.wheel(0, 30_000);
    await page.waitForFunction(() => document.querySelector(".scroller").scrollTop > 20_000);
    await settled(page);
  }),
);

for (const [name, options] of [
  ["1280x720", { width: 1280, height: 720 }],
  ["4K", { width: 3840, height: 2160 }],
]) {
  test(`usable at ${name}: nothing is cut off, the lanes have room`, { skip }, () =>
    on(
      "two",
      "",
      async (page) => {
        const room = await page.evaluate(() => ({
          across: document.documentElement.scrollWidth - innerWidth,
          down: document.documentElement.scrollHeight - innerHeight,
          lanes: Math.min(...[...document.querySelectorAll(".scroller")].map((lane) => lane.clientHeight)),
          bar: [...document.querySelectorAll("#bar button, #search")].every(
            (element) => element.getBoundingClientRect().right <= innerWidth,
          ),
        }));
        assert.deepEqual([room.across, room.down, room.bar], [0, 0, true]);
        assert.ok(room.lanes >= 160, `${room.lanes} pixels for lanes`);
      },
      options,
    ),
  );
}

test("on a narrow screen the panel is below the lanes", { skip }, () =>
  on(
    "one",
    "",
    async (page) => {
      const room = await page.evaluate(() => {
        const of = (selector) => document.querySelector(selector).getBoundingClientRect();
        return {
          across: document.documentElement.scrollWidth - innerWidth,
          below: of("#panel").top - of("#panes").bottom,
          lanes: [of(".lanes-canvas").width, of(".scroller").height],
          search: of("#search").width,
          panel: of("#panel").height,
        };
      });
      assert.deepEqual([room.across, room.below, room.lanes[0]], [0, 0, 390]);
      assert.ok(room.lanes[1] >= 160 && room.panel >= 160 && room.search >= 160, JSON.stringify(room));
    },
    { width: 390, height: 800 },
  ),
);

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds nothing, ${colorScheme}`, { skip }, () =>
    on(
      "one",
      "panel=waits",
      async (page) => {
        for (const prepare of [[], ["2"], ["1"], ["?"]]) {
          await press(page, ...prepare);
          const found = await axe(page);
          assert.deepEqual(found, [], `after ${prepare.join() || "opening"}`);
        }
      },
      { colorScheme },
    ),
  );
}

/** Runs axe in the page, past its policy: as a debugger would. */
async function axe(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: readFileSync(AXE, "utf8") });
  const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
    expression: `axe.run(document).then(({ violations }) => JSON.stringify(violations.map(({ id, nodes }) =>
        id + ": " + nodes.map((node) => node.html + " " + node.failureSummary).join(" | ").slice(0, 600))))`,
    awaitPromise: true,
    returnByValue: true,
  });
  assert.equal(exceptionDetails, undefined);
  return JSON.parse(result.value);
}
