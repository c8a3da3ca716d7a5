/** The visible window of time, shared by everything on the page, with undo. */
import type { Window } from "./source";

/** The narrowest window. */
const LEAST = 20;

export class Axis {
  from = 0;
  to = 1;
  /** The end of the longest trace. */
  end = 1;
  private past: Window[] = [];
  private future: Window[] = [];

  constructor(private readonly changed: () => void) {}

  get span(): number {
    return this.to - this.from;
  }

  window(): Window {
    return { from: this.from, to: this.to };
  }

  /** Sets the window without a place in the history: for panning and for each step of the wheel. */
  set(from: number, to: number): void {
    const margin = this.end * 0.02;
    const span = Math.min(Math.max(to - from, LEAST), this.end + 2 * margin);
    const middle = (from + to) / 2;
    const start = Math.min(Math.max(middle - span / 2, -margin), this.end + margin - span);
    if (start === this.from && start + span === this.to) return;
    this.from = start;
    this.to = start + span;
    this.changed();
  }

  /** Remembers the present window, so that `undo` comes back to it. */
  remember(): void {
    const last = this.past.at(-1);
    if (last && last.from === this.from && last.to === this.to) return;
    this.past.push(this.window());
    if (this.past.length > 200) this.past.shift();
    this.future = [];
  }

  jump(from: number, to: number): void {
    this.remember();
    this.set(from, to);
  }

  /** Shows `window` with room on both sides. */
  show(window: Window, room = 1): void {
    const span = Math.max(window.to - window.from, 1000);
    this.jump(window.from - span * room, window.to + span * room);
  }

  pan(share: number): void {
    this.set(this.from + this.span * share, this.to + this.span * share);
  }

  /** Makes the window `factor` times as wide; the instant `at` stays where it is. */
  zoom(factor: number, at: number): void {
    const span = Math.max(LEAST, this.span * factor);
    const kept = (at - this.from) / this.span;
    this.set(at - span * kept, at + span * (1 - kept));
  }

  undo(): boolean {
    return this.step(this.past, this.future);
  }

  redo(): boolean {
    return this.step(this.future, this.past);
  }

  private step(source: Window[], target: Window[]): boolean {
    const window = source.pop();
    if (!window) return false;
    target.push(this.window());
    this.set(window.from, window.to);
    return true;
  }
}
