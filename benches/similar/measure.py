#!/usr/bin/env python3
"""Measures a command: wall-clock seconds, CPU seconds, peak memory, peak disk usage, and bytes read and written.

The figures cover all processes of the command. A small separate process starts the command, because the kernel counts the memory of a
parent process in the peak memory of its child.
"""

import json
import os
import signal
import subprocess
import sys
import time

GIB = 1 << 30


def time_and_memory(command):
    """Returns the wall-clock seconds, the CPU seconds and the peak memory in bytes of a command."""
    usage = resource_usage(command)
    return usage["seconds"], usage["processor"], usage["memory"]


def resource_usage(command, folder=None, may_fail=False):
    """Runs a command and returns its figures by name.

    `seconds` is wall-clock time, `processor` CPU seconds. `memory` is the peak memory, `disk` the peak size of the files in `folder`, and
    `moved` the bytes read and written. If the command fails, returns None if `may_fail` is set, and ends this program otherwise.
    """
    usage = run_limited(command, folder)
    if usage["failure"] is None:
        return usage
    if may_fail:
        return None
    sys.exit(f"{' '.join(command)} failed: {usage['failure']}")


def run_limited(command, folder=None, timeout=None, limit=None, log=None):
    """Returns the figures of `resource_usage`, and `failure`: the reason of a failure, or None.

    A command fails if it takes more than `timeout` seconds or `limit` bytes of memory. Its error messages go to the file `log`.
    """
    settings = {"folder": folder, "timeout": timeout, "limit": limit, "log": log}
    command_line = [sys.executable, os.path.abspath(__file__), json.dumps(settings), *command]
    done = subprocess.run(command_line, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return {"failure": "the measuring process was ended"}
    return json.loads(done.stdout)


def proportional_memory(root):
    """Returns the memory of the process `root` and its descendants, in bytes. Memory that they share counts once."""
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


def disk_usage(folder):
    """Returns the disk space of all files below a folder, in bytes."""
    total = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(directory, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return total


def bytes_transferred(pid):
    """Returns the bytes that an ended process read and wrote, including reads from a cache, but without memory-mapped files."""
    with open(f"/proc/{pid}/io", encoding="utf-8") as file:
        counts = dict(line.split(": ") for line in file)
    return int(counts["rchar"]) + int(counts["wchar"])


def start_process(command, log):
    """Starts a command in its own session, so that a signal reaches all its descendants."""
    if log is None:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    with open(log, "wb") as file:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file, start_new_session=True)


def measure(command, folder=None, timeout=None, limit=None, log=None):
    """Runs and measures a command, with the arguments of `run_limited`, which calls this function in a separate process."""
    before = disk_usage(folder) if folder else 0
    start = time.perf_counter()
    try:
        process = start_process(command, log)
    except OSError as error:
        return {"failure": str(error)}
    peak_memory = disk = 0
    sampled_at, failure = start, None
    try:
        while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            seconds = time.perf_counter() - start
            # Reading the memory takes time, so it is read at most four times a second, and in the first 5 seconds only if
            # there is a limit.
            if seconds > 5 or limit and time.perf_counter() - sampled_at > 0.25:
                peak_memory, sampled_at = max(peak_memory, proportional_memory(process.pid)), time.perf_counter()
            if folder:
                disk = max(disk, disk_usage(folder) - before)
            if limit and peak_memory > limit:
                failure = f"more than {limit / GIB:g} GiB of memory"
            elif timeout and seconds > timeout:
                failure = f"more than {timeout / 60:g} minutes"
            if failure:
                break
            time.sleep(0.005 if seconds < 5 else 0.25)
        else:
            seconds = time.perf_counter() - start
        moved = bytes_transferred(process.pid)
    finally:
        # Kills workers that outlive the command, and all processes of a command that exceeded a limit.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and failure is None:
        failure = failure_reason(process.returncode, log)
    memory = max(peak_memory, usage.ru_maxrss * 1024)
    processor = usage.ru_utime + usage.ru_stime
    return {"seconds": seconds, "processor": processor, "memory": memory, "disk": disk, "moved": moved, "failure": failure}


def failure_reason(code, log):
    """Describes a failure as text: the exit code or the signal, and the last line of the error messages in the file `log`."""
    exit_status = f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
    lines = []
    if log is not None:
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
    return f"{exit_status}: {lines[-1][:200]}" if lines else exit_status


if __name__ == "__main__":
    # SIGTERM also ends the measured command.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(json.dumps(measure(sys.argv[2:], **json.loads(sys.argv[1]))))
