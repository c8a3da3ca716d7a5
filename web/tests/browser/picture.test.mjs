// The page's looks: pictures compared with those in pictures/, coarsely, so that another machine's fonts make no difference.
// SCHEDLAB_WRITE_PICTURES=1 writes them anew.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { bundleOf, make } from "../../build/synthetic.mjs";
import { browser, difference, noBrowser, open, site, WEB } from "./lib.mjs";

const FOLDER = join(WEB, "tests/browser/pictures");
/** So large a share of the blocks of a picture may differ. */
const SHARE = 0.03;

const VIEWS = {
  light: { name: "one", hash: "t=100000000-160000000&panel=violations", colorScheme: "light" },
  dark: { name: "one", hash: "t=100000000-160000000&show=task&heat=", colorScheme: "dark" },
  pair: { name: "two", hash: "heat=queue&counters=", colorScheme: "light" },
};

let chrome;
let served;

before(async () => {
  if (noBrowser) return;
  const one = () => make({ cpus: 8, tasks: 24, end: 5e8, seed: 5 });
  served = await site({
    one: bundleOf([one()]),
    two: bundleOf([one(), make({ cpus: 8, tasks: 24, end: 4e8, seed: 6 })]),
  });
  chrome = await browser();
});

after(async () => {
  await chrome?.close();
  served?.close();
});

async function picture({ name, hash, colorScheme }) {
  const page = await open(chrome, `${served.address}${name}#${hash}`, { width: 1000, height: 620, colorScheme });
  const png = await page.screenshot();
  await page.context().close();
  return png;
}

for (const [name, view] of Object.entries(VIEWS)) {
  test(`the page looks as it did: ${name}`, { skip: noBrowser }, async () => {
    const path = join(FOLDER, `${name}.png`);
    const now = await picture(view);
    if (process.env.SCHEDLAB_WRITE_PICTURES) {
      mkdirSync(FOLDER, { recursive: true });
      writeFileSync(path, now);
    }
    assert.ok(existsSync(path), `${path} is missing: SCHEDLAB_WRITE_PICTURES=1 writes it`);
    const share = await difference(chrome, now, readFileSync(path));
    assert.ok(share <= SHARE, `${(share * 100).toFixed(1)}% of the picture differs from ${path}`);
  });
}

test("another picture is found to differ", { skip: noBrowser }, async () => {
  const other = await picture({ ...VIEWS.light, hash: "t=300000000-330000000&panel=violations" });
  const share = await difference(chrome, other, readFileSync(join(FOLDER, "light.png")));
  assert.ok(share > SHARE * 2, `only ${(share * 100).toFixed(1)}% differ`);
});
