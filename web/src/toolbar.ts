/** The buttons at the top and their menus. */
import type { App } from "./app";
import { COUNTERS } from "./counters";
import { byId, h } from "./dom";
import { hasHeat } from "./heat";
import type { MarkKind } from "./source";
import type { Commands } from "./keys";

interface Item {
  label: string;
  hint?: string;
  on?: () => boolean;
  run: () => void;
}

const HEATS: [string, string][] = [
  ["", "none"],
  ["queue", "run-queue length"],
  ["load", "load"],
  ["considered", "CPUs that the scheduler looked at"],
  ["memory", "memory by node"],
];

const MARKS: [MarkKind, string][] = [
  ["violation", "Violations"],
  ["loss", "Lost events"],
  ["wake", "Wake-ups"],
  ["migrate", "Migrations"],
  ["interrupt", "Interrupts"],
];

export class Toolbar {
  private readonly menu = byId("menu");
  private opener: HTMLElement | null = null;

  constructor(
    private readonly app: App,
    commands: Commands,
  ) {
    const tools = byId("tools");
    const menu = (label: string, items: () => (Item | string)[]) => {
      const button: HTMLButtonElement = h(
        "button",
        {
          type: "button",
          class: "tool",
          "aria-haspopup": "menu",
          "aria-expanded": "false",
          onclick: () => this.toggle(button, items()),
        },
        label,
        h("span", { class: "chevron", "aria-hidden": "true" }),
      );
      tools.append(button);
    };
    menu("Show", () => this.show());
    menu("Marks", () => this.marks());
    menu("Save", () => [
      { label: "PNG picture", hint: "E", run: () => commands.exportAs("png") },
      { label: "SVG picture", hint: "Shift+E", run: () => commands.exportAs("svg") },
      { label: "Copy a link", hint: "C", run: () => commands.link() },
    ]);
    tools.append(
      h("button", {
        type: "button",
        class: "tool icon theme",
        "aria-label": "Dark or light",
        title: "Dark or light (T)",
        onclick: () => commands.switchTheme(),
      }),
      h(
        "button",
        {
          type: "button",
          class: "tool icon",
          "aria-label": "Keys and help",
          title: "Keys and help (?)",
          onclick: () => commands.help(),
        },
        "?",
      ),
      h("button", {
        type: "button",
        class: "tool icon panel-toggle",
        id: "panel-toggle",
        "aria-label": "Panel",
        title: "Panel (1 to 6)",
        onclick: () => app.openPanel(app.settings.panel ? null : "details"),
      }),
    );
    this.menu.addEventListener("keydown", (event) => this.keys(event));
    document.addEventListener("pointerdown", (event) => {
      if (
        !this.menu.hidden &&
        !this.menu.contains(event.target as Node) &&
        !this.opener?.contains(event.target as Node)
      )
        this.close();
    });
  }

  private show(): (Item | string)[] {
    const { app } = this;
    const { settings } = app;
    const flip = (run: () => void) => () => {
      run();
      app.rearrange();
    };
    return [
      "Lanes",
      { label: "CPUs", on: () => settings.shown.cpu, run: flip(() => (settings.shown.cpu = !settings.shown.cpu)) },
      { label: "Tasks", on: () => settings.shown.task, run: flip(() => (settings.shown.task = !settings.shown.task)) },
      {
        label: "Only tasks that ran or waited",
        on: () => settings.onlyActive,
        run: flip(() => (settings.onlyActive = !settings.onlyActive)),
      },
      {
        label: "CPUs in the colours of processes",
        on: () => settings.byTask,
        run: flip(() => (settings.byTask = !settings.byTask)),
      },
      ...(app.traces.length > 1
        ? [
            {
              label: "Differences between A and B",
              on: () => settings.differences,
              run: flip(() => (settings.differences = !settings.differences)),
            },
          ]
        : []),
      "Heat map",
      ...HEATS.filter(([name]) => !name || app.traces.some(({ info }) => hasHeat(info, name))).map(([name, label]) => ({
        label,
        on: () => settings.heat === name,
        run: flip(() => (settings.heat = name)),
      })),
      "Curves",
      ...COUNTERS.filter(({ name }) => name !== "frequency" || app.traces.some(({ info }) => info.frequency)).map(
        ({ name, title }) => ({
          label: title,
          on: () => settings.counters.has(name),
          run: flip(() => {
            if (!settings.counters.delete(name)) settings.counters.add(name);
          }),
        }),
      ),
    ];
  }

