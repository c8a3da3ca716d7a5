/** What every part of the page can reach. */
import type { Axis } from "./axis";
import type { Trace } from "./model";
import type { Theme } from "./palette";
import type { Pick, PanelName, Settings } from "./settings";
import type { Source, Window } from "./source";
import type { Tiles } from "./tiles";

export interface App {
  readonly source: Source;
  readonly axis: Axis;
  readonly tiles: Tiles;
  readonly traces: Trace[];
  settings: Settings;
  theme: Theme;
  /** The instant under the pointer, if it is over a lane. */
  hover: { trace: number; time: number } | null;

  /** Draw again: the window or the data have changed. */
  redraw(): void;
  /** Rows, colours or sections have changed. */
  rearrange(): void;
  /** Settings have changed: write the address, update the buttons. */
  changed(): void;

  pick(pick: Pick | null): void;
  select(selection: Window | null): void;
  openPanel(panel: PanelName | null): void;
  /** Brings a row into view, unfolding what hides it. */
  reveal(trace: number, by: "cpu" | "task", id: number): void;
  /** One sentence for the reader, also spoken. */
  say(message: string): void;
  fail(message: string): void;
}
