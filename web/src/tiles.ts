/** The tiles that were fetched, bounded in memory, and those under way. */
import { ROWS_PER_TILE, TILE_BINS, type By, type HeatTile, type Source, type Tile } from "./source";

/** The level whose bins are nearest to one pixel. */
export function levelOf(nsPerPixel: number): number {
  return Math.max(0, Math.min(46, Math.round(Math.log2(Math.max(nsPerPixel, 1)))));
}

/** The length of a tile of a level, in ns. */
export function tileSpan(level: number): number {
  return TILE_BINS * 2 ** level;
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

interface Request {
  key: string;
  run: (signal: AbortSignal) => Promise<void>;
  abort: AbortController;
  /** The frame in which it was last wanted. */
  wanted: number;
}

/** Fetches of which few run at once; what nobody wants any more is dropped. */
class Queue {
  private readonly waiting = new Map<string, Request>();
  private readonly running = new Map<string, Request>();
  frame = 0;

  constructor(private readonly failed: (error: unknown) => void) {}

  get busy(): number {
    return this.waiting.size + this.running.size;
  }

  want(key: string, run: Request["run"]): void {
    const known = this.running.get(key) ?? this.waiting.get(key);
    if (known) {
      known.wanted = this.frame;
      return;
    }
    this.waiting.set(key, { key, run, abort: new AbortController(), wanted: this.frame });
  }

  /** Starts what was wanted in this frame, the last wanted first, and drops the rest. */
  pump(): void {
    for (const request of this.waiting.values()) {
      if (request.wanted < this.frame - 1) this.waiting.delete(request.key);
      else if (this.running.size < AT_ONCE) this.start(request);
    }
    for (const request of this.running.values()) if (request.wanted < this.frame - 40) request.abort.abort();
  }

  private start(request: Request): void {
    this.waiting.delete(request.key);
    this.running.set(request.key, request);
    request
      .run(request.abort.signal)
      .catch((error: unknown) => {
        if (!request.abort.signal.aborted) this.failed(error);
      })
      .finally(() => {
        this.running.delete(request.key);
        this.pump();
      });
  }
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
  /** Counts up whenever a tile of rows has arrived. */
  version = 0;

  constructor(
    private readonly source: Source,
    private readonly arrived: () => void,
    failed: (message: string) => void,
  ) {
    this.queue = new Queue((error) => failed(error instanceof Error ? error.message : String(error)));
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

  /** The tile, or undefined while it is fetched. */
  tile(trace: number, by: By, level: number, tile: number, chunk: number): Tile | undefined {
    const key = `${this.list(trace, by)}/${level}/${tile}/${chunk}`;
    const found = this.spans.get(key);
    if ((!found || this.stale.has(key)) && !this.broken.has(key)) {
      this.queue.want(key, async (signal) => {
        const fetched = await this.fetch(key, () =>
          this.source.tile(trace, by, level, tile, chunk * ROWS_PER_TILE, ROWS_PER_TILE, signal),
        );
        this.spans.set(key, fetched);
        this.version++;
        this.done(key);
      });
    }
    return found;
  }

  /** A coarser tile that covers the same span, if one is there. */
  standIn(trace: number, by: By, level: number, tile: number, chunk: number): Tile | undefined {
    for (let up = 1; up <= COARSER; up++) {
      const found = this.spans.get(`${this.list(trace, by)}/${level + up}/${Math.floor(tile / 2 ** up)}/${chunk}`);
      if (found) return found;
    }
    return undefined;
  }

  heat(trace: number, of: string, level: number, tile: number, group: number): HeatTile | undefined {
    const key = `${trace}/heat:${of}:${group}/${level}/${tile}`;
    const found = this.heats.get(key);
    if ((!found || this.stale.has(key)) && !this.broken.has(key)) {
      this.queue.want(key, async (signal) => {
        this.heats.set(key, await this.fetch(key, () => this.source.heat(trace, of, level, tile, group, signal)));
        this.done(key);
      });
    }
    return found;
  }

  /** A coarser tile of the heat map over the same span, if one is there. */
  heatStandIn(trace: number, of: string, level: number, tile: number, group: number): HeatTile | undefined {
    for (let up = 1; up <= COARSER; up++) {
      const found = this.heats.get(`${trace}/heat:${of}:${group}/${level + up}/${Math.floor(tile / 2 ** up)}`);
      if (found) return found;
    }
    return undefined;
  }

  /** The trace has grown from `end` on: every tile that reaches beyond it is fetched again when it is next seen. */
  grown(trace: number, end: number): void {
    for (const key of [...this.spans.keys(), ...this.heats.keys()]) {
      const [id, , level, tile] = key.split("/");
      if (Number(id) === trace && (Number(tile) + 1) * tileSpan(Number(level)) > end) this.stale.add(key);
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

  private async fetch<T>(key: string, get: () => Promise<T>): Promise<T> {
    try {
      return await get();
    } catch (error) {
      if (!(error instanceof DOMException)) this.broken.add(key);
      throw error;
    }
  }

  private done(key: string): void {
    this.stale.delete(key);
    this.arrived();
  }
}
