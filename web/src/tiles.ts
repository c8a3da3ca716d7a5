/** The tiles that were fetched, bounded in memory, and those under way. */
import { TILE_BINS, type By, type HeatTile, type Source, type Tile } from "./source";

/** The level whose bins are nearest to one pixel. */
export function levelOf(nsPerPixel: number): number {
  return Math.max(0, Math.min(46, Math.round(Math.log2(Math.max(nsPerPixel, 1)))));
}

/** The length of a tile of a level, in ns. */
export function tileSpan(level: number): number {
  return TILE_BINS * 2 ** level;
}

/** The numbers of a level's tiles between two instants. */
export function tilesBetween(from: number, to: number, level: number): number[] {
  const span = tileSpan(level);
  const first = Math.max(0, Math.floor(from / span));
  return Array.from({ length: Math.max(0, Math.ceil(to / span) - first) }, (_, i) => first + i);
}

interface Sized {
  bytes: number;
}

/** A map that forgets what was not used for longest when it holds more than `limit` bytes. */
export class Lru<T extends Sized> {
  private readonly entries = new Map<string, T>();
  private size = 0;

  constructor(private readonly limit: number) {}

  get bytes(): number {
    return this.size;
  }

  get(key: string): T | undefined {
    const entry = this.entries.get(key);
    if (entry) {
      this.entries.delete(key);
      this.entries.set(key, entry);
    }
    return entry;
  }

  set(key: string, entry: T): void {
    this.drop(key);
    this.entries.set(key, entry);
    this.size += entry.bytes;
    for (const oldest of this.entries.keys()) {
      if (this.size <= this.limit || oldest === key) break;
      this.drop(oldest);
    }
  }

  drop(key: string): void {
    const entry = this.entries.get(key);
    if (!entry) return;
    this.size -= entry.bytes;
    this.entries.delete(key);
  }

  keys(): string[] {
    return [...this.entries.keys()];
  }
}

const MEMORY = 48 * 1024 * 1024;
const AT_ONCE = 6;
/** How many coarser levels are looked through for a stand-in. */
const COARSER = 8;

/** How many tiles are asked for at once at most. */
const MOST_TOGETHER = 8;

function keyOf(batch: string, tile: number, chunk: number): string {
  return `${batch}/${chunk}/${tile}`;
}

/** Fetches tiles of one kind: of the same trace, sort of rows and level. */
type Fetch = (tiles: readonly number[], chunks: readonly number[], signal: AbortSignal) => Promise<void>;

interface Request {
  key: string;
  /** What can be fetched together: tiles that differ by their number and their chunk of rows only. */
  batch: string;
  tile: number;
  chunk: number;
  run: Fetch;
  /** The frame in which it was last wanted. */
  wanted: number;
  /** Nothing that is shown waits for it. */
  ahead: boolean;
}

interface Flight {
  requests: Request[];
  abort: AbortController;
}

/**
 * Fetches of which few run at once; what nobody wants any more is dropped. Tiles beside and below each other are fetched
 * together, since a request costs the browser more than a tile.
 */
class Queue {
  private readonly waiting = new Map<string, Request>();
  private readonly running = new Map<string, Request>();
  private readonly flights = new Set<Flight>();
  frame = 0;
  /** What is wanted from now on is not shown yet. */
  ahead = false;

