"""Calls in the middle of calls: from callables of progress, signal handlers, warnings, iterators and finalizers. None waits for itself."""

import os
import subprocess
import sys

import pytest

# A hang ends the process: the traceback says where.
BEFORE = """
import faulthandler, gc, itertools, logging, signal, sys, threading, warnings
faulthandler.dump_traceback_later(60, exit=True)
import numpy as np, simstore
path = sys.argv[1]
rng = np.random.default_rng(7)
many = rng.integers(0, 2**64, 150_000, dtype=np.uint64)
ids = np.arange(len(many), dtype=np.uint64)
few, few_ids = many[:100], ids[:100]
store = simstore.Store(path + "/store")
store.insert_many(few, few_ids)
other = simstore.Store(path + "/other")
builder = simstore.Builder(path + "/built")
with simstore.Builder(path + "/snapshot") as made:
    made.insert_many(many, ids)
snapshot = simstore.Snapshot(path + "/snapshot")
forest, parts = simstore.Forest(), simstore.JoinParts(3)
packed = parts.scatter(*(parts.pack(many)[name] for name in ("fingerprints", "repeated")))
batches = snapshot.iter_batches(1000)

def in_batch(do):
    with store.batch() as batch:
        do(batch)

INNER = {
    "Store.insert": lambda: store.insert(1, 1),
    "Store.insert_many": lambda: store.insert_many(few, few_ids, progress=lambda told: None),
    "Store.insert_if_new": lambda: store.insert_if_new(2, 2),
    "Store.insert_many_if_new": lambda: store.insert_many_if_new(few, few_ids),
    "Store.delete": lambda: store.delete(1, 1),
    "Store.delete_many": lambda: store.delete_many(few[:10], few_ids[:10]),
    "Store.batch": lambda: in_batch(lambda batch: batch.insert(3, 3)),
    "Store.query": lambda: store.query(1),
    "Store.snapshot": lambda: store.snapshot().query_many(few),
    "Store.flush": lambda: store.flush(),
    "Store.sync": lambda: store.sync(),
    "Store.compact": lambda: store.compact(),
    "Store.close": lambda: store.close(),
    "Store.__exit__": lambda: store.__exit__(None, None, None),
    "Store.closed": lambda: (store.closed, len(store), 1 in store, store.distance, repr(store)),
    "Store": lambda: simstore.Store(path + "/store"),
    "Builder.insert": lambda: builder.insert(1, 1),
    "Builder.insert_many": lambda: builder.insert_many(few, few_ids),
    "Builder.finish": lambda: builder.finish(),
    "Builder.__enter__": lambda: builder.__enter__(),
    "Builder.__exit__": lambda: builder.__exit__(ValueError, None, None),
    "Builder.path": lambda: (builder.path, builder.bits, repr(builder)),
    "Snapshot.query": lambda: snapshot.query(1),
    "Snapshot.query_many": lambda: snapshot.query_many(few),
    "Snapshot.contains_many": lambda: snapshot.contains_many(few),
    "Snapshot.verify": lambda: simstore.Snapshot(path + "/store").verify(),
    "Batches.__next__": lambda: next(batches),
    "Forest": lambda: (forest.connect(few, few), forest.edges(), forest.packed(), forest.merge(forest.packed())),
    "JoinParts": lambda: parts.pack(few),
    "self_join": lambda: simstore.self_join(few, 3),
    "clusters": lambda: simstore.clusters(few, 3),
    "dedup": lambda: simstore.dedup([{"text": "a text"}, {"text": "another"}]),
    "fingerprints": lambda: simstore.Profile().fingerprints(["a text"]),
    "other.insert": lambda: other.insert(1, 1),
    "other.insert_many": lambda: other.insert_many(few, few_ids, progress=lambda told: None),
    "other.close": lambda: simstore.Store(path + "/third").close(),
    "another builder": lambda: simstore.Builder(path + "/replaced", replace=True).finish(),
    "a store that is forgotten": lambda: (simstore.Store(path + "/forgotten"), gc.collect()) and None,
}
outcomes, waiting, is_inside = {}, list(INNER), False

def inside(*_):
    global store, builder, is_inside
    if not waiting or is_inside:
        return
    is_inside, name = True, waiting.pop(0)
    try:
        INNER[name]()
        outcomes[name] = "done"
    except Exception as error:
        outcomes[name] = f"{type(error).__name__}: {error}"
    if store.closed:
        store = simstore.Store(path + "/store")
    if name in ("Builder.finish", "Builder.__exit__") and outcomes[name] == "done":
        builder = simstore.Builder(path + "/built", replace=True)
    is_inside = False

class Forgotten:
    def __del__(self):
        inside()

def texts():
    for number in range(50):
        inside()
        yield {"text": f"text number {number}"}

def on_signals(call):
    signal.signal(signal.SIGALRM, inside)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    try:
        while waiting:
            try:
                call()
            except ValueError as error:
                # A signal between two calls may have closed the store, or ended the builder, for the second of them.
                if "is closed" not in str(error) and "has ended" not in str(error):
                    raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

def by_progress(call):
    while waiting:
        call(inside)

def iterated(values):
    for value in values:
        inside()
        yield value

def warned(call):
    logging.getLogger("simstore").setLevel(logging.INFO)
    handler = logging.Handler()
    handler.emit = inside
    logging.getLogger("simstore").addHandler(handler)
    warnings.simplefilter("always")
    warnings.showwarning = inside
    while waiting:
        call()
"""
AFTER = """
signal.signal(signal.SIGALRM, signal.SIG_IGN)
for name, outcome in outcomes.items():
    print(name, outcome, sep="|")
builder.insert(1, 1)
builder.finish()
assert len(store) > 0
store.close()
other.close()
assert simstore.Snapshot(path + "/store").verify() == [] and simstore.Snapshot(path + "/built").verify() == []
print("end")
"""
OUTER = {
    "Store.insert_many": "by_progress(lambda told: store.insert_many(many, ids, progress=told))",
    "Store.insert_many_if_new": "by_progress(lambda told: store.insert_many_if_new(few, few_ids, progress=told))",
    "Store.delete_many": "by_progress(lambda told: store.delete_many(few[:50], few_ids[:50], progress=told))",
    "Store.compact": "by_progress(lambda told: (store.insert(5, 5), store.delete(5, 5), store.flush(), store.compact(progress=told)))",
    "Store.insert_many, signals": "on_signals(lambda: store.insert_many(many, ids))",
    "Store.batch, signals": "on_signals(lambda: in_batch(lambda batch: batch.insert_many(many, ids)))",
    "Store.insert_many, iterators": "store.insert_many(iterated(few.tolist()), iterated(few_ids.tolist()), iterated(['name'] * 100))",
    "Store.close, signals": """
def closed():
    one = simstore.Store(path + "/closed")
    thread = threading.Thread(target=lambda: one.insert_many(many, ids, progress=lambda told: None))
    thread.start()
    one.close()
    thread.join()
threading.excepthook = lambda told: None
on_signals(closed)
""",
    "Builder.insert_many, signals": "on_signals(lambda: builder.insert_many(many, ids))",
    "Builder.insert_many, iterators": """
while waiting:
    try:
        builder.insert_many(iterated(few.tolist()), iterated(few_ids.tolist()))
    except ValueError as error:
        # One of them has ended it, before it was asked for.
        assert "the builder has ended" in str(error)
""",
    "Builder.finish": """
def built(told):
    one = simstore.Builder(path + "/finished", replace=True)
    one.insert_many(many, ids)
    one.finish(progress=told)
by_progress(built)
""",
    "Snapshot.query_many": "by_progress(lambda told: snapshot.query_many(many, progress=told))",
    "Snapshot.verify": "by_progress(lambda told: snapshot.verify(progress=told))",
    "Snapshot.iter_batches, signals": "on_signals(lambda: [len(batch) for batch in snapshot.iter_batches(150_000)])",
    "Batches.__next__, signals": """
batches = simstore.Snapshot(path + "/snapshot").iter_batches(150_000)
def taken():
    global batches
    if next(batches, None) is None:
        batches = simstore.Snapshot(path + "/snapshot").iter_batches(150_000)
on_signals(taken)
""",
    "JoinParts.pack, signals": "on_signals(lambda: parts.pack(many))",
    "Forest.connect, signals": "on_signals(lambda: (forest.connect(few, few), sum(range(100_000))))",
    "self_join": "by_progress(lambda told: simstore.self_join(many, 3, progress=told))",
    "dedup, iterators": "\nwhile waiting: simstore.dedup(texts(), progress=inside)",
    "dedup, warnings": "warned(lambda: simstore.dedup([{'text': 'a text'}, {'text': None}, {'text': ''}], similar=0.8))",
    "finalizers": "store.insert_many(iterated(few.tolist()), few_ids)\nwhile waiting:\n"
    "    one = Forgotten(); one.itself = one; del one; gc.collect(); store.insert(9, 9)",
}


