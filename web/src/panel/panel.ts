/** The panel at the side: tabs, and what the chosen one shows. */
import type { App } from "../app";
import { byId, debounce, h } from "../dom";
import { PANELS, type PanelName } from "../settings";
import { decision } from "./decision";
import { details } from "./details";
import { difference } from "./diff";
import { list } from "./lists";
import { failure, note } from "./parts";
import { selection } from "./selection";

const TITLES: Record<PanelName, string> = {
  details: "Details",
  selection: "Selection",
  waits: "Waits",
  violations: "Violations",
  decision: "Decision",
  diff: "A/B",
};

const SHOW: Record<PanelName, (app: App) => Promise<Node[]>> = {
  details,
  selection,
  waits: (app) => list(app, "waits"),
  violations: (app) => list(app, "violations"),
  decision,
  diff: difference,
};

export class Panel {
  private readonly element = byId("panel");
  private readonly body = byId("panel-body");
  private readonly tabs = new Map<PanelName, HTMLButtonElement>();
  private number = 0;
  private shown = "";
  private readonly later = debounce(20, () => void this.show());

  constructor(private readonly app: App) {
    const bar = byId("panel-tabs");
    for (const name of PANELS) {
      const tab = h(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${name}`,
          "aria-controls": "panel-body",
          class: "tab",
          onclick: () => app.openPanel(name),
        },
        TITLES[name],
      );
      this.tabs.set(name, tab);
      bar.append(tab);
    }
    bar.addEventListener("keydown", (event) => this.arrows(event));
  }

  /** Shows in a moment what the settings now say. */
  update(): void {
    document.body.dataset.panel = this.app.settings.panel ? "loading" : "none";
    this.number++;
    this.later();
  }

  private names(): PanelName[] {
    return PANELS.filter((name) => this.available(name));
  }

  private available(name: PanelName): boolean {
    if (name === "diff") return this.app.traces.length > 1;
    if (name === "decision") return this.app.traces.some(({ info }) => info.explainable);
    return true;
  }

  private arrows(event: KeyboardEvent): void {
    const move = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const names = this.names();
    const at = names.indexOf(this.app.settings.panel ?? "details");
    const next = names[(at + move + names.length) % names.length] as PanelName;
    this.app.openPanel(next);
    this.tabs.get(next)?.focus();
  }

  /** Whether the panel has changed the room for the lanes. */
  arrange(): boolean {
    const open = this.app.settings.panel !== null;
    const changed = this.element.hidden === open;
    this.element.hidden = !open;
    for (const [name, tab] of this.tabs) {
      tab.hidden = !this.available(name);
      const chosen = name === this.app.settings.panel;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    return changed;
  }

  /** Shows again what is open; what was asked for earlier and comes later is dropped. */
  private async show(): Promise<void> {
    const name = this.app.settings.panel;
    if (!name) return;
    const number = ++this.number;
    this.body.setAttribute("aria-labelledby", `tab-${name}`);
    const key = this.key(name);
    if (key !== this.shown && name !== this.shown.split("|")[0]) this.body.replaceChildren(note("Loading…"));
    let parts: Node[];
    try {
      parts = await SHOW[name](this.app);
    } catch (error) {
      parts = [failure(error)];
    }
    if (number !== this.number) return;
    this.shown = key;
    this.body.replaceChildren(...parts);
    document.body.dataset.panel = name;
  }

  private key(name: PanelName): string {
    return `${name}|${JSON.stringify(this.app.settings.pick)}|${JSON.stringify(this.app.settings.selection)}`;
  }
}
