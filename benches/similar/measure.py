#!/usr/bin/env python3
"""What a command takes: seconds, seconds of the processor, and the most memory in bytes, of all its processes together; where a
folder is given for its temporary files, also the most that these take there, and the bytes that it has read and written.

It is started by a process of its own, which is small: the kernel counts for a process what the one that started it had.
"""

import json
import os
import subprocess
import sys
import time


def measured(command):
    """Seconds, seconds of the processor, bytes."""
    taken = taken_by(command)
    return taken["seconds"], taken["processor"], taken["memory"]


def taken_by(command, folder=None, may_fail=False):
    """By name: `seconds`, `processor`, `memory`, `disk` in the folder, `moved`: read and written; None if it fails, and may."""
    itself = [sys.executable, os.path.abspath(__file__), folder or "", *command]
    done = subprocess.run(itself, stdout=subprocess.PIPE, text=True)
    if done.returncode and may_fail:
        return None
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


def disk_of(folder):
    """Bytes that the files below a folder take."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return total


def moved_by(pid):
    """Bytes that a process which has ended has read and written, be it from a cache; files that are mapped do not count."""
    with open(f"/proc/{pid}/io", encoding="utf-8") as file:
        counts = dict(line.split(": ") for line in file)
    return int(counts["rchar"]) + int(counts["wchar"])


def measure(command, folder):
    before = disk_of(folder) if folder else 0
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most = disk = 0
    while True:
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        seconds = time.perf_counter() - start
        if ended:
            break
        # Rarely where it takes long: to look takes time, too.
        if seconds > 5:
            most = max(most, proportional_memory(process.pid))
        if folder:
            disk = max(disk, disk_of(folder) - before)
        time.sleep(0.005 if seconds < 5 else 0.25)
    moved = moved_by(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        sys.exit(1)
    memory = max(most, usage.ru_maxrss * 1024)
    processor = usage.ru_utime + usage.ru_stime
    return {"seconds": seconds, "processor": processor, "memory": memory, "disk": disk, "moved": moved}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[2:], sys.argv[1])))