  constructor(
    private readonly arrived: () => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** How many are on their way that something waits for. */
  get busy(): number {
    const count = (of: Map<string, Request>) => [...of.values()].filter(({ ahead }) => !ahead).length;
    return count(this.waiting) + count(this.running);
  }

  want(batch: string, tile: number, chunk: number, run: Fetch): void {
    const key = keyOf(batch, tile, chunk);
    const known = this.running.get(key) ?? this.waiting.get(key);
    if (known) {
      known.wanted = this.frame;
      known.ahead &&= this.ahead;
      return;
    }
    this.waiting.set(key, { key, batch, tile, chunk, run, wanted: this.frame, ahead: this.ahead });
  }

  /** Starts what was wanted in this frame, and drops the rest. */
  pump(): void {
    for (const request of this.waiting.values()) if (request.wanted < this.frame - 1) this.waiting.delete(request.key);
    for (const request of this.waiting.values()) {
      if (this.flights.size >= AT_ONCE) break;
      if (!request.ahead) this.start(this.together(request, MOST_TOGETHER));
    }
    // What nothing waits for comes one by one, so that what is wanted meanwhile need not wait long.
    const [next] = this.waiting.values();
    if (next && !this.flights.size) this.start(this.together(next, 1));
    for (const { requests, abort } of this.flights)
      if (requests.every(({ wanted }) => wanted < this.frame - 40)) abort.abort();
  }

  /** What is fetched with this one: up to so many tiles of its rows, and other rows that lack the same ones. */
  private together({ batch, chunk, ahead }: Request, most: number): Request[] {
    const chunks = new Map<number, Request[]>();
    for (const request of this.waiting.values()) {
      if (request.batch !== batch || request.ahead !== ahead) continue;
      const own = chunks.get(request.chunk);
      if (own) own.push(request);
      else chunks.set(request.chunk, [request]);
    }
    const lists = [...chunks.values()].map((own) => own.sort((a, b) => a.tile - b.tile).slice(0, most));
    const numbers = (own: Request[] = []) => own.map(({ tile }) => tile).join();
    const wanted = numbers(lists.find((own) => own[0]?.chunk === chunk));
    return lists.filter((own) => numbers(own) === wanted).flat();
  }

  private start(requests: Request[]): void {
    const flight = { requests, abort: new AbortController() };
    this.flights.add(flight);
    for (const request of requests) {
      this.waiting.delete(request.key);
      this.running.set(request.key, request);
    }
    const sorted = (of: number[]) => [...new Set(of)].sort((a, b) => a - b);
    const tiles = sorted(requests.map(({ tile }) => tile));
    const chunks = sorted(requests.map(({ chunk }) => chunk));
    (requests[0] as Request)
      .run(tiles, chunks, flight.abort.signal)
      .catch((error: unknown) => {
        if (!flight.abort.signal.aborted) this.failed(error);
      })
      .finally(() => {
        this.flights.delete(flight);
        for (const { key } of requests) this.running.delete(key);
        this.pump();
        if (requests.some(({ ahead }) => !ahead)) this.arrived();
      });
  }
}

/** A question and its answer, which holds within a frame as long as no tile arrives. */
interface Asked {
  trace: number;
  by: By;
  level: number;
  tile: number;
  chunk: number;
  version: number;
  frame: number;
  found: Tile | undefined;
}

export class Tiles {
  private readonly spans = new Lru<Tile>(MEMORY);
  private readonly heats = new Lru<HeatTile>(MEMORY / 4);
  private readonly broken = new Set<string>();
  /** Keys of what the trace has outgrown: shown until the new answer is there. */
  private readonly stale = new Set<string>();
  /** How often the rows of a trace were put in another order, by `trace/by`. */
  private readonly orders = new Map<string, number>();
  private readonly queue: Queue;
  /** What was asked for last, by the tile's lowest bit. */
  private readonly last: (Asked | undefined)[] = [];
  /** Counts up whenever tiles of rows have arrived. */
  version = 0;

  constructor(
    private readonly source: Source,
    arrived: () => void,
    failed: (message: string) => void,
  ) {
    this.queue = new Queue(arrived, (error) => failed(error instanceof Error ? error.message : String(error)));
  }

  get bytes(): number {
    return this.spans.bytes + this.heats.bytes;
  }

  get busy(): number {
    return this.queue.busy;
  }

  /** To be called at the beginning of a frame, and `pump` at its end. */
  begin(): void {
    this.queue.frame++;
  }

  pump(): void {
    this.queue.pump();
  }

  /** Fetches the tiles that `want` asks for, although nothing that is shown needs them yet. */
  ahead(want: () => void): void {
    this.queue.ahead = true;
    want();
    this.queue.ahead = false;
    this.queue.pump();
  }

