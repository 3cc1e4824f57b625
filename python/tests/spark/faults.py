"""What tests do to a cluster: executors are killed, at any time or while a task is under way."""

import contextlib
import os
import threading

import psutil


def executors():
    """The processes of the executors."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline():
                found.append(process)
    return found


def kill_executor(of=None):
    """Kills one executor, as a lost machine would: the one that a process belongs to, if that is given. The cluster starts another."""
    above = {} if of is None else {process.pid for process in psutil.Process(of).parents()}
    executor = next(process for process in executors() if of is None or process.pid in above)
    executor.kill()
    executor.wait()


def pause(folder):
    """Waits, in the first task that comes so far, until the test has seen that it is there."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(f"{folder}/held")
        with open(f"{folder}/process", "w") as file:
            file.write(str(os.getpid()))
        with open(f"{folder}/go") as go:
            go.read()


def held(folder, batches):
    """Pauses before the end of the rows."""
    yield from batches
    pause(folder)


def kill_while(folder, run):
    """What a job gives of which one task pauses, and whose executor is killed then."""
    os.mkfifo(f"{folder}/go")
    found, ends = [], []

    def work():
        try:
            found.append(run())
        finally:
            # A job that has ended without such a task is not waited for.
            ends.append(os.open(f"{folder}/go", os.O_RDONLY | os.O_NONBLOCK))

    thread = threading.Thread(target=work)
    thread.start()
    # Opened as soon as the task waits.
    with open(f"{folder}/go", "w"), open(f"{folder}/process") as process:
        kill_executor(int(process.read()))
    thread.join()
    os.close(*ends)
    return found[0]
