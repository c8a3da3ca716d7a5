// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the run queues of all CPUs and the tasks that wait on them.
 *
 * Three programs, each run when the checker asks; none is attached to an event, so that nothing costs anything between
 * two looks:
 *
 *   find_queues  (task iterator)   notes where each CPU's run queue is, by way of a kernel thread that is bound there
 *   read_queues  (BPF_PROG_RUN)    reads the queues of BATCH CPUs
 *   list_waiting (task iterator)   lists the tasks that wait for a CPU
 *
 * The address of `runqueues` itself is known only on kernels with CONFIG_KALLSYMS_ALL; the way through a thread's
 * scheduling entity works on all with group scheduling. The structures below name only the fields that are read. Where
 * these are in the running kernel is filled in from its BTF when the program is loaded.
 */

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define KERNEL __attribute__((preserve_access_index))
#define exists(field) __builtin_preserve_field_info(field, 2)

enum { BATCH = 64, MOST_CPUS = 8192, MOST_WORDS = MOST_CPUS / 64 };
enum { MAP_ARRAY = 2 };
enum { PF_KTHREAD = 0x00200000 };
enum { SCHED_FIFO = 1, SCHED_RR = 2, SCHED_DEADLINE = 6, SCHED_EXT = 7 };
/* What is known of a CPU. */
enum { KNOWN = 1, ONLINE = 2, IDLE = 4, RT_THROTTLED = 8 };

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static u32 (*this_cpu)(void) = (void *)8;
static long (*read_kernel)(void *to, u32 bytes, const void *from) = (void *)113;
static long (*seq_write)(void *seq, const void *data, u32 bytes) = (void *)127;

struct cpumask;
struct rq;

struct cfs_rq {
	struct rq *rq;
	int throttle_count;
	u32 h_nr_queued;
	u32 h_nr_runnable;
	u32 h_nr_delayed;
} KERNEL;

struct rt_rq {
	int rt_throttled;
} KERNEL;

struct task_struct;

struct rq {
	u32 nr_running;
	int online;
	struct task_struct *curr;
	struct task_struct *idle;
	struct cfs_rq cfs;
	struct rt_rq rt;
} KERNEL;

struct sched_entity {
	struct cfs_rq *cfs_rq;
	/* Of 4 bytes until 6.11: the loader widens the access. */
	u8 on_rq;
	u8 sched_delayed;
} KERNEL;

struct thread_info {
	u32 cpu;
} KERNEL;

struct task_struct {
	int on_cpu;
	int on_rq;
	u32 policy;
	u32 flags;
	int nr_cpus_allowed;
	int pid;
	int tgid;
	char comm[16];
	struct sched_entity se;
	const struct cpumask *cpus_ptr;
	struct thread_info thread_info;
} KERNEL;

/* Until 5.15. */
struct task_struct___cpu {
	u32 cpu;
} KERNEL;

struct bpf_iter_meta {
	void *seq;
} KERNEL;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} KERNEL;

/* A CPU as the loader reads it. */
struct cpu_now {
	u32 flags;
	u32 queued;
};

struct batch {
	struct cpu_now cpus[BATCH];
};

/* A waiting task as the loader reads it, followed by the words of its allowed CPUs. */
struct waiting {
	u32 tid;
	u32 tgid;
	u32 cpu;
	/* Whether the checker itself has that CPU at this moment. */
	u32 displaced;
	char comm[16];
	u64 allowed[MOST_WORDS];
};

struct {
	int (*type)[MAP_ARRAY];
	u32 *key;
	u64 *value;
	int (*max_entries)[MOST_CPUS];
} queues SEC(".maps");

struct {
	int (*type)[MAP_ARRAY];
	u32 *key;
	struct batch *value;
	int (*max_entries)[1];
} batches SEC(".maps");

struct {
	int (*type)[MAP_ARRAY];
	u32 *key;
	struct waiting *value;
	int (*max_entries)[1];
} scratch SEC(".maps");

/* The words of a set of CPUs; the loader sets it. */
const volatile u32 WORDS = 1;

#define READ(to, field) read_kernel(&(to), sizeof(to), __builtin_preserve_access_index(&(field)))

