// The reports of other verbs, in a browser.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { binary, browser, folder, noBrowser, schedlab } from "./lib.mjs";

const command = noBrowser ? null : binary();
const skip = noBrowser || (command ? false : "no schedlab with the verb view has been built");
let chrome;
let files;

before(async () => {
  if (skip) return;
  files = folder();
  schedlab(command, "sim", "schbench", "-k", "linux-6.12", "-m", "4", "-d", "200ms", "-o", files.file("t.arrows"));
  schedlab(
    command,
    "whatif",
    files.file("t.arrows"),
    "-k",
    "linux-6.1",
    "--seeds",
    "2",
    "-o",
    files.file("report.html"),
  );
  chrome = await browser();
});

after(async () => {
  await chrome?.close();
  files?.remove();
});

for (const width of [390, 1280]) {
  test(`a report is no wider than a screen of ${width} pixels`, { skip }, async () => {
    const context = await chrome.newContext({ viewport: { width, height: 800 } });
    const page = await context.newPage();
    await page.goto(pathToFileURL(files.file("report.html")).href);
    assert.ok((await page.locator("svg").count()) > 0, "it has charts");
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    await context.close();
  });
}
