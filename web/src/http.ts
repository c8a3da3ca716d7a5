/** The server of `schedlab view`. Every address is relative to the page's folder, which contains the token. */
import { heatOf, marksOf, overviewOf, seriesOf, tilesOf } from "./arrow";
import {
  ROWS_PER_TILE,
  type At,
  type By,
  type Document,
  type Edge,
  type Explained,
  type Found,
  type HeatTile,
  type List,
  type ListKind,
  type MarkKind,
  type Marks,
  type Notices,
  type Overview,
  type Rows,
  type Series,
  type Source,
  type Tile,
  type Traces,
  type Wait,
  type Window,
} from "./source";

type Query = Record<string, string | number>;

function address(path: string, query: Query): string {
  const text = Object.entries(query).map(
    ([key, value]) => `${key}=${encodeURIComponent(typeof value === "number" ? Math.round(value) : value)}`,
  );
  return text.length ? `api/${path}?${text.join("&")}` : `api/${path}`;
}

/** The server is still at it: ask again in a while. */
export class NotYet extends Error {}

async function get(path: string, query: Query = {}, signal: AbortSignal | null = null): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(address(path, query), { signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Error("The server of this page does not answer any more: start `schedlab view` again and reload.");
  }
  if (answer.ok) return answer;
  let message = `The server answered ${answer.status} to ${path}.`;
  try {
    const body = (await answer.json()) as { error?: string };
    if (body.error) message = body.error;
  } catch {
    // Not JSON: the status is all there is.
  }
  throw answer.status === 409 ? new NotYet(message) : new Error(message);
}

async function json<T>(path: string, query: Query = {}, signal: AbortSignal | null = null): Promise<T> {
  return (await (await get(path, query, signal)).json()) as T;
}

async function bytes(path: string, query: Query, signal: AbortSignal | null = null): Promise<Uint8Array> {
  return new Uint8Array(await (await get(path, query, signal)).arrayBuffer());
}

const span = (window: Window): Query => ({
  from: Math.max(0, Math.floor(window.from)),
  to: Math.max(0, Math.ceil(window.to)),
});

export class Http implements Source {
  readonly live = true;

  traces(): Promise<Traces> {
    return json("traces");
  }

  rows(trace: number, by: By): Promise<Rows> {
    return json(`${trace}/rows`, { by });
  }

  async tiles(
    trace: number,
    by: By,
    level: number,
    tiles: readonly number[],
    chunks: readonly number[],
    signal: AbortSignal,
  ): Promise<Tile[]> {
    const rows = chunks.map((chunk) => `${chunk * ROWS_PER_TILE}-${(chunk + 1) * ROWS_PER_TILE - 1}`);
    const query = { by, level, tile: tiles.join(), rows: rows.join() };
    return tilesOf(await bytes(`${trace}/tiles`, query, signal), level, tiles, chunks);
  }

  async overview(trace: number, bins: number, window: Window): Promise<Overview> {
    return overviewOf(await bytes(`${trace}/overview`, { bins, ...span(window) }), bins, window);
  }

  async heat(
    trace: number,
    of: string,
    level: number,
    tiles: readonly number[],
    group: number,
    signal: AbortSignal,
  ): Promise<HeatTile[]> {
    return heatOf(await bytes(`${trace}/heat`, { of, level, tile: tiles.join(), group }, signal), level, tiles);
  }

  async counter(trace: number, name: string, window: Window, bins: number): Promise<Series> {
    return seriesOf(await bytes(`${trace}/counters`, { name, bins, ...span(window) }), bins, window);
  }

  async marks(trace: number, kind: MarkKind, window: Window, limit: number): Promise<Marks> {
    return marksOf(await bytes(`${trace}/marks`, { kind, limit, ...span(window) }), kind, window);
  }

  at(trace: number, by: By, id: number, time: number): Promise<At> {
    return json(`${trace}/at`, { time, [by]: id });
  }

  wait(trace: number, task: number, time: number): Promise<Wait> {
    return json(`${trace}/wait`, { task, time });
  }

  list(trace: number, of: ListKind, limit: number, window: Window | null): Promise<List> {
    return json(`${trace}/lists`, { of, limit, ...(window ? span(window) : {}) });
  }

  stats(trace: number, window: Window): Promise<Document> {
    return json(`${trace}/stats`, span(window));
  }

  delays(trace: number, window: Window): Promise<Document> {
    return json(`${trace}/delays`, span(window));
  }

  async wakers(trace: number, window: Window, limit: number): Promise<Edge[]> {
    return (await json<{ edges: Edge[] }>(`${trace}/wakers`, { ...span(window), limit })).edges;
  }

  find(trace: number, query: string, by: By, limit: number): Promise<Found> {
    return json(`${trace}/find`, { q: query, by, limit });
  }

  async step(
    trace: number,
    by: By,
    id: number,
    time: number,
    to: "next" | "previous",
    state: number | null,
  ): Promise<number | null> {
    const query = { [by]: id, time, to, ...(state === null ? {} : { state }) };
    return (await json<{ time: number | null }>(`${trace}/step`, query)).time;
  }

  explain(trace: number, time: number, cpu: number): Promise<Explained> {
    return json(`${trace}/explain`, { time, cpu });
  }

  diff(a: number, b: number): Promise<Document> {
    return json("diff", { a, b });
  }

  listen(notices: Notices): void {
    const events = new EventSource("api/events");
    const on = (name: string, run: (data: { id: number; end: number; events: number }) => void) =>
      events.addEventListener(name, (event) => run(JSON.parse((event as MessageEvent<string>).data)));
    events.addEventListener("open", () => notices.listening());
    on("grown", ({ id, end, events: number }) => notices.grown(id, end, number));
    on("ended", ({ id }) => notices.ended(id));
    on("checked", ({ id }) => notices.checked(id));
  }
}