  private marks(): (Item | string)[] {
    const { settings } = this.app;
    return MARKS.map(([kind, label]) => ({
      label,
      on: () => settings.marks.has(kind),
      run: () => {
        if (!settings.marks.delete(kind)) settings.marks.add(kind);
        this.app.rearrange();
      },
    }));
  }

  private toggle(opener: HTMLElement, items: (Item | string)[]): void {
    if (!this.menu.hidden && this.opener === opener) {
      this.close();
      return;
    }
    this.close();
    this.opener = opener;
    opener.setAttribute("aria-expanded", "true");
    this.menu.setAttribute("role", "menu");
    this.menu.setAttribute("aria-label", opener.textContent ?? "");
    this.menu.replaceChildren(
      ...items.map((item) =>
        typeof item === "string" ? h("div", { class: "menu-title", role: "presentation" }, item) : this.item(item),
      ),
    );
    this.menu.hidden = false;
    const box = opener.getBoundingClientRect();
    this.menu.style.top = `${box.bottom + 4}px`;
    this.menu.style.left = `${Math.min(box.left, innerWidth - this.menu.offsetWidth - 8)}px`;
    this.menu.querySelector<HTMLElement>("button")?.focus();
  }

  private item(item: Item): HTMLElement {
    const checks = item.on !== undefined;
    const element: HTMLButtonElement = h(
      "button",
      {
        type: "button",
        role: checks ? "menuitemcheckbox" : "menuitem",
        class: "menu-item",
        ...(checks ? { "aria-checked": String(item.on?.()) } : {}),
        onclick: () => {
          item.run();
          if (!checks) this.close();
          else this.refresh();
        },
      },
      h("span", { class: "check", "aria-hidden": "true" }),
      h("span", {}, item.label),
      item.hint ? h("kbd", {}, item.hint) : null,
    );
    this.refreshers.set(element, item);
    return element;
  }

  private readonly refreshers = new Map<HTMLElement, Item>();

  private refresh(): void {
    for (const [element, item] of this.refreshers) if (item.on) element.setAttribute("aria-checked", String(item.on()));
  }

  private keys(event: KeyboardEvent): void {
    const items = [...this.menu.querySelectorAll<HTMLElement>("button")];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const move = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (move) items[(at + move + items.length) % items.length]?.focus();
    else if (event.key === "Tab") this.close();
    else if (event.key !== "Escape") return;
    if (event.key === "Escape") this.close();
    event.preventDefault();
    event.stopPropagation();
  }

  /** Whether a menu was open. */
  close(): boolean {
    if (this.menu.hidden) return false;
    this.menu.hidden = true;
    this.refreshers.clear();
    this.opener?.setAttribute("aria-expanded", "false");
    this.opener?.focus();
    this.opener = null;
    return true;
  }

  /** Which filters hold, each with a way to remove it. */
  filters(): void {
    const { app } = this;
    const box = byId("filters");
    const { filter } = app.settings;
    box.hidden = !filter;
    box.replaceChildren();
    if (!filter) return;
    box.append(
      "Only rows that match ",
      h("code", {}, filter),
      h(
        "button",
        {
          type: "button",
          class: "small",
          onclick: () => {
            app.settings.filter = "";
            app.rearrange();
          },
        },
        "Show all",
      ),
    );
  }
}
