#!/usr/bin/env python3
"""Prints the resource usage of the jobs of a Spark application as a Markdown table, with a row for each job group and stage.

    venv/bin/python benches/spark/events.py EVENTLOG [--stages] [--group NAME]

EVENTLOG is a log of `spark.eventLog.enabled`, neither rolled nor compressed (`cluster.py` sets these options). A job belongs to the group
that `SparkContext.setJobGroup` has set when the job starts, or to the group "" if none is set.
"""

import argparse
import collections
import json

# Sums over the successful tasks, and the path of each value in the event of a task.
METRIC_PATHS = {
    "run_ms": ("Executor Run Time",),
    "cpu_ns": ("Executor CPU Time",),
    "gc_ms": ("JVM GC Time",),
    "spilled": ("Disk Bytes Spilled",),
    "spilled_memory": ("Memory Bytes Spilled",),
    "written": ("Shuffle Write Metrics", "Shuffle Bytes Written"),
    "written_rows": ("Shuffle Write Metrics", "Shuffle Records Written"),
    "write_ns": ("Shuffle Write Metrics", "Shuffle Write Time"),
    "read_local": ("Shuffle Read Metrics", "Local Bytes Read"),
    "read_remote": ("Shuffle Read Metrics", "Remote Bytes Read"),
    "read_rows": ("Shuffle Read Metrics", "Total Records Read"),
    "wait_ms": ("Shuffle Read Metrics", "Fetch Wait Time"),
    "input": ("Input Metrics", "Bytes Read"),
    "input_rows": ("Input Metrics", "Records Read"),
    "output": ("Output Metrics", "Bytes Written"),
}
# Metrics of Spark's operators that show where time and bytes are spent.
OPERATORS = (
    "data sent to Python workers",
    "data returned from Python workers",
    "number of output rows",
    "time to run Python workers",
    "time to start Python workers",
    "time to initialize Python workers",
    "sort time",
    "time in aggregation build",
    "shuffle records written",
)


def _read_metric(metrics, path):
    for name in path:
        metrics = metrics.get(name) or {}
    return metrics or 0


class Stage:
    """One attempt of Spark to run a stage.

    `sums` has figures by name, each summed over the successful tasks. `failed` is the number of failed tasks.
    """

    def __init__(self, number, name):
        self.number = number
        self.name = name
        self.tasks = 0
        self.failed = 0
        self.start = self.end = None
        self.sums = collections.Counter()
        self.operators = collections.Counter()
        self.longest_ms = 0

    def add(self, event):
        info, metrics = event["Task Info"], event.get("Task Metrics") or {}
        self.start = min(self.start or info["Launch Time"], info["Launch Time"])
        self.end = max(self.end or 0, info["Finish Time"])
        if event["Task End Reason"]["Reason"] != "Success":
            self.failed += 1
            return
        self.tasks += 1
        self.longest_ms = max(self.longest_ms, info["Finish Time"] - info["Launch Time"])
        for name, path in METRIC_PATHS.items():
            self.sums[name] += _read_metric(metrics, path)
        for update in info["Accumulables"]:
            if update.get("Name") in OPERATORS:
                self.operators[update["Name"]] += int(update.get("Update") or 0)


class Group:
    """A Spark job group: its jobs and their stages. `start` and `end` are in milliseconds since 1970."""

    def __init__(self, name):
        self.name = name
        self.start = self.end = None
        self.jobs = 0
        self.stages = []

    @property
    def seconds(self):
        """Seconds from the start of the first job to the end of the last job."""
        return (self.end - self.start) / 1000

    @property
    def tasks(self):
        return sum(stage.tasks for stage in self.stages)

    def total(self, name):
        return sum(stage.sums[name] for stage in self.stages)

    @property
    def shuffled_bytes(self):
        """Bytes written for shuffles."""
        return self.total("written")

    @property
    def read_bytes(self):
        """Bytes read from shuffles, local and remote."""
        return self.total("read_local") + self.total("read_remote")


def read_groups(path):
    """Returns the job groups of an event log by name."""
    groups_by_name, group_by_stage, stages = {}, {}, {}
    group_by_job = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            kind = event["Event"]
            if kind == "SparkListenerJobStart":
                name = (event.get("Properties") or {}).get("spark.jobGroup.id", "")
                group = groups_by_name.setdefault(name, Group(name))
                group_by_job[event["Job ID"]] = group
                group.jobs += 1
                group.start = min(group.start or event["Submission Time"], event["Submission Time"])
                # Later jobs also list stages that already ran, and skip them, so the first job owns a stage.
                for stage in event["Stage IDs"]:
                    group_by_stage.setdefault(stage, group)
            elif kind == "SparkListenerJobEnd":
                group = group_by_job[event["Job ID"]]
                group.end = max(group.end or 0, event["Completion Time"])
            elif kind == "SparkListenerTaskEnd":
                key = event["Stage ID"], event["Stage Attempt ID"]
                if key not in stages:
                    stages[key] = Stage(event["Stage ID"], "")
                    group_by_stage[event["Stage ID"]].stages.append(stages[key])
                stages[key].add(event)
            elif kind == "SparkListenerStageCompleted":
                info = event["Stage Info"]
                key = info["Stage ID"], info["Stage Attempt ID"]
                if key in stages:
                    scopes = [json.loads(rdd["Scope"])["name"] for rdd in info["RDD Info"] if "Scope" in rdd]
                    stages[key].name = " < ".join(dict.fromkeys(scopes)) or info["Stage Name"]
    return groups_by_name


def mebibytes(count):
    return f"{count / 2**20:,.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log")
    parser.add_argument("--stages", action="store_true", help="also print a row for each stage, with metrics of its operators")
    parser.add_argument("--group", help="print only this group")
    arguments = parser.parse_args()
    print("| jobs or stage | s | tasks | longest task, s | run, s | processor of the JVM, s | GC, s | ", end="")
    print("written to shuffle, MiB | rows | read, MiB | spilled, MiB | |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name, group in read_groups(arguments.log).items():
        if arguments.group not in (None, name) or group.end is None:
            continue
        rows = [(f"**{name}**", group.seconds, group.stages, "")]
        if arguments.stages:
            for stage in group.stages:
                operators = ", ".join(f"{key}: {value:,}" for key, value in stage.operators.items())
                rows.append((f"{stage.number}", (stage.end - stage.start) / 1000, [stage], f"{stage.name}; {operators}"))
        for label, seconds, stages, operators in rows:
            sums = sum((stage.sums for stage in stages), collections.Counter())
            longest = max((stage.longest_ms for stage in stages), default=0) / 1000
            print(
                f"| {label} | {seconds:.1f} | {sum(stage.tasks for stage in stages)} | {longest:.1f} | {sums['run_ms'] / 1e3:.1f} | "
                f"{sums['cpu_ns'] / 1e9:.1f} | {sums['gc_ms'] / 1e3:.1f} | {mebibytes(sums['written'])} | {sums['written_rows']:,} | "
                f"{mebibytes(sums['read_local'] + sums['read_remote'])} | {mebibytes(sums['spilled'])} | {operators} |"
            )


if __name__ == "__main__":
    main()
