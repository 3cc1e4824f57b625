"""Kills executors of the cluster, at any time or while a task runs."""

import contextlib
import os
import threading

import psutil


def executors():
    """Returns the processes of the executors."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline():
                found.append(process)
    return found


def kill_executor(process_id=None):
    """Kills an executor, as if its machine were lost. With `process_id`, kills the executor of that process. The cluster starts another."""
    parent_ids = {} if process_id is None else {process.pid for process in psutil.Process(process_id).parents()}
    executor = next(process for process in executors() if process_id is None or process.pid in parent_ids)
    executor.kill()
    executor.wait()


def pause_first_task(folder):
    """Pauses the first task that calls this function, until `kill_during` ends the pause or kills the task's executor."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(f"{folder}/held")
        with open(f"{folder}/process", "w") as file:
            file.write(str(os.getpid()))
        with open(f"{folder}/go") as go:
            go.read()


def pause_after(folder, batches):
    """Yields the batches. Then the first task that has read all of its batches pauses."""
    yield from batches
    pause_first_task(folder)


def kill_during(folder, run):
    """Runs a job until one task pauses, kills the executor of the paused task, and returns the result of the job."""
    os.mkfifo(f"{folder}/go")
    results, pipe_ends = [], []

    def work():
        try:
            results.append(run())
        finally:
            # If no task paused, this releases the open call below.
            pipe_ends.append(os.open(f"{folder}/go", os.O_RDONLY | os.O_NONBLOCK))

    thread = threading.Thread(target=work)
    thread.start()
    # Opening the pipe blocks until the task pauses.
    with open(f"{folder}/go", "w"), open(f"{folder}/process") as process:
        kill_executor(int(process.read()))
    thread.join()
    os.close(*pipe_ends)
    return results[0]
