/** What the page draws on: a canvas, or an SVG that is exported. Both take the same calls. */
import { upright } from "./dom";
import { palette, type Style, type Theme } from "./palette";

export type Align = "left" | "center" | "right";

export interface TextOptions {
  size?: number;
  align?: Align;
  bold?: boolean;
}

export interface Surface {
  rect(style: Style, x: number, y: number, w: number, h: number): void;
  /** Rectangles of one style: x, y, w, h of each, one after another. */
  rects(style: Style, buffer: Float32Array, count: number): void;
  hatch(style: Style, x: number, y: number, w: number, h: number): void;
  line(style: Style, points: number[], width: number): void;
  fill(style: Style, points: number[], opacity?: number): void;
  text(style: Style, text: string, x: number, y: number, options?: TextOptions): void;
  /** Everything until `unclip` is cut off outside of this rectangle. */
  clip(x: number, y: number, w: number, h: number): void;
  unclip(): void;
  /** A picture made of pixels. */
  image(picture: HTMLCanvasElement | OffscreenCanvas, x: number, y: number, w: number, h: number): void;
}

export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", Arial, sans-serif';

function fontOf(size: number, bold = false): string {
  return `${bold ? "600 " : ""}${size}px ${FONT}`;
}

type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

const patterns = new Map<string, OffscreenCanvas>();

/** From one stripe of a hatching to the next, across and down, in pixels. */
export const STRIPE = 8;

function stripes(color: string): OffscreenCanvas {
  let pattern = patterns.get(color);
  if (!pattern) {
    pattern = new OffscreenCanvas(STRIPE, STRIPE);
    const context = pattern.getContext("2d") as OffscreenCanvasRenderingContext2D;
    context.strokeStyle = color;
    context.lineWidth = 2;
    context.beginPath();
    for (const shift of [-8, 0, 8]) {
      context.moveTo(shift - 1, 9);
      context.lineTo(shift + 9, -1);
    }
    context.stroke();
    patterns.set(color, pattern);
  }
  return pattern;
}

export class CanvasSurface implements Surface {
  private readonly colors: Record<Style, string>;

  constructor(
    readonly context: Context,
    theme: Theme,
  ) {
    this.colors = palette(theme);
  }

  rect(style: Style, x: number, y: number, w: number, h: number): void {
    this.context.fillStyle = this.colors[style];
    this.context.fillRect(x, y, w, h);
  }

  rects(style: Style, buffer: Float32Array, count: number): void {
    const context = this.context;
    context.fillStyle = this.colors[style];
    for (let i = 0; i < count * 4; i += 4) {
      context.fillRect(buffer[i] as number, buffer[i + 1] as number, buffer[i + 2] as number, buffer[i + 3] as number);
    }
  }

  hatch(style: Style, x: number, y: number, w: number, h: number): void {
    const pattern = this.context.createPattern(stripes(this.colors[style]), "repeat");
    if (!pattern) return;
    this.context.fillStyle = pattern;
    this.context.fillRect(x, y, w, h);
  }

  line(style: Style, points: number[], width: number): void {
    const context = this.context;
    context.strokeStyle = this.colors[style];
    context.lineWidth = width;
    this.path(points);
    context.stroke();
  }

  fill(style: Style, points: number[], opacity = 1): void {
    const context = this.context;
    context.globalAlpha = opacity;
    context.fillStyle = this.colors[style];
    this.path(points);
    context.fill();
    context.globalAlpha = 1;
  }

  private path(points: number[]): void {
    this.context.beginPath();
    for (let i = 0; i + 1 < points.length; i += 2) this.context.lineTo(points[i] as number, points[i + 1] as number);
  }

  text(style: Style, text: string, x: number, y: number, options: TextOptions = {}): void {
    const context = this.context;
    context.font = fontOf(options.size ?? 11, options.bold);
    context.textAlign = options.align ?? "left";
    context.textBaseline = "middle";
    context.fillStyle = this.colors[style];
    context.fillText(upright(text), x, y);
  }

  clip(x: number, y: number, w: number, h: number): void {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, w, h);
    this.context.clip();
  }

  unclip(): void {
    this.context.restore();
  }

  image(picture: HTMLCanvasElement | OffscreenCanvas, x: number, y: number, w: number, h: number): void {
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(picture, x, y, w, h);
  }
}

function escapeXml(text: string): string {
  const clean = text.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]/g, "\ufffd");
  return clean.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

const ANCHOR: Record<Align, string> = { left: "start", center: "middle", right: "end" };

/** A number with as many decimals as a picture needs. */
const n = (value: number) => String(Math.round(value * 100) / 100);

export class SvgSurface implements Surface {
  private readonly parts: string[] = [];
  private readonly hatched = new Set<Style>();
  private readonly colors: Record<Style, string>;
  private clips = 0;

