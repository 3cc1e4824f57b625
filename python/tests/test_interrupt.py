"""Ctrl-C ends long calls, and leaves sound stores."""

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

# Each call takes far longer than it may go on after Ctrl-C, and is begun again should it ever end before.
BEFORE = """
import sys, numpy as np, simstore
path = sys.argv[1]
rng = np.random.default_rng(7)
def values(count):
    return rng.integers(0, 2**64, count, dtype=np.uint64)
def built(count, distance):
    with simstore.Builder(path, distance=distance, plan="scan", replace=True) as builder:
        builder.insert_many(values(count), np.arange(count))
    return simstore.Snapshot(path)
def told(progress):
    pass
"""
LOOP = """
print("begun", flush=True)
try:
    while True:
        {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
CALLS = {
    "self_join": ("many = values(400_000)", "simstore.self_join(many, 14)"),
    "clusters": ("many = values(400_000)", "simstore.clusters(many, 14, progress=told)"),
    "query_many": ("snapshot, many = built(200_000, 14), values(300_000)", "snapshot.query_many(many)"),
    "verify": ("snapshot = built(8_000_000, 0)", "snapshot.verify(progress=told)"),
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


def busy(child):
    times = psutil.Process(child.pid).cpu_times()
    return times.user + times.system


def interrupted(code, path, after=0.4, is_time=lambda: True):
    """Runs it, sends Ctrl-C when it has begun and it is time, and returns how many seconds of the processor it then took: others may
    keep the machine busy meanwhile."""
    child = subprocess.Popen(
        [sys.executable, "-c", BEFORE + code, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "begun\n", child.stderr.read()
        time.sleep(after)
        while not is_time() and child.poll() is None:
            time.sleep(0.01)
        before = busy(child)
        child.send_signal(signal.SIGINT)
        line = child.stdout.readline()
        # If it has ended since, it still waits to be asked how.
        taken = busy(child) - before
        out, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert line == "interrupted\n" and child.returncode == 0, errors
    return taken, out


@pytest.mark.parametrize("name", CALLS)
def test_a_call_ends(tmp_path, name):
    before, call = CALLS[name]
    path = tmp_path / "store"
    taken, _ = interrupted(before + LOOP.format(call=call), path)
    # A second is meant, on some cores.
    assert taken < 10
    # Of a build that was cut off there is no store, of one that ended before a whole one.
    if (path / "MANIFEST").exists():
        assert simstore.Snapshot(path).verify() == []
    else:
        assert name == "build" or not path.exists()


def test_a_compaction_leaves_the_store_as_it_was(tmp_path):
    path = tmp_path / "store"
    # Raised to a larger distance every time, there is always something to do.
    code = """
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
    taken, out = interrupted(code, path, after=0.3)
    before, distance, _ = out.split()
    assert taken < 10 and int(distance) in (int(before), int(before) + 1)
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
    before, call = CALLS["insert_many"]

    def is_written():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) > 1 << 20

    interrupted(before + LOOP.format(call=call), path, is_time=is_written)
    snapshot = simstore.Snapshot(path)
    many = np.random.default_rng(7).integers(0, 2**64, 20_000_000, dtype=np.uint64)
    ids = np.sort(np.concatenate([table["id"].to_numpy() for table in snapshot.iter_batches()]))
    assert 0 < len(ids) < len(many) and (ids == np.arange(len(ids))).all()
    assert snapshot.contains_many(many[: len(ids)]).all()


def test_a_callable_of_progress_may_end_a_call(tmp_path):
    builder = simstore.Builder(tmp_path / "store")
    builder.insert_many(np.arange(3_000_000, dtype=np.uint64), np.arange(3_000_000))

    def no(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builder.finish(progress=no)
    assert not pathlib.Path(builder.path).exists()
