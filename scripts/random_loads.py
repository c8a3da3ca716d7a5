"""Writes workload files drawn at random, to compare a scheduler with a real kernel's where nobody thought of it.

    python3 scripts/random_loads.py /tmp/loads --cpus 1 --number 30
    schedlab fidelity --on vm:debian-6.12 --deterministic /tmp/loads/*.json

Each file has some of the language's features, drawn by its number: groups and quotas, nested, policies, nice levels,
slices, affinities, semaphores, a mutex, a barrier, yields, phases, forks. The same number makes the same file. Times
are some ms, so that what calls take in a guest is little beside them.
"""

import argparse
import json
import random
from pathlib import Path
from typing import Any

#: A task, or a workload.
Object = dict[str, Any]

FEATURES = (
    *("barrier", "batch", "fork", "groups", "idle", "mutex", "nested", "nice", "phases", "pin", "quota", "rt"),
    *("sem", "slice", "yield"),
)


class Draw:
    """One workload. Each choice is the next of its number's."""

    def __init__(self, number: int, cpus: int) -> None:
        """Choose the features."""
        self.random = random.Random(number * 100 + cpus)
        self.cpus = cpus
        self.has = set(self.random.sample(FEATURES, self.random.randint(2, 5)))
        self.names = iter("abcdefghijklmnop")
        self.groups: Object = {}
        self.tasks: Object = {}

    def us(self, *choices: int) -> int | Object:
        """Return one of these lengths, mostly as a mean with a deviation."""
        mean = self.random.choice(choices)
        if self.likely(0.6):
            return {"mean": mean, "sd": int(mean * self.random.choice([0.1, 0.2, 0.3]))}
        return mean

    def likely(self, chance: float) -> bool:
        """Return whether something is so that is so this often."""
        return self.random.random() < chance

    def often(self, feature: str, chance: float) -> bool:
        """Return whether a task has a feature that the workload has."""
        return feature in self.has and self.likely(chance)

    def make_groups(self) -> None:
        """Add one or two groups, each with a child if groups are nested."""
        for path in ("/g1", "/g2")[: self.random.randint(1, 2)]:
            group = {"weight": self.random.choice([20, 50, 100, 200, 500])}
            if self.often("quota", 0.7):
                group["period_us"] = self.random.choice([20_000, 50_000, 100_000])
                cpus = self.random.choice([1, self.cpus])
                group["quota_us"] = int(group["period_us"] * self.random.choice([0.2, 0.4, 0.6]) * cpus)
            self.groups[path] = group
            if "nested" in self.has:
                self.groups[f"{path}/n"] = {"weight": self.random.choice([50, 100, 300])}

    def add(self, body: Object, *, plain: bool = False) -> str:
        """Add a task, with properties unless it is plain; its name."""
        task: Object = {}
        if not plain:
            if self.often("batch", 0.3):
                task["policy"] = "SCHED_BATCH"
            elif self.often("idle", 0.3):
                task["policy"] = "SCHED_IDLE"
            elif self.often("slice", 0.4):
                task["dl-runtime"] = self.random.choice([500, 1_000, 5_000, 10_000, 20_000])
            if task.get("policy") != "SCHED_IDLE" and self.often("nice", 0.6):
                task["priority"] = self.random.choice([-10, -5, -3, 3, 5, 10, 19])
            if self.cpus > 1 and self.often("pin", 0.5):
                task["cpus"] = sorted(self.random.sample(range(self.cpus), self.random.randint(1, self.cpus - 1)))
            if self.groups and self.likely(0.7):
                task["taskgroup"] = self.random.choice(list(self.groups))
        name = next(self.names)
        self.tasks[name] = {"loop": -1} | task | body
        return name

    def common(self) -> None:
        """Add tasks that wait for nobody."""
        for number in range(self.random.randint(2, 3 + self.cpus // 2)):
            kinds = ["hog", "sleeper", "sleeper", "timer", *(self.has & {"phases", "yield"})]
            kind = self.random.choice(sorted(kinds))
            body: Object = {"instance": self.random.randint(1, max(2, self.cpus))}
            if kind == "hog":
                body |= {"run": 10_000}
            elif kind == "sleeper":
                body |= {"run": self.us(500, 1_000, 3_000, 8_000), "sleep": self.us(1_000, 4_000, 10_000, 30_000)}
            elif kind == "timer":
                period = self.random.choice([5_000, 10_000, 20_000, 50_000])
                mode = self.random.choice(["absolute", "relative"])
                run = self.us(period // 10, period // 3, period // 2)
                body |= {"run": run, "timer": {"ref": f"unique{number}", "period": period, "mode": mode}}
            elif kind == "yield":
                body |= {"run": self.random.choice([1_000, 3_000]), "yield": ""}
            else:
                quick = {"loop": self.random.randint(5, 50), "run": 2_000, "sleep": self.random.choice([1_000, 5_000])}
                body |= {"phases": {"quick": quick, "long": {"loop": 1, "run": self.random.choice([50_000, 200_000])}}}
            self.add(body)

    def special(self) -> None:
        """Add what the features ask for besides."""
        if "rt" in self.has:
            period = self.random.choice([10_000, 30_000])
            policy = {"policy": self.random.choice(["SCHED_FIFO", "SCHED_RR"]), "priority": 10}
            self.add(policy | {"run": self.us(period // 7), "timer": {"ref": "uniquert", "period": period}}, plain=True)
        if "sem" in self.has:
            self.add({"run": self.us(500, 2_000), "sem_post": "there", "sem_wait": "back"})
            self.add({"sem_wait": "there", "run": self.us(500, 2_000), "sem_post": "back"})
        if "mutex" in self.has:
            locked = {"lock": "m", "run": self.us(300, 1_000), "unlock": "m"}
            rest = {"run1": self.us(1_000, 3_000), "sleep": self.us(1_000, 3_000)}
            self.add({"instance": self.random.randint(2, 4)} | locked | rest)
        if "barrier" in self.has:
            team = {"instance": self.random.randint(2, 4)}
            self.add(team | {"run": self.us(1_000, 5_000), "barrier": "b", "sleep": 2_000})
        if "fork" in self.has:
            phase = {"loop": self.random.randint(1, 3), "run": self.us(2_000, 8_000), "sleep": 1_000}
            child = self.add({"instance": 0, "loop": 1, "phases": {"p": phase}}, plain=True)
            self.add({"fork": child, "run": 1_000, "sleep": self.random.choice([10_000, 30_000])})

    def workload(self) -> Object:
        """Return the whole."""
        if self.has & {"groups", "quota", "nested"}:
            self.make_groups()
        self.common()
        self.special()
        groups = {"x-groups": self.groups} if self.groups else {}
        return {"global": {"duration": 3}, "tasks": self.tasks} | groups


def main() -> None:
    """Write the files, and print which has what."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files go")
    parser.add_argument("--cpus", type=int, default=1, help="the number of CPUs that they are for (default: 1)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first (default: 0)")
    parser.add_argument("--number", type=int, default=30, help="how many (default: 30)")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for number in range(args.first, args.first + args.number):
        draw = Draw(number, args.cpus)
        file = args.folder / f"random-{args.cpus}-{number}.json"
        file.write_text(json.dumps(draw.workload(), indent=1) + "\n")
        print(f"{file}: {', '.join(sorted(draw.has))}")


if __name__ == "__main__":
    main()
