/**
 * A picture that is made in memory, pixel by pixel, and handed to a canvas as a whole. Lanes have some ten thousand
 * rectangles; without a GPU a canvas takes many times as long to draw them one by one.
 */
import { palette, type Style, type Theme } from "./palette";
import { CanvasSurface, type TextOptions } from "./surface";

/** Red, green, blue from 0 to 255, opacity from 0 to 1. */
type Color = readonly [number, number, number, number];

export function parseColor(text: string): Color {
  if (text.startsWith("#")) {
    const bits = parseInt(text.slice(1), 16);
    return [bits >> 16, (bits >> 8) & 255, bits & 255, 1];
  }
  const [r, g, b, a] = (text.match(/[\d.]+/g) ?? []).map(Number);
  return [r ?? 0, g ?? 0, b ?? 0, a ?? 1];
}

/** An opaque pixel as a little-endian number, which is what every browser's machine has. */
function packed(r: number, g: number, b: number): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

const colors = new Map<Theme, Map<Style, Color>>();

function colorOf(theme: Theme, style: Style): Color {
  let known = colors.get(theme);
  if (!known) {
    known = new Map(Object.entries(palette(theme)).map(([name, text]) => [name as Style, parseColor(text)]));
    colors.set(theme, known);
  }
  return known.get(style) as Color;
}

/** The pixels of a picture of a given size, in device pixels. */
export class Pixels {
  readonly image: ImageData;
  private readonly data: Uint32Array;

  constructor(
    readonly width: number,
    readonly height: number,
    image = new ImageData(width, height),
  ) {
    this.image = image;
    this.data = new Uint32Array(image.data.buffer);
  }

  /** Fills whole pixels, of which what is outside is left out. */
  fill(color: Color, left: number, top: number, right: number, bottom: number): void {
    const x0 = Math.max(0, left);
    const x1 = Math.min(this.width, right);
    const y1 = Math.min(this.height, bottom);
    if (x0 >= x1) return;
    const { data, width } = this;
    const opaque = color[3] >= 1;
    const pixel = packed(color[0], color[1], color[2]);
    for (let y = Math.max(0, top); y < y1; y++) {
      const to = y * width + x1;
      if (opaque && x1 - x0 >= 8) data.fill(pixel, y * width + x0, to);
      // Most spans are a few pixels wide: a loop is faster than a call.
      else if (opaque) for (let at = y * width + x0; at < to; at++) data[at] = pixel;
      else for (let at = y * width + x0; at < to; at++) this.blend(at, color);
    }
  }

  private blend(at: number, [r, g, b, opacity]: Color): void {
    const under = this.data[at] as number;
    const mix = (over: number, shift: number) => {
      const below = (under >>> shift) & 255;
      return Math.round(below + (over - below) * opacity);
    };
    this.data[at] = packed(mix(r, 0), mix(g, 8), mix(b, 16));
  }

  at(x: number, y: number): number {
    return this.data[y * this.width + x] as number;
  }
}

/**
 * Rectangles go into pixels, at whole device pixels, until something else is drawn: from then on, and for that, the
 * canvas is used, which has the pixels by then.
 */
export class PixelSurface extends CanvasSurface {
  private handed = false;

  constructor(
    context: OffscreenCanvasRenderingContext2D,
    private readonly theme: Theme,
    private readonly pixels: Pixels,
    private readonly ratio: number,
  ) {
    super(context, theme);
  }

  override rect(style: Style, x: number, y: number, w: number, h: number): void {
    if (this.handed) super.rect(style, x, y, w, h);
    else this.put(colorOf(this.theme, style), x, y, w, h);
  }

  override rects(style: Style, buffer: Float32Array, count: number): void {
    if (this.handed) {
      super.rects(style, buffer, count);
      return;
    }
    const color = colorOf(this.theme, style);
    for (let i = 0; i < count * 4; i += 4)
      this.put(color, buffer[i] as number, buffer[i + 1] as number, buffer[i + 2] as number, buffer[i + 3] as number);
  }

  private put(color: Color, x: number, y: number, w: number, h: number): void {
    const { ratio } = this;
    const left = Math.round(x * ratio);
    const right = Math.round((x + w) * ratio);
    // A line that is thinner than a pixel is fainter.
    if (h * ratio < 1) {
      const row = Math.floor(y * ratio);
      this.pixels.fill([color[0], color[1], color[2], color[3] * h * ratio], left, row, right, row + 1);
    } else {
      this.pixels.fill(color, left, Math.round(y * ratio), right, Math.round((y + h) * ratio));
    }
  }

  override hatch(style: Style, x: number, y: number, w: number, h: number): void {
    this.hand();
    super.hatch(style, x, y, w, h);
  }

  override text(style: Style, text: string, x: number, y: number, options: TextOptions = {}): void {
    this.hand();
    super.text(style, text, x, y, options);
  }

  /** Gives the canvas what has been painted. To be called at the end. */
  hand(): void {
    if (this.handed) return;
    this.handed = true;
    (this.context as OffscreenCanvasRenderingContext2D).putImageData(this.pixels.image, 0, 0);
  }
}
