"""Calls inside of calls, from progress callables, signal handlers, warnings, iterators and finalizers, do not deadlock."""

import os
import subprocess
import sys

import pytest

# If a call hangs, faulthandler prints a traceback and ends the process.
SETUP = """
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

INNER_CALLS = {
    "Store.insert": lambda: store.insert(1, 1),
    "Store.insert_many": lambda: store.insert_many(few, few_ids, progress=lambda report: None),
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
    "other.insert_many": lambda: other.insert_many(few, few_ids, progress=lambda report: None),
    "other.close": lambda: simstore.Store(path + "/third").close(),
    "another builder": lambda: simstore.Builder(path + "/replaced", replace=True).finish(),
    "a store that is dropped": lambda: (simstore.Store(path + "/dropped"), gc.collect()) and None,
}
outcomes, pending, is_in_inner_call = {}, list(INNER_CALLS), False

def run_next_inner(*_):
    global store, builder, is_in_inner_call
    if not pending or is_in_inner_call:
        return
    is_in_inner_call, name = True, pending.pop(0)
    try:
        INNER_CALLS[name]()
        outcomes[name] = "done"
    except Exception as error:
        outcomes[name] = f"{type(error).__name__}: {error}"
    if store.closed:
        store = simstore.Store(path + "/store")
    if name in ("Builder.finish", "Builder.__exit__") and outcomes[name] == "done":
        builder = simstore.Builder(path + "/built", replace=True)
    is_in_inner_call = False

class CallsWhenDeleted:
    def __del__(self):
        run_next_inner()

def texts():
    for number in range(50):
        run_next_inner()
        yield {"text": f"text number {number}"}

def on_signals(call):
    signal.signal(signal.SIGALRM, run_next_inner)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    try:
        while pending:
            try:
                call()
            except ValueError as error:
                # A signal between two calls may have closed the store or ended the builder.
                if "is closed" not in str(error) and "has ended" not in str(error):
                    raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

def on_progress(call):
    while pending:
        call(run_next_inner)

def calling_iterator(values):
    for value in values:
        run_next_inner()
        yield value

def on_warnings(call):
    logging.getLogger("simstore").setLevel(logging.INFO)
    handler = logging.Handler()
    handler.emit = run_next_inner
    logging.getLogger("simstore").addHandler(handler)
    warnings.simplefilter("always")
    warnings.showwarning = run_next_inner
    while pending:
        call()
"""
TEARDOWN = """
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
OUTER_CALLS = {
    "Store.insert_many": "on_progress(lambda report: store.insert_many(many, ids, progress=report))",
    "Store.insert_many_if_new": "on_progress(lambda report: store.insert_many_if_new(few, few_ids, progress=report))",
    "Store.delete_many": "on_progress(lambda report: store.delete_many(few[:50], few_ids[:50], progress=report))",
    "Store.compact": "on_progress(lambda report: (store.insert(5, 5), store.delete(5, 5), store.flush(), store.compact(progress=report)))",
    "Store.insert_many, signals": "on_signals(lambda: store.insert_many(many, ids))",
    "Store.batch, signals": "on_signals(lambda: in_batch(lambda batch: batch.insert_many(many, ids)))",
    "Store.insert_many, iterators": "store.insert_many("
    "calling_iterator(few.tolist()), calling_iterator(few_ids.tolist()), calling_iterator(['name'] * 100))",
    "Store.close, signals": """
def close_in_use():
    one = simstore.Store(path + "/closed")
    thread = threading.Thread(target=lambda: one.insert_many(many, ids, progress=lambda report: None))
    thread.start()
    one.close()
    thread.join()
threading.excepthook = lambda report: None
on_signals(close_in_use)
""",
    "Builder.insert_many, signals": "on_signals(lambda: builder.insert_many(many, ids))",
    "Builder.insert_many, iterators": """
while pending:
    try:
        builder.insert_many(calling_iterator(few.tolist()), calling_iterator(few_ids.tolist()))
    except ValueError as error:
        # An inner call may have ended the builder before.
        assert "the builder has ended" in str(error)