  /** The tile, or undefined while it is fetched. */
  tile(trace: number, by: By, level: number, tile: number, chunk: number): Tile | undefined {
    // Rows beside each other are in the same two tiles, and are asked for one after the other.
    const last = this.last[tile & 1];
    const same = last?.trace === trace && last.by === by && last.level === level && last.chunk === chunk;
    if (same && last.tile === tile && last.version === this.version && last.frame === this.queue.frame)
      return last.found;
    const found = this.look(trace, by, level, tile, chunk);
    this.last[tile & 1] = { trace, by, level, tile, chunk, version: this.version, frame: this.queue.frame, found };
    return found;
  }

  private look(trace: number, by: By, level: number, tile: number, chunk: number): Tile | undefined {
    return this.found(this.spans, `${this.list(trace, by)}/${level}`, tile, chunk, async (tiles, chunks, signal) => {
      const made = await this.source.tiles(trace, by, level, tiles, chunks, signal);
      this.version++;
      return made;
    });
  }

  private found<T extends Sized>(
    held: Lru<T>,
    batch: string,
    tile: number,
    chunk: number,
    get: (tiles: readonly number[], chunks: readonly number[], signal: AbortSignal) => Promise<T[]>,
  ): T | undefined {
    const key = keyOf(batch, tile, chunk);
    const found = held.get(key);
    if ((!found || this.stale.has(key)) && !this.broken.has(key))
      this.queue.want(batch, tile, chunk, async (tiles, chunks, signal) => {
        const keys = tiles.flatMap((one) => chunks.map((other) => keyOf(batch, one, other)));
        try {
          (await get(tiles, chunks, signal)).forEach((made, i) => held.set(keys[i] as string, made));
        } catch (error) {
          if (!(error instanceof DOMException)) for (const one of keys) this.broken.add(one);
          throw error;
        }
        for (const one of keys) this.stale.delete(one);
      });
    return found;
  }

  /** A coarser tile that covers the same span, if one is there. */
  standIn(trace: number, by: By, level: number, tile: number, chunk: number): Tile | undefined {
    for (let up = 1; up <= COARSER; up++) {
      const found = this.spans.get(keyOf(`${this.list(trace, by)}/${level + up}`, Math.floor(tile / 2 ** up), chunk));
      if (found) return found;
    }
    return undefined;
  }

  heat(trace: number, of: string, level: number, tile: number, group: number): HeatTile | undefined {
    return this.found(this.heats, `${trace}/heat:${of}:${group}/${level}`, tile, 0, (tiles, _, signal) =>
      this.source.heat(trace, of, level, tiles, group, signal),
    );
  }

  /** A coarser tile of the heat map over the same span, if one is there. */
  heatStandIn(trace: number, of: string, level: number, tile: number, group: number): HeatTile | undefined {
    for (let up = 1; up <= COARSER; up++) {
      const found = this.heats.get(keyOf(`${trace}/heat:${of}:${group}/${level + up}`, Math.floor(tile / 2 ** up), 0));
      if (found) return found;
    }
    return undefined;
  }

  /** The trace has grown from `end` on: every tile that reaches beyond it is fetched again when it is next seen. */
  grown(trace: number, end: number): void {
    for (const key of [...this.spans.keys(), ...this.heats.keys()]) {
      const [id, , level, , tile] = key.split("/").map(Number) as [number, number, number, number, number];
      if (id === trace && (tile + 1) * tileSpan(level) > end) this.stale.add(key);
    }
  }

  /** The rows of a trace have other numbers from now on: their tiles so far are of no use. */
  reordered(trace: number, by: By): void {
    const list = this.list(trace, by);
    this.orders.set(`${trace}/${by}`, (this.orders.get(`${trace}/${by}`) ?? 0) + 1);
    for (const key of this.spans.keys()) if (key.startsWith(`${list}/`)) this.spans.drop(key);
  }

  private list(trace: number, by: By): string {
    return `${trace}/${by}${this.orders.get(`${trace}/${by}`) ?? 0}`;
  }
}
