/** Starts the page. */
import { bundled } from "./bundled";
import { byId, h } from "./dom";
import { Http, NotYet } from "./http";
import { Page } from "./page";
import type { Source, Traces } from "./source";

/** The traces, as soon as they have been read. */
async function traces(source: Source): Promise<Traces> {
  for (;;) {
    try {
      return await source.traces();
    } catch (error) {
      if (!(error instanceof NotYet)) throw error;
      byId("panes").replaceChildren(h("p", { class: "nothing" }, error.message));
      await new Promise((done) => setTimeout(done, 200));
    }
  }
}

async function start(): Promise<void> {
  const source = bundled() ?? new Http();
  document.body.dataset.state = "loading";
  try {
    const page = new Page(source, await traces(source));
    await page.start();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    byId("panes").replaceChildren(
      h("div", { class: "nothing", role: "alert" }, h("h2", {}, "This trace cannot be shown"), h("p", {}, message)),
    );
    document.body.dataset.state = "failed";
  }
}

void start();
