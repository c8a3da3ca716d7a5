/** Saves what is seen as a picture. */
import type { App } from "./app";
import type { Pane } from "./pane";
import { CanvasSurface, SvgSurface, type Surface } from "./surface";
import { duration, instant } from "./units";

const TITLE = 28;

/** The height of all panes with their titles. */
function heightOf(panes: Pane[]): number {
  return panes.reduce((sum, pane) => sum + TITLE + pane.element.clientHeight - pane.remarks.offsetHeight, 0);
}

function draw(app: App, panes: Pane[], surface: Surface): void {
  let y = 0;
  for (const pane of panes) {
    const { info, letter } = pane.trace;
    const name = app.traces.length > 1 ? `${letter}: ${info.name}` : info.name;
    surface.rect("panel", 0, y, pane.width, TITLE);
    surface.text("ink", name, 12, y + TITLE / 2, { size: 12, bold: true });
    const { from, to } = app.axis.window();
    const what = [info.kernel, `${instant(Math.max(0, from), 1000)} to ${instant(to, 1000)} (${duration(to - from)})`]
      .filter(Boolean)
      .join(", ");
    surface.text("soft", what, pane.width - 12, y + TITLE / 2, { size: 11, align: "right" });
    y += TITLE;
    y += pane.export(surface, y);
  }
}

export function svgOf(app: App, panes: Pane[]): Blob {
  const width = Math.max(...panes.map((pane) => pane.width));
  const surface = new SvgSurface(width, heightOf(panes), app.theme, app.traces.map(({ info }) => info.name).join(", "));
  draw(app, panes, surface);
  return new Blob([surface.finish()], { type: "image/svg+xml" });
}

export async function pngOf(app: App, panes: Pane[], scale = 2): Promise<Blob> {
  const width = Math.max(...panes.map((pane) => pane.width));
  const canvas = new OffscreenCanvas(Math.round(width * scale), Math.round(heightOf(panes) * scale));
  const context = canvas.getContext("2d", { alpha: false });
  if (!context) throw new Error("This browser cannot make a picture of this size.");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  const surface = new CanvasSurface(context, app.theme);
  surface.rect("paper", 0, 0, width, canvas.height);
  draw(app, panes, surface);
  return canvas.convertToBlob({ type: "image/png" });
}

export async function save(app: App, panes: Pane[], kind: "png" | "svg"): Promise<void> {
  const blob = kind === "svg" ? svgOf(app, panes) : await pngOf(app, panes);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  const name = (app.traces[0]?.info.name ?? "trace")
    .replace(/^.*\//, "")
    .replace(/\.[^.]*$/, "")
    .replace(/[^\w.-]+/g, "_");
  link.download = `${name}.${kind}`;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  app.say(`Saved ${link.download}.`);
}
