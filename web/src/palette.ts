/**
 * The colours. States differ in lightness and in height as well, so that they can be told apart in print and by the
 * colour-blind; what nobody knows is hatched.
 */
import { State } from "./source";

export type Style =
  | "running"
  | "waiting"
  | "waitingEdge"
  | "sleeping"
  | "blocked"
  | "idle"
  | "interrupt"
  | "unknown"
  | "loading"
  | "hue0"
  | "hue1"
  | "hue2"
  | "hue3"
  | "hue4"
  | "hue5"
  | "hue6"
  | "hue7"
  | "paper"
  | "panel"
  | "ink"
  | "soft"
  | "rule"
  | "accent"
  | "select"
  | "cursor"
  | "violation"
  | "wake"
  | "migrate"
  | "onDark"
  | "onLight"
  | "more"
  | "less"
  | "rowHover";

export const HUES = 8;

type Palette = Record<Style, string>;

const LIGHT: Palette = {
  running: "#2569ad",
  waiting: "#f2a60d",
  waitingEdge: "#a86a00",
  sleeping: "#c3ccd6",
  blocked: "#8d2f68",
  idle: "#dfe4ea",
  interrupt: "#0c7f6c",
  unknown: "#c4271b",
  loading: "#f1f3f6",
  hue0: "#2f6fb3",
  hue1: "#3d8f87",
  hue2: "#7766b8",
  hue3: "#568a3c",
  hue4: "#a9527f",
  hue5: "#86693a",
  hue6: "#3c93bd",
  hue7: "#68748a",
  paper: "#ffffff",
  panel: "#f7f8fa",
  ink: "#1b2027",
  soft: "#59636f",
  rule: "#e3e7ec",
  accent: "#0060a8",
  select: "rgba(0, 96, 168, 0.13)",
  cursor: "#0060a8",
  violation: "#c4271b",
  wake: "#1b2027",
  migrate: "#7a3db8",
  onDark: "#ffffff",
  onLight: "#1b2027",
  more: "#c65a11",
  less: "#2470b3",
  rowHover: "rgba(20, 40, 70, 0.045)",
};

const DARK: Palette = {
  running: "#4b97dd",
  waiting: "#f5bb3d",
  waitingEdge: "#ffe0a0",
  sleeping: "#46505c",
  blocked: "#c56aa3",
  idle: "#2b323b",
  interrupt: "#2fb79f",
  unknown: "#ff6a5e",
  loading: "#1a1f26",
  hue0: "#5797d8",
  hue1: "#4fafa5",
  hue2: "#9d8ee0",
  hue3: "#7ab25c",
  hue4: "#d480ab",
  hue5: "#bd9c66",
  hue6: "#62b5dc",
  hue7: "#93a0b6",
  paper: "#12161b",
  panel: "#181d23",
  ink: "#e6eaee",
  soft: "#9ca8b4",
  rule: "#28303a",
  accent: "#7cc0ff",
  select: "rgba(124, 192, 255, 0.16)",
  cursor: "#7cc0ff",
  violation: "#ff6a5e",
  wake: "#e6eaee",
  migrate: "#c79bff",
  onDark: "#0e1318",
  onLight: "#0e1318",
  more: "#f28a3c",
  less: "#5aa9ea",
  rowHover: "rgba(180, 210, 250, 0.06)",
};

export type Theme = "light" | "dark";

export function palette(theme: Theme): Palette {
  return theme === "dark" ? DARK : LIGHT;
}

/** The style of each state, by its number. */
export const STATE_STYLE: readonly Style[] = (() => {
  const styles: Style[] = [];
  styles[State.unknown] = "unknown";
  styles[State.idle] = "idle";
  styles[State.running] = "running";
  styles[State.waiting] = "waiting";
  styles[State.sleeping] = "sleeping";
  styles[State.blocked] = "blocked";
  styles[State.interrupt] = "interrupt";
  styles[State.absent] = "paper";
  return styles;
})();

/** The hue of a name: the same name has the same hue in every trace. */
export function hueOf(name: string): number {
  let hash = 2166136261;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  hash ^= hash >>> 15;
  return (hash >>> 0) % HUES;
}

/** A name without the numbers at its end: the tasks of a pool share a hue. */
export function stem(name: string): string {
  return name.replace(/[-_:/.\d]+$/, "") || name;
}

/** The colours of the heat map: `share` from 0 to 1. Lightness falls (in the dark: rises) evenly. */
export function heatColor(theme: Theme, share: number): [number, number, number] {
  const stops = theme === "dark" ? HEAT_DARK : HEAT_LIGHT;
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at));
  const [a, b] = [stops[i] as number[], stops[i + 1] as number[]];
  const mix = (k: number) => Math.round((a[k] as number) + ((b[k] as number) - (a[k] as number)) * (at - i));
  return [mix(0), mix(1), mix(2)];
}

const HEAT_LIGHT = [
  [238, 243, 248],
  [160, 200, 228],
  [70, 140, 190],
  [110, 70, 140],
  [120, 18, 40],
];
const HEAT_DARK = [
  [26, 32, 40],
  [32, 74, 112],
  [60, 130, 150],
  [222, 160, 60],
  [255, 236, 170],
];
