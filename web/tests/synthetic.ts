/**
 * A made-up trace with everything in it: tasks that run, wait, sleep and block, idle CPUs beside waiting tasks, a
 * loss.
 */
import { tableFromArrays, tableToIPC } from "@uwdata/flechette";
import type { Bundle } from "../src/bundled";
import { NONE, State, type ListItem, type Row, type TraceInfo } from "../src/source";

/** Small numbers that look random and are the same each time. */
export function random(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

interface Span {
  row: number;
  start: number;
  end: number;
  state: number;
  task: number;
}

interface Options {
  cpus: number;
  tasks: number;
  end: number;
  seed: number;
  names?: string[];
}

export interface Made {
  info: TraceInfo;
  rows: { cpu: Row[]; task: Row[] };
  spans: { cpu: Span[]; task: Span[] };
  steps: { cpu: number; start: number; length: number }[];
  marks: Record<string, number[][]>;
  violations: ListItem[];
}

function rowsOf({ cpus, tasks, names }: Options): Made["rows"] {
  const cpu: Row[] = [];
  const half = Math.ceil(cpus / 2);
  for (let node = 0; node < 2; node++) {
    const members = Array.from({ length: node ? cpus - half : half }, (_, i) => node * half + i);
    if (!members.length) continue;
    cpu.push({ row: cpu.length, kind: "group", label: `node ${node}`, depth: 0, children: members.length });
    for (const id of members) cpu.push({ row: cpu.length, kind: "cpu", label: `CPU ${id}`, depth: 1, cpu: id });
  }
  const usual = ["make", "cc1", "nginx", "postgres", "kworker/0:1", "player"];
  const task: Row[] = [];
  for (let i = 0; i < tasks; i++) {
    const name = names?.[i] ?? `${usual[i % usual.length] as string}-${Math.floor(i / usual.length)}`;
    task.push({
      row: i,
      kind: "task",
      label: `${name} ${1000 + i}`,
      depth: 0,
      task: i,
      tid: 1000 + i,
      name,
      process: name,
      group: "/user.slice",
      run: 1,
      wait: 1,
    });
  }
  return { cpu, task };
}

/**
 * Each task belongs to one CPU; they take turns there, sleep and block. The last CPU idles while others are crowded.
 */
export function make(options: Options): Made {
  const { cpus, tasks, end, seed } = options;
  const next = random(seed);
  const rows = rowsOf(options);
  const made: Made = {
    info: {
      id: 0,
      name: "made-up.arrows",
      kind: "simulated",
      kernel: "linux-6.12",
      machine: "made up",
      end,
      events: 0,
      cpus: Array.from({ length: cpus }, (_, i) => i),
      tasks,
      growing: false,
      reading: false,
      until: null,
      checked: true,
      explainable: false,
      memory: false,
      considered: false,
      load: false,
      frequency: false,
      losses: 1,
      lost_from: 0,
      partial: null,
      remarks: [],
      nodes: [],
    },
    rows,
    spans: { cpu: [], task: [] },
    steps: [],
    marks: { wake: [], migrate: [], violation: [], loss: [] },
    violations: [],
  };
  const rowOfCpu = new Map(rows.cpu.flatMap((row) => (row.cpu === undefined ? [] : [[row.cpu, row.row] as const])));
  const bursts = Math.max(1, cpus - 1);
  for (let cpu = 0; cpu < cpus; cpu++) {
    const own = cpu === cpus - 1 ? [] : Array.from({ length: tasks }, (_, i) => i).filter((i) => i % bursts === cpu);
    oneCpu(made, cpu, rowOfCpu.get(cpu) as number, own, end, next);
  }
  made.spans.cpu.sort((a, b) => a.row - b.row || a.start - b.start);
  made.spans.task.sort((a, b) => a.row - b.row || a.start - b.start);
  const idle = cpus - 1;
  made.marks["violation"] = [[end * 0.3, 0, idle, NONE, 0, end * 0.2]];
  made.violations = [
    {
      start: end * 0.3,
      duration: end * 0.2,
      cpu: 0,
      idle_cpu: idle,
      busy_cpu: 0,
      task: { task: 0, tid: 1000, name: rows.task[0]?.name ?? "" },
      tasks: 3,
      sentence: "CPU idle while tasks waited",
    },
  ];
  made.marks["loss"] = [[end * 0.7, NONE, 1, NONE, NONE, end * 0.05]];
  made.info.events = made.spans.cpu.length * 2;
  return made;
}

function oneCpu(made: Made, cpu: number, row: number, own: number[], end: number, next: () => number): void {
  const states = new Map<number, { state: number; since: number }>(
    own.map((task) => [task, { state: State.waiting, since: 0 }]),
  );
  const put = (task: number, time: number, state: number) => {
    const now = states.get(task);
    if (!now) return;
    if (time > now.since)
      made.spans.task.push({
        row: task,
        start: now.since,
        end: time,
        state: now.state,
        task: now.state === State.sleeping ? NONE : cpu,
      });
    states.set(task, { state, since: time });
  };
  const wakes: [number, number][] = [];
  const queue = [...own];
  for (let time = 0; time < end;) {
    for (const wake of wakes.splice(0).sort((a, b) => a[0] - b[0])) {
      if (wake[0] > time) {
        wakes.push(wake);
        continue;
      }
      put(wake[1], Math.max(wake[0], states.get(wake[1])?.since ?? 0), State.waiting);
      (made.marks["wake"] as number[][]).push([wake[0], cpu, cpu, NONE, wake[1], 0]);
      queue.push(wake[1]);
    }
    const task = queue.shift();
    made.steps.push({ cpu, start: time, length: queue.length + (task === undefined ? 0 : 1) });
    if (task === undefined) {
      const until = Math.min(end, ...wakes.map(([at]) => at));
      made.spans.cpu.push({ row, start: time, end: until, state: State.idle, task: NONE });
      time = until;
      continue;
    }
    const until = Math.min(end, Math.round(time + 2e5 + next() * 4e6));
    put(task, time, State.running);
    made.spans.cpu.push({ row, start: time, end: until, state: State.running, task });
    const fate = next();
    if (fate < 0.55) {
      put(task, until, State.waiting);
      queue.push(task);
    } else {
      put(task, until, fate < 0.85 ? State.sleeping : State.blocked);
      wakes.push([Math.round(until + 1e6 + next() * 2e7), task]);
    }
    time = until;
  }
  for (const task of own) put(task, end, State.absent);
}

function base64(columns: Record<string, ArrayLike<number>>): string {
  const ipc = tableToIPC(tableFromArrays(columns as Record<string, Float64Array>), { format: "stream" }) as Uint8Array;
  let text = "";
  for (const byte of ipc) text += String.fromCharCode(byte);
  return btoa(text);
}

function spanColumns(spans: Span[]): string {
  return base64({
    row: Uint32Array.from(spans, (s) => s.row),
    start: Float64Array.from(spans, (s) => s.start),
    end: Float64Array.from(spans, (s) => s.end),
    state: Uint8Array.from(spans, (s) => s.state),
    task: Uint32Array.from(spans, (s) => s.task),
  });
}

function markColumns(marks: number[][], kind: number): string {
  const sorted = [...marks].sort((a, b) => (a[0] as number) - (b[0] as number));
  const u = (k: number) => Uint32Array.from(sorted, (mark) => mark[k] as number);
  return base64({
    time: Float64Array.from(sorted, (mark) => mark[0] as number),
    duration: Float64Array.from(sorted, (mark) => mark[5] as number),
    kind: new Uint8Array(sorted.length).fill(kind),
    from_cpu: u(1),
    to_cpu: u(2),
    from_task: u(3),
    to_task: u(4),
  });
}

/** The bundle of a page that carries these traces. */
export function bundleOf(traces: Made[]): Bundle {
  const responses: Bundle["responses"] = {};
  const arrow: Bundle["arrow"] = {};
  traces.forEach((made, id) => {
    made.info.id = id;
    for (const by of ["cpu", "task"] as const) {
      responses[`api/${id}/rows?by=${by}`] = { rows: made.rows[by], left_out: 0 };
      if (made.spans[by].length) arrow[`${id}/${by}`] = spanColumns(made.spans[by]);
    }
    const steps = made.steps;
    if (steps.length)
      arrow[`${id}/queue`] = base64({
        cpu: Uint32Array.from(steps, (s) => s.cpu),
        start: Float64Array.from(steps, (s) => s.start),
        length: Uint32Array.from(steps, (s) => s.length),
      });
    Object.entries(made.marks).forEach(([kind, marks], k) => {
      if (marks.length) arrow[`${id}/${kind}`] = markColumns(marks, k);
    });
    responses[`api/${id}/lists?of=violations`] = { items: made.violations, left_out: 0 };
    const waits = made.spans.task
      .filter((span) => span.state === State.waiting)
      .sort((a, b) => b.end - b.start - (a.end - a.start))
      .slice(0, 100);
    responses[`api/${id}/lists?of=waits`] = {
      items: waits.map((span) => ({
        start: span.start,
        duration: span.end - span.start,
        cpu: span.task,
        task: { task: span.row, tid: 1000 + span.row, name: made.rows.task[span.row]?.name },
      })),
      left_out: 0,
    };
  });
  return { traces: { traces: traces.map(({ info }) => info), view: null }, responses, arrow };
}