REFUSED = "in the middle of another call of this thread"
# With one thread for all that is done in parallel, a call inside of a call may want the one that the outer call has.
ON_ONE_THREAD = ["Store.compact", "Builder.finish", "Snapshot.query_many", "Snapshot.verify", "self_join", "dedup, iterators"]
CASES = [(name, None) for name in OUTER] + [(name, "1") for name in ON_ONE_THREAD]


def run(code, path, threads=None):
    environment = {**os.environ, "RAYON_NUM_THREADS": threads} if threads else None
    ran = subprocess.run(
        [sys.executable, "-c", BEFORE + code + AFTER, str(path)], capture_output=True, text=True, env=environment
    )
    assert ran.returncode == 0 and ran.stdout.endswith("end\n"), ran.stdout + ran.stderr
    return dict(line.split("|", 1) for line in ran.stdout.splitlines()[:-1])


@pytest.mark.parametrize("name, threads", CASES)
def test_a_call_inside_of_a_call(tmp_path, name, threads):
    outcomes = run(OUTER[name], tmp_path, threads)
    assert len(outcomes) > 30
    for inner, outcome in outcomes.items():
        ended = "ValueError: the store is closed", "ValueError: the builder has ended", "StopIteration"
        # To open a store twice is refused anyway.
        is_allowed = outcome == "done" or REFUSED in outcome or outcome.startswith(ended) or inner == "Store"
        assert is_allowed and (outcome == "done" or not inner.startswith("other")), (inner, outcome)
    if name.startswith("Store.") and "signals" not in name:
        assert REFUSED in outcomes["Store.close"] and REFUSED in outcomes["Store.__exit__"]


