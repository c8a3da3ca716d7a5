/** A scheduler's decision: over which tasks, by which rule and numbers, and what its queue held. */
import { moveTo } from "../actions";
import type { App } from "../app";
import { h } from "../dom";
import type { Decision, Explained } from "../source";
import { instant } from "../units";
import { button, facts, heading, note, table, value, words, type Cell } from "./parts";
import { queue } from "./queue";

const CHOICES: Record<string, string> = {
  pick: "runs next",
  preempt: "takes the CPU",
  wait: "becomes runnable and waits",
  "turn-ends": "has had its turn",
  place: "is queued here",
  move: "is moved",
  throttle: "is throttled",
};

interface Shown {
  trace: number;
  cpu: number;
  answer: Explained;
}

/** What the panel shows, for the keys that step. */
let shown: Shown | null = null;

export async function decision(app: App): Promise<Node[]> {
  shown = null;
  const pick = app.settings.pick;
  const trace = app.traces[pick?.trace ?? 0];
  if (!trace?.info.explainable) {
    return [
      h("h2", {}, "No decisions"),
      note(
        "Only a simulated trace can say why the scheduler decided as it did. Make one with schedlab sim -o, " +
          "or simulate this one with schedlab whatif.",
      ),
    ];
  }
  if (!pick) return [h("h2", {}, "Decisions"), note("Click a CPU or a task at the instant in question.")];
  const cpu = pick.by === "cpu" ? pick.id : (await app.source.at(pick.trace, "task", pick.id, pick.time)).cpu;
  if (cpu === null || cpu === undefined)
    return [h("h2", {}, "Decisions"), note("The task is on no CPU at this instant.")];
  const answer = await app.source.explain(pick.trace, pick.time, cpu);
  shown = { trace: pick.trace, cpu, answer };
  const parts = answer.decision
    ? one(answer.decision)
    : [note(`CPU ${cpu} has decided nothing by ${instant(pick.time, 1000)}.`)];
  return [
    steps(app, answer),
    ...parts,
    heading(`The queue of CPU ${cpu} at ${instant(pick.time, 1000)}`),
    ...queue(answer.queue),
  ];
}

/** Goes to the decision before or after the one that is shown. */
export function stepDecision(app: App, to: "before" | "after"): void {
  if (!shown) {
    app.openPanel("decision");
    return;
  }
  const time = shown.answer[to];
  if (time === null) app.say(to === "after" ? "This is the CPU's last decision." : "This is the CPU's first decision.");
  else moveTo(app, { trace: shown.trace, by: "cpu", id: shown.cpu, time });
}

function steps(app: App, answer: Explained): HTMLElement {
  const go = (label: string, to: "before" | "after", key: string) => {
    const found = button(label, () => stepDecision(app, to), key);
    found.disabled = answer[to] === null;
    return found;
  };
  return h("div", { class: "buttons" }, go("‹ Before", "before", "Comma"), go("After ›", "after", "Full stop"));
}

function one(decision_: Decision): Node[] {
  const who = decision_.who ?? "nobody: the CPU is idle";
  return [
    h("h2", {}, who, h("small", {}, ` ${CHOICES[decision_.choice] ?? decision_.choice}`)),
    h("p", { class: "rule" }, sentence(decision_.rule)),
    facts([
      ["At", instant(decision_.time, 1000)],
      ["On", `CPU ${decision_.cpu}`],
      ["Over", decision_.over.join(", ")],
    ]),
    ...numbers(decision_),
  ];
}

function sentence(rule: string): string {
  return rule ? `${rule.charAt(0).toUpperCase()}${rule.slice(1)}.` : "";
}

/** A row for each task that was compared, a column for each number. */
function numbers(decision_: Decision): Node[] {
  const columns = [...new Set(decision_.numbers.map(({ what }) => what))];
  const rows = [...new Set(decision_.numbers.map(({ of }) => of ?? "queue"))];
  if (!rows.length) return [];
  const cell = (of: string, what: string): Cell => {
    const found = decision_.numbers.find((one_) => (one_.of ?? "queue") === of && one_.what === what);
    return found ? value(what, found.value) : "";
  };
  const lines = rows.map((of): Cell[] => [
    of === decision_.who ? h("strong", {}, of) : of,
    ...columns.map((what) => cell(of, what)),
  ]);
  return [
    heading("What it compared"),
    h("div", { class: "wide" }, table(["", ...columns.map(words)], lines, "What the scheduler compared")),
  ];
}