  constructor(
    private readonly width: number,
    private readonly height: number,
    theme: Theme,
    private readonly title: string,
  ) {
    this.colors = palette(theme);
  }

  rect(style: Style, x: number, y: number, w: number, h: number): void {
    this.parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" fill="${this.colors[style]}"/>`);
  }

  rects(style: Style, buffer: Float32Array, count: number): void {
    let path = "";
    for (let i = 0; i < count * 4; i += 4) {
      const [x, y, w, h] = [buffer[i] ?? 0, buffer[i + 1] ?? 0, buffer[i + 2] ?? 0, buffer[i + 3] ?? 0];
      path += `M${n(x)} ${n(y)}h${n(w)}v${n(h)}h${n(-w)}z`;
    }
    if (path) this.parts.push(`<path d="${path}" fill="${this.colors[style]}"/>`);
  }

  hatch(style: Style, x: number, y: number, w: number, h: number): void {
    this.hatched.add(style);
    this.parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" fill="url(#hatch-${style})"/>`);
  }

  line(style: Style, points: number[], width: number): void {
    this.parts.push(
      `<polyline points="${points.map(n).join(" ")}" fill="none" ` +
        `stroke="${this.colors[style]}" stroke-width="${width}"/>`,
    );
  }

  fill(style: Style, points: number[], opacity = 1): void {
    this.parts.push(
      `<polygon points="${points.map(n).join(" ")}" fill="${this.colors[style]}" fill-opacity="${opacity}"/>`,
    );
  }

  text(style: Style, text: string, x: number, y: number, options: TextOptions = {}): void {
    const weight = options.bold ? ' font-weight="600"' : "";
    const anchor = ANCHOR[options.align ?? "left"];
    const at = `x="${n(x)}" y="${n(y)}" font-size="${options.size ?? 11}" text-anchor="${anchor}"`;
    this.parts.push(
      `<text ${at}${weight} fill="${this.colors[style]}" dominant-baseline="central">${escapeXml(upright(text))}</text>`,
    );
  }

  clip(x: number, y: number, w: number, h: number): void {
    const id = `clip-${this.clips++}`;
    const box = `<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}"/>`;
    this.parts.push(`<clipPath id="${id}">${box}</clipPath><g clip-path="url(#${id})">`);
  }

  unclip(): void {
    this.parts.push("</g>");
  }

  image(picture: HTMLCanvasElement | OffscreenCanvas, x: number, y: number, w: number, h: number): void {
    const canvas = document.createElement("canvas");
    canvas.width = picture.width;
    canvas.height = picture.height;
    canvas.getContext("2d")?.drawImage(picture, 0, 0);
    const box = `x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}"`;
    this.parts.push(`<image ${box} preserveAspectRatio="none" href="${canvas.toDataURL("image/png")}"/>`);
  }

  finish(): string {
    const hatches = [...this.hatched].map(
      (style) =>
        `<pattern id="hatch-${style}" width="8" height="8" patternUnits="userSpaceOnUse">` +
        `<path d="M-1 9L9 -1M-9 9L1 -1M7 9L17 -1" stroke="${this.colors[style]}" stroke-width="2"/></pattern>`,
    );
    const size = `width="${n(this.width)}" height="${n(this.height)}" viewBox="0 0 ${n(this.width)} ${n(this.height)}"`;
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family='${FONT}' font-variant-numeric="tabular-nums">` +
      `<title>${escapeXml(this.title)}</title><defs>${hatches.join("")}</defs>` +
      `<rect width="100%" height="100%" fill="${this.colors.paper}"/>${this.parts.join("\n")}</svg>\n`
    );
  }
}

const plainWidths = new Map<string, number>();
const boldWidths = new Map<string, number>();
let measuring: OffscreenCanvasRenderingContext2D | null = null;

/** The width of a text of 11 pixels. */
export function textWidth(text: string, bold = false): number {
  const widths = bold ? boldWidths : plainWidths;
  let width = widths.get(text);
  if (width === undefined) {
    measuring ??= new OffscreenCanvas(1, 1).getContext("2d");
    if (!measuring) return text.length * 7;
    measuring.font = fontOf(11, bold);
    width = measuring.measureText(text).width;
    if (widths.size > 20000) widths.clear();
    widths.set(text, width);
  }
  return width;
}

/** As much of a text as fits into `width`; nothing if fewer than three characters would. */
export function fit(text: string, width: number, bold = false): string {
  if (textWidth(text, bold) <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (textWidth(`${text.slice(0, middle)}…`, bold) <= width) low = middle;
    else high = middle - 1;
  }
  return low >= 3 ? `${text.slice(0, low)}…` : "";
}