@pytest.mark.parametrize(
    "outer, inner",
    [
        ("store.insert_many(many, ids)", "store.close()"),
        ("store.insert_many(many, ids)", "store.__exit__(None, None, None)"),
        ("builder.insert_many(many, ids)", "builder.insert(1, 1)"),
        ("builder.insert_many(many, ids)", "builder.insert_many(few, few_ids)"),
        ("builder.insert_many(many, ids)", "builder.finish()"),
        ("builder.insert_many(many, ids)", "builder.__enter__()"),
        ("builder.insert_many(many, ids)", "builder.__exit__(ValueError, None, None)"),
    ],
)
def test_a_signal_handler_is_refused_at_once(tmp_path, outer, inner):
    code = f"""
count = {20_000_000 if "builder" in outer else 2_000_000}
many, ids, waiting = np.arange(count, dtype=np.uint64), np.arange(count), ["once"]
def handler(*_):
    try:
        {inner}
    except ValueError:
        pass
    except RuntimeError as error:
        waiting.clear()
        outcomes["refused"] = str(error)
def renew():
    global store, builder
    store = simstore.Store(path + "/store") if store.closed else store
    builder.__exit__(ValueError, None, None)
    builder = simstore.Builder(path + "/built", replace=True)
delays = itertools.cycle([0.01, 0.05, 0.1, 0.2, 0.4])
def call():
    # Before the call has begun there is nothing to wait for, and it is done.
    try:
        renew()
        signal.setitimer(signal.ITIMER_REAL, next(delays))
        {outer}
    except ValueError as error:
        assert "has ended" in str(error) or "is closed" in str(error)
signal.signal(signal.SIGALRM, handler)
while waiting:
    call()
signal.setitimer(signal.ITIMER_REAL, 0)
renew()
"""
    assert REFUSED in run(code, tmp_path)["refused"]
