#!/usr/bin/env python3
"""What a command takes: seconds, seconds of the processor, and the most memory in bytes, of all its processes together.

It is started by a process of its own, which is small: the kernel counts for a process what the one that started it had.
"""

import json
import os
import subprocess
import sys
import time


def measured(command):
    """Seconds, seconds of the processor, bytes."""
    itself = [sys.executable, os.path.abspath(__file__), *command]
    done = subprocess.run(itself, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return json.loads(done.stdout)


def proportional_memory(root):
    """Of a process and all below it, in bytes: what several share counts once."""
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                children.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(pid))
        except (FileNotFoundError, ProcessLookupError):
            pass
    total, unvisited = 0, [root]
    while unvisited:
        pid = unvisited.pop()
        unvisited += children.get(pid, [])
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
                total += next(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
        except (FileNotFoundError, ProcessLookupError, PermissionError, StopIteration):
            pass
    return total


def measure(command):
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most = 0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        seconds = time.perf_counter() - start
        if pid:
            break
        # Rarely where it takes long: to look takes time, too.
        if seconds > 5:
            most = max(most, proportional_memory(process.pid))
        time.sleep(0.005 if seconds < 5 else 0.25)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        sys.exit(1)
    return seconds, usage.ru_utime + usage.ru_stime, max(most, usage.ru_maxrss * 1024)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1:])))
