/** Numbers as people read them. */

const STEPS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "us"],
  [1, "ns"],
];

/** A duration of `ns` in the unit that fits it, with three or four digits: 12.3 ms. */
export function duration(ns: number): string {
  if (!Number.isFinite(ns)) return "unknown";
  if (ns === 0) return "0";
  // What rounds to 1000 of a unit is 1 of the next.
  const size = Math.abs(ns) * 1.00005;
  const [unit, name] = STEPS.find(([step]) => size >= step) ?? [1, "ns"];
  const value = ns / unit;
  const digits = name === "ns" ? 0 : Math.abs(value) >= 99.995 ? 1 : Math.abs(value) >= 9.9995 ? 2 : 3;
  return `${value.toFixed(digits)} ${name}`;
}

/**
 * An instant of `ns`, with as many decimals as differences of `step` ns need, in the unit that fits `largest`: 1.20453
 * s.
 */
export function instant(ns: number, step = 1000, largest = ns): string {
  const size = Math.max(Math.abs(largest), step);
  const [unit, name] = STEPS.find(([candidate]) => size >= candidate) ?? [1, "ns"];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(unit / step) - 1e-9)));
  return `${(ns / unit).toFixed(digits)} ${name}`;
}

/** A number with its thousands apart, and with at most so many decimals. */
export function count(value: number, decimals = 0): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: decimals });
}

/** A number of things: 1 task, 2 tasks. */
export function counted(value: number, thing: string): string {
  return `${count(value)} ${thing}${value === 1 ? "" : "s"}`;
}

/** `part` of 1 as per cent. */
export function percent(part: number, digits = 1): string {
  return Number.isFinite(part) ? `${(part * 100).toFixed(digits)}%` : "unknown";
}

/** Distances that an axis may have between its ticks: 1, 2 and 5 times powers of ten. */
export function tickStep(nsPerPixel: number, pixels: number): number {
  const least = nsPerPixel * pixels;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  for (const factor of [1, 2, 5, 10]) if (factor * power >= least) return Math.max(1, factor * power);
  return 10 * power;
}

/** A time as a user writes it on the command line, exactly: 1204530ns. */
export function option(ns: number): string {
  return `${Math.round(ns)}ns`;
}
