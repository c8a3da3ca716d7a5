/** Pictures in memory: what a canvas would have drawn, at whole pixels. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { palette } from "../../src/palette";
import { parseColor, Pixels, PixelSurface } from "../../src/pixels";

const image = (width: number, height: number) =>
  ({ width, height, data: new Uint8ClampedArray(width * height * 4) }) as unknown as ImageData;

const rgb = (pixels: Pixels, x: number, y: number) => {
  const pixel = pixels.at(x, y);
  return [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
};

function surface(width: number, height: number, ratio: number) {
  const pixels = new Pixels(width, height, image(width, height));
  const calls: string[] = [];
  const context = {
    putImageData: () => calls.push("pixels"),
    fillRect: () => calls.push("rect"),
    fillText: () => calls.push("text"),
  } as unknown as OffscreenCanvasRenderingContext2D;
  return { pixels, calls, surface: new PixelSurface(context, "light", pixels, ratio) };
}

test("colours of the palette are read as they are written", () => {
  assert.deepEqual(parseColor("#2569ad"), [0x25, 0x69, 0xad, 1]);
  assert.deepEqual(parseColor("rgba(20, 40, 70, 0.045)"), [20, 40, 70, 0.045]);
});

test("a rectangle fills its pixels and no others, also over the edge", () => {
  for (const wide of [3, 12]) {
    const { pixels, surface: on } = surface(16, 4, 1);
    on.rect("paper", 0, 0, 16, 4);
    on.rect("running", 2, 1, wide, 2);
    on.rect("idle", -5, 3, 7, 9);
    for (let y = 0; y < 4; y++)
      for (let x = 0; x < 16; x++) {
        const inside = x >= 2 && x < 2 + wide && y >= 1 && y < 3;
        const style = inside ? "running" : x < 2 && y === 3 ? "idle" : "paper";
        assert.deepEqual(rgb(pixels, x, y), [...parseColor(palette("light")[style])].slice(0, 3), `${x}, ${y}`);
      }
  }
});

test("with more pixels than points, rectangles beside each other still meet", () => {
  const { pixels, surface: on } = surface(15, 3, 1.5);
  on.rects("running", Float32Array.of(0, 0, 5, 2), 1);
  on.rects("idle", Float32Array.of(5, 0, 5, 2), 1);
  const reds = Array.from({ length: 15 }, (_, x) => rgb(pixels, x, 2)[0]);
  assert.deepEqual(reds, [...Array(8).fill(0x25), ...Array(7).fill(0xdf)]);
});

test("what is translucent or thinner than a pixel is mixed with what is below", () => {
  const { pixels, surface: on } = surface(2, 2, 1);
  on.rect("paper", 0, 0, 2, 2);
  on.rect("rowHover", 0, 0, 1, 1);
  on.rect("running", 0, 1.5, 2, 0.5);
  assert.deepEqual(rgb(pixels, 0, 0), [244, 245, 247]);
  assert.deepEqual(rgb(pixels, 1, 1), [0x92, 0xb4, 0xd6]);
  assert.deepEqual(rgb(pixels, 1, 0), [255, 255, 255]);
});

test("the canvas gets the pixels once, before what only it can draw", () => {
  const { calls, surface: on } = surface(2, 2, 1);
  on.rect("paper", 0, 0, 2, 2);
  on.text("ink", "a", 0, 0);
  on.rect("idle", 0, 0, 1, 1);
  on.hand();
  assert.deepEqual(calls, ["pixels", "text", "rect"]);
});
