/** The search field: finds rows by name, id, cgroup or pattern, and goes there. */
import type { App } from "./app";
import { byId, debounce, h } from "./dom";
import type { By } from "./source";
import { matches } from "./rows";

const LIMIT = 30;

interface Hit {
  trace: number;
  by: By;
  id: number;
  label: string;
  hint: string;
}

export class Search {
  private readonly input = byId<HTMLInputElement>("search");
  private readonly list = byId("search-results");
  private hits: Hit[] = [];
  private active = -1;
  private number = 0;

  constructor(private readonly app: App) {
    const update = debounce(120, () => void this.find());
    this.input.addEventListener("input", update);
    this.input.addEventListener("focus", () => {
      if (this.input.value) void this.find();
    });
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => window.setTimeout(() => this.close(), 150));
  }

  focus(): void {
    this.input.focus();
    this.input.select();
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (this.hits.length) this.mark((this.active + step + this.hits.length) % this.hits.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      void this.enter(event.ctrlKey || event.metaKey);
    } else if (event.key === "Escape") {
      this.close();
      this.input.blur();
      document.querySelector<HTMLElement>(".lanes-canvas")?.focus();
    }
  }

  /** Goes to the marked hit; with Ctrl, shows only the rows that match. */
  private async enter(filter: boolean): Promise<void> {
    if (filter) {
      this.app.settings.filter = this.input.value.trim();
      this.app.rearrange();
      this.close();
      return;
    }
    if (!this.hits.length) await this.find();
    const hit = this.hits[Math.max(0, this.active)];
    if (hit) this.go(hit);
    else this.app.say("Nothing was found.");
  }

  private async find(): Promise<void> {
    const query = this.input.value.trim();
    const number = ++this.number;
    if (!query) {
      this.close();
      return;
    }
    const hits = (await Promise.all(this.app.traces.map((_, trace) => this.inTrace(trace, query))))
      .flat()
      .slice(0, LIMIT);
    if (number !== this.number) return;
    this.hits = hits;
    this.show(query);
  }

  private async inTrace(trace: number, query: string): Promise<Hit[]> {
    const letter = this.app.traces.length > 1 ? `${this.app.traces[trace]?.letter}: ` : "";
    const out: Hit[] = [];
    for (const by of ["cpu", "task"] as const) {
      for (const { row } of await this.rows(trace, by, query)) {
        const id = row[by];
        if (row.kind === "group" || id === undefined) continue;
        const hint = by === "cpu" ? "CPU" : `${row.tid ?? ""}${row.group ? ` in ${row.group}` : ""}`;
        out.push({ trace, by, id, label: `${letter}${row.name ?? row.label}`, hint });
      }
    }
    return out;
  }

  private async rows(trace: number, by: By, query: string) {
    const rows = this.app.traces[trace]?.rows[by] ?? [];
    if (!this.app.source.live)
      return rows
        .filter((row) => row.kind !== "group" && matches(row, query))
        .slice(0, LIMIT)
        .map((row) => ({ row }));
    try {
      const found = await this.app.source.find(trace, query, by, LIMIT);
      return found.rows.flatMap(({ row }) => (rows[row] ? [{ row: rows[row] }] : []));
    } catch (error) {
      this.app.say(error instanceof Error ? error.message : String(error));
      return [];
    }
  }

  private show(query: string): void {
    const options = this.hits.map((hit, i) =>
      h(
        "li",
        {
          role: "option",
          id: `hit-${i}`,
          "aria-selected": "false",
          onmousedown: (event) => {
            event.preventDefault();
            this.go(hit);
          },
        },
        h("span", { class: "hit-label" }, hit.label),
        h("span", { class: "hit-hint" }, hit.hint),
      ),
    );
    if (!options.length)
      options.push(
        h(
          "li",
          { class: "none", role: "option", "aria-selected": "false", "aria-disabled": "true" },
          `Nothing matches ${query}`,
        ),
      );
    this.list.replaceChildren(...options);
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    document.body.dataset.hits = String(this.hits.length);
    this.mark(this.hits.length ? 0 : -1);
  }

  private mark(index: number): void {
    this.active = index;
    this.list
      .querySelectorAll("[role=option]")
      .forEach((option, i) => option.setAttribute("aria-selected", String(i === index)));
    if (index >= 0) this.input.setAttribute("aria-activedescendant", `hit-${index}`);
    else this.input.removeAttribute("aria-activedescendant");
    this.list.children[index]?.scrollIntoView({ block: "nearest" });
  }

  private go(hit: Hit): void {
    this.close();
    this.input.blur();
    this.app.reveal(hit.trace, hit.by, hit.id);
    this.app.pick({
      trace: hit.trace,
      by: hit.by,
      id: hit.id,
      time: Math.round(Math.max(0, (this.app.axis.from + this.app.axis.to) / 2)),
    });
    document.querySelector<HTMLElement>(`.lanes-canvas[data-trace="${hit.trace}"]`)?.focus({ preventScroll: true });
  }

  close(): void {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}
