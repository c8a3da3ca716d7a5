/** What can be done with a key, a button or a click alike. */
import type { App } from "./app";
import type { Pick } from "./settings";
import type { At, By, ListItem, Window } from "./source";

function toggle<T>(set: Set<T>, value: T): void {
  if (!set.delete(value)) set.add(value);
}

export function toggleFold(app: App, key: string): void {
  toggle(app.settings.collapsed, key);
  app.rearrange();
}

export function togglePin(app: App, key: string): void {
  toggle(app.settings.pins, key);
  app.rearrange();
}

/** Brings a wait or a violation into view, picks it, and opens what is known of it. */
export function jump(app: App, trace: number, item: ListItem): void {
  const idle = item.idle_cpu;
  const by: By = idle === undefined && item.task ? "task" : "cpu";
  const id = idle ?? item.task?.task ?? item.cpu;
  if (id === null || id === undefined) return;
  app.axis.show({ from: item.start, to: item.start + item.duration }, 0.6);
  app.reveal(trace, by, id);
  app.pick({ trace, by, id, time: Math.round(item.start + item.duration / 2) });
}

/** Goes along the picked row to its next or previous span. */
export async function along(app: App, to: "next" | "previous"): Promise<void> {
  const { pick } = app.settings;
  if (!pick) return;
  const time = await app.source.step(pick.trace, pick.by, pick.id, pick.time, to, null);
  if (time === null)
    app.say(to === "next" ? "This is the last span of the row." : "This is the first span of the row.");
  else moveTo(app, { ...pick, time });
}

/** Picks, and pans if the place is outside of the window. */
export function moveTo(app: App, pick: Pick): void {
  const { axis } = app;
  if (pick.time < axis.from || pick.time > axis.to) axis.jump(pick.time - axis.span / 2, pick.time + axis.span / 2);
  app.pick(pick);
}

export function spanOf(at: At): Window | null {
  return at.to > at.from ? { from: at.from, to: at.to } : null;
}

/** Zooms to the selection, or else to the span that is picked. */
export async function fit(app: App): Promise<void> {
  const { selection, pick } = app.settings;
  if (selection) app.axis.show(selection, 0.05);
  else if (pick) {
    const span = spanOf(await app.source.at(pick.trace, pick.by, pick.id, pick.time));
    if (span) app.axis.show(span, 0.4);
  }
}

/** Selects the span that is picked, or else the visible window. */
export async function selectPicked(app: App, visible: boolean): Promise<void> {
  const { pick } = app.settings;
  const whole = { from: Math.max(0, Math.round(app.axis.from)), to: Math.min(app.axis.end, Math.round(app.axis.to)) };
  if (visible || !pick) app.select(whole);
  else app.select(spanOf(await app.source.at(pick.trace, pick.by, pick.id, pick.time)) ?? whole);
}