static inline u32 cpu_of(struct task_struct *task)
{
	struct task_struct___cpu *old = (void *)task;

	if (exists(old->cpu))
		return old->cpu;
	return task->thread_info.cpu;
}

SEC("iter/task")
int find_queues(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct cfs_rq *cfs;
	u64 *queue;
	u32 cpu;

	if (!task || !(task->flags & PF_KTHREAD) || task->nr_cpus_allowed != 1)
		return 0;
	cpu = cpu_of(task);
	cfs = task->se.cfs_rq;
	if (!cfs)
		return 0;
	queue = map_lookup(&queues, &cpu);
	if (queue)
		*queue = (u64)cfs->rq;
	return 0;
}

/* Tasks that sleep but are still on the queue, from 6.12 on. */
static inline u32 delayed_of(struct rq *rq)
{
	u32 queued = 0, runnable = 0;

	if (exists(rq->cfs.h_nr_runnable) && exists(rq->cfs.h_nr_queued)) {
		READ(queued, rq->cfs.h_nr_queued);
		READ(runnable, rq->cfs.h_nr_runnable);
		return queued > runnable ? queued - runnable : 0;
	}
	if (exists(rq->cfs.h_nr_delayed))
		READ(queued, rq->cfs.h_nr_delayed);
	return queued;
}

static inline void read_queue(struct rq *rq, u32 here, struct cpu_now *now)
{
	u64 curr = 0, idle = 0;
	u32 queued = 0, online = 0, throttled = 0, delayed = delayed_of(rq);

	READ(queued, rq->nr_running);
	READ(online, rq->online);
	READ(curr, rq->curr);
	READ(idle, rq->idle);
	if (exists(rq->rt.rt_throttled))
		READ(throttled, rq->rt.rt_throttled);
	queued = queued > delayed ? queued - delayed : 0;
	/* The checker runs here now, and does not count. */
	if (here && queued)
		queued--;
	now->queued = queued;
	now->flags = KNOWN | (online ? ONLINE : 0) | (throttled ? RT_THROTTLED : 0);
	if (!queued && (here || curr == idle))
		now->flags |= IDLE;
}

SEC("raw_tp/schedlab")
int read_queues(u64 *ctx)
{
	u32 first = ctx[0], here = this_cpu(), zero = 0;
	struct batch *batch = map_lookup(&batches, &zero);

	if (!batch)
		return 0;
	for (u32 i = 0; i < BATCH; i++) {
		u32 cpu = first + i;
		u64 *queue = map_lookup(&queues, &cpu);

		batch->cpus[i].flags = 0;
		if (queue && *queue)
			read_queue((struct rq *)*queue, cpu == here, &batch->cpus[i]);
	}
	return 0;
}

/* Whether the task waits for a CPU on which its class would run it. */
static inline int waits(struct task_struct *task)
{
	struct cfs_rq *cfs;
	u32 policy = task->policy;

	if (task->on_rq != 1 || task->on_cpu)
		return 0;
	/* It may have used up its budget. */
	if (policy == SCHED_DEADLINE)
		return 0;
	if (policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_EXT)
		return 1;
	if (!task->se.on_rq)
		return 0;
	/* It sleeps, and is still on the queue: from 6.12 on. */
	if (exists(task->se.sched_delayed) && task->se.sched_delayed)
		return 0;
	/* Its group may have used up its quota. */
	cfs = task->se.cfs_rq;
	if (cfs && exists(cfs->throttle_count) && cfs->throttle_count)
		return 0;
	return 1;
}

SEC("iter/task")
int list_waiting(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct waiting *out;
	u32 zero = 0, words = WORDS;

	if (!task || !waits(task))
		return 0;
	out = map_lookup(&scratch, &zero);
	if (!out)
		return 0;
	out->tid = task->pid;
	out->tgid = task->tgid;
	out->cpu = cpu_of(task);
	out->displaced = out->cpu == this_cpu();
	read_kernel(out->comm, sizeof(out->comm), task->comm);
	if (words > MOST_WORDS)
		words = MOST_WORDS;
	read_kernel(out->allowed, words * 8, task->cpus_ptr);
	seq_write(ctx->meta->seq, out, 32 + words * 8);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