""",
    "Builder.finish": """
def build(report):
    one = simstore.Builder(path + "/finished", replace=True)
    one.insert_many(many, ids)
    one.finish(progress=report)
on_progress(build)
""",
    "Snapshot.query_many": "on_progress(lambda report: snapshot.query_many(many, progress=report))",
    "Snapshot.verify": "on_progress(lambda report: snapshot.verify(progress=report))",
    "Snapshot.iter_batches, signals": "on_signals(lambda: [len(batch) for batch in snapshot.iter_batches(150_000)])",
    "Batches.__next__, signals": """
batches = simstore.Snapshot(path + "/snapshot").iter_batches(150_000)
def take_batch():
    global batches
    if next(batches, None) is None:
        batches = simstore.Snapshot(path + "/snapshot").iter_batches(150_000)
on_signals(take_batch)
""",
    "JoinParts.pack, signals": "on_signals(lambda: parts.pack(many))",
    "Forest.connect, signals": "on_signals(lambda: (forest.connect(few, few), sum(range(100_000))))",
    "self_join": "on_progress(lambda report: simstore.self_join(many, 3, progress=report))",
    "dedup, iterators": "\nwhile pending: simstore.dedup(texts(), progress=run_next_inner)",
    "dedup, warnings": "on_warnings(lambda: simstore.dedup([{'text': 'a text'}, {'text': None}, {'text': ''}], similar=0.8))",
    "finalizers": "store.insert_many(calling_iterator(few.tolist()), few_ids)\nwhile pending:\n"
    "    one = CallsWhenDeleted(); one.itself = one; del one; gc.collect(); store.insert(9, 9)",
}


REFUSED = "in the middle of another call of this thread"
# With a single rayon thread, the inner call may need the thread that the outer call occupies.
ON_ONE_THREAD = ["Store.compact", "Builder.finish", "Snapshot.query_many", "Snapshot.verify", "self_join", "dedup, iterators"]
CASES = [(name, None) for name in OUTER_CALLS] + [(name, "1") for name in ON_ONE_THREAD]


def run_program(program, path, threads=None):
    environment = {**os.environ, "RAYON_NUM_THREADS": threads} if threads else None
    completed = subprocess.run(
        [sys.executable, "-c", SETUP + program + TEARDOWN, str(path)], capture_output=True, text=True, env=environment
    )
    assert completed.returncode == 0 and completed.stdout.endswith("end\n"), completed.stdout + completed.stderr
    return dict(line.split("|", 1) for line in completed.stdout.splitlines()[:-1])


@pytest.mark.parametrize("name, threads", CASES)
def test_a_call_inside_of_a_call(tmp_path, name, threads):
    outcomes = run_program(OUTER_CALLS[name], tmp_path, threads)
    assert len(outcomes) > 30
    for inner, outcome in outcomes.items():
        ended = "ValueError: the store is closed", "ValueError: the builder has ended", "StopIteration"
        # Opening a store twice is always refused.
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
    program = f"""
count = {20_000_000 if "builder" in outer else 2_000_000}
many, ids, pending = np.arange(count, dtype=np.uint64), np.arange(count), ["once"]
def handler(*_):
    try:
        {inner}
    except ValueError:
        pass
    except RuntimeError as error:
        pending.clear()
        outcomes["refused"] = str(error)
def renew():
    global store, builder
    store = simstore.Store(path + "/store") if store.closed else store
    builder.__exit__(ValueError, None, None)
    builder = simstore.Builder(path + "/built", replace=True)
delays = itertools.cycle([0.01, 0.05, 0.1, 0.2, 0.4])
def call():
    # If the signal arrives before the outer call has begun, the inner call is not refused.
    try:
        renew()
        signal.setitimer(signal.ITIMER_REAL, next(delays))
        {outer}
    except ValueError as error:
        assert "has ended" in str(error) or "is closed" in str(error)
signal.signal(signal.SIGALRM, handler)
while pending:
    call()
signal.setitimer(signal.ITIMER_REAL, 0)
renew()
"""
    assert REFUSED in run_program(program, tmp_path)["refused"]
