#!/usr/bin/env python3
"""Measures a command: seconds, CPU seconds and peak memory in bytes, of all its processes together. If a folder for temporary files
is given, also the peak disk use there, and the bytes that the command reads and writes.

A small process of its own starts the command: the kernel counts the memory of the starting process for the started one.
"""

import json
import os
import signal
import subprocess
import sys
import time

GIB = 1 << 30


def measured(command):
    """Seconds, CPU seconds, bytes."""
    taken = taken_by(command)
    return taken["seconds"], taken["processor"], taken["memory"]


def taken_by(command, folder=None, may_fail=False):
    """Figures by name: `seconds`, `processor`, `memory`, `disk` in the folder, `moved` (bytes read and written). A command that fails
    ends this program, or returns None if it may fail."""
    taken = attempt(command, folder)
    if taken["failure"] is None:
        return taken
    if may_fail:
        return None
    sys.exit(f"{' '.join(command)} failed: {taken['failure']}")


def attempt(command, folder=None, timeout=None, limit=None, log=None):
    """Figures by name as in `taken_by`, and `failure`: None, or the reason.

    A command fails after `timeout` seconds, and with more than `limit` bytes of memory. Its error messages go to the file `log`.
    """
    settings = {"folder": folder, "timeout": timeout, "limit": limit, "log": log}
    itself = [sys.executable, os.path.abspath(__file__), json.dumps(settings), *command]
    done = subprocess.run(itself, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return {"failure": "the measuring process was ended"}
    return json.loads(done.stdout)


def proportional_memory(root):
    """Memory in bytes of a process and its descendants; shared memory counts once."""
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
    """Bytes that an ended process has read and written, from a cache too; mapped files do not count."""
    with open(f"/proc/{pid}/io", encoding="utf-8") as file:
        counts = dict(line.split(": ") for line in file)
    return int(counts["rchar"]) + int(counts["wchar"])


def started(command, log):
    """The process of a command, in a session of its own, so that a signal reaches all its descendants."""
    if log is None:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    with open(log, "wb") as file:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file, start_new_session=True)


def measure(command, folder=None, timeout=None, limit=None, log=None):
    before = disk_of(folder) if folder else 0
    start = time.perf_counter()
    try:
        process = started(command, log)
    except OSError as error:
        return {"failure": str(error)}
    most = disk = 0
    looked, failure = start, None
    try:
        while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            seconds = time.perf_counter() - start
            # Reading the memory takes time: four times a second at most; in the first seconds only with a limit.
            if seconds > 5 or limit and time.perf_counter() - looked > 0.25:
                most, looked = max(most, proportional_memory(process.pid)), time.perf_counter()
            if folder:
                disk = max(disk, disk_of(folder) - before)
            if limit and most > limit:
                failure = f"more than {limit / GIB:g} GiB of memory"
            elif timeout and seconds > timeout:
                failure = f"more than {timeout / 60:g} minutes"
            if failure:
                break
            time.sleep(0.005 if seconds < 5 else 0.25)
        else:
            seconds = time.perf_counter() - start
        moved = moved_by(process.pid)
    finally:
        # Workers that outlive the command, and all processes of a command that is stopped.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and failure is None:
        failure = reason(process.returncode, log)
    memory = max(most, usage.ru_maxrss * 1024)
    processor = usage.ru_utime + usage.ru_stime
    return {"seconds": seconds, "processor": processor, "memory": memory, "disk": disk, "moved": moved, "failure": failure}


def reason(code, log):
    """Exit code or signal, and the last line of the error messages."""
    what = f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
    lines = []
    if log is not None:
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
    return f"{what}: {lines[-1][:200]}" if lines else what


if __name__ == "__main__":
    # A program that is asked to end also ends the command.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(json.dumps(measure(sys.argv[2:], **json.loads(sys.argv[1]))))
