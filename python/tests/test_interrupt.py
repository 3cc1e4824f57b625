"""Ctrl-C ends long calls, and the stores stay valid."""

import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

import simstore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send")

# Each call takes much longer than the allowed time after Ctrl-C. If it ends before Ctrl-C, the loop repeats it.
SETUP = """
import sys, numpy as np, simstore
path = sys.argv[1]
rng = np.random.default_rng(7)
def values(count):
    return rng.integers(0, 2**64, count, dtype=np.uint64)
def built(count, distance):
    with simstore.Builder(path, distance=distance, plan="scan", replace=True) as builder:
        builder.insert_many(values(count), np.arange(count))
    return simstore.Snapshot(path)
def ignore(progress):
    pass
"""
CALL_LOOP = """
print("begun", flush=True)
try:
    while True:
        {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
CALLS = {
    "self_join": ("many = values(400_000)", "simstore.self_join(many, 14)"),
    "clusters": ("many = values(400_000)", "simstore.clusters(many, 14, progress=ignore)"),
    "query_many": ("snapshot, many = built(200_000, 14), values(300_000)", "snapshot.query_many(many)"),
    "verify": ("snapshot = built(8_000_000, 0)", "snapshot.verify(progress=ignore)"),
    "iter_batches": ("snapshot = built(3_000_000, 0)", "[len(t) for t in snapshot.iter_batches(10**9)]"),
    "build": (
        "many = values(20_000_000)",
        "with simstore.Builder(path, replace=True) as builder: builder.insert_many(many, np.arange(len(many)))",
    ),
    "insert_many": (
        "many = values(20_000_000); store = simstore.Store(path)",
        "store.insert_many(many, np.arange(len(many)))",
    ),
    "insert_many_if_new": (
        "many = values(20_000_000); store = simstore.Store(path)",
        "store.insert_many_if_new(many, np.arange(len(many)))",
    ),
}


def cpu_seconds(child):
    times = psutil.Process(child.pid).cpu_times()
    return times.user + times.system


def interrupt(program, path, delay=0.4, is_ready=lambda: True):
    """Runs a program, and sends Ctrl-C when the program has begun, `delay` seconds have passed and `is_ready` returns true.

    Returns the CPU seconds that the program used after Ctrl-C, and its remaining output. CPU time does not depend on the load of
    the machine."""
    child = subprocess.Popen(
        [sys.executable, "-c", SETUP + program, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "begun\n", child.stderr.read()
        time.sleep(delay)
        while not is_ready() and child.poll() is None:
            time.sleep(0.01)
        cpu_before = cpu_seconds(child)
        child.send_signal(signal.SIGINT)
        line = child.stdout.readline()
        # An ended child stays a zombie until `communicate`, so its CPU time can still be read.
        cpu_taken = cpu_seconds(child) - cpu_before
        out, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert line == "interrupted\n" and child.returncode == 0, errors
    return cpu_taken, out


@pytest.mark.parametrize("name", CALLS)
def test_a_call_ends(tmp_path, name):
    setup, call = CALLS[name]
    path = tmp_path / "store"
    cpu_taken, _ = interrupt(setup + CALL_LOOP.format(call=call), path)
    # The call should end within a second, but all cores count.
    assert cpu_taken < 10
    # An interrupted build leaves no store. A build that ended before the interruption left a complete store.
    if (path / "MANIFEST").exists():
        assert simstore.Snapshot(path).verify() == []
    else:
        assert name == "build" or not path.exists()


def test_a_compaction_leaves_the_store_as_it_was(tmp_path):
    path = tmp_path / "store"
    # Each compaction raises the distance, so each has work to do.
    program = """
store = simstore.Store(path, distance=0)
store.insert_many(values(1_500_000), np.arange(1_500_000))
store.flush()
print("begun", flush=True)
try:
    for distance in range(1, 17):
        before = distance - 1
        store.compact(distance)
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(before, store.distance, len(store.snapshot().query_many(values(10), before)) >= 0)
store.close()
"""
    cpu_taken, out = interrupt(program, path, delay=0.3)
    requested_before, distance, _ = out.split()
    assert cpu_taken < 10 and int(distance) in (int(requested_before), int(requested_before) + 1)
    snapshot = simstore.Snapshot(path)
    assert len(snapshot) == 1_500_000 and snapshot.verify() == []


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_ids_that_are_interrupted_are_not_read_as_names(tmp_path, interruption):
    reads = []

    class Ids(list):
        def __iter__(self):
            reads.append(self)
            raise interruption

    with simstore.Store(tmp_path / "store") as store:
        for insert in (store.insert_many, store.insert_many_if_new):
            reads.clear()
            with pytest.raises(interruption):
                insert([1, 2], Ids([1, 2]))
            assert len(reads) == 1


def test_an_array_is_inserted_from_its_beginning(tmp_path):
    path = tmp_path / "store"
    setup, call = CALLS["insert_many"]

    def is_written():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) > 1 << 20

    interrupt(setup + CALL_LOOP.format(call=call), path, is_ready=is_written)
    snapshot = simstore.Snapshot(path)
    values = np.random.default_rng(7).integers(0, 2**64, 20_000_000, dtype=np.uint64)
    ids = np.sort(np.concatenate([table["id"].to_numpy() for table in snapshot.iter_batches()]))
    assert 0 < len(ids) < len(values) and (ids == np.arange(len(ids))).all()
    assert snapshot.contains_many(values[: len(ids)]).all()


def test_an_exception_of_the_progress_callable_ends_a_call(tmp_path):
    builder = simstore.Builder(tmp_path / "store")
    builder.insert_many(np.arange(3_000_000, dtype=np.uint64), np.arange(3_000_000))

    def interrupt_call(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builder.finish(progress=interrupt_call)
    assert not pathlib.Path(builder.path).exists()
