"""`evaluate`, which measures recall by distance, compared with the command-line program and with brute force."""

import subprocess
import sys

import numpy as np
import pytest

import simstore
from corpora import SAMPLES, run_cli, sample_rows

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

FLAGS = ["--label-field", "jaccard3", "--positive-from", "0.8", "--similar", "0.8", "--documents", "1000"]
OPTIONS = {"label": "jaccard3", "positive_from": 0.8, "similar": 0.8, "documents": 1000}
ROWS = [{key: row[key] for key in ("text_old", "text_new", "jaccard3", "path")} for row in sample_rows("pairs.jsonl")]


@pytest.mark.parametrize("bits", [64, 128])
def test_same_results_as_the_command_line(bits):
    profiles = ["words-3", "chars-4"]
    names = [arg for name in profiles for arg in ("--profile", name)]
    lines = run_cli("evaluate", SAMPLES / "pairs.jsonl", "--json", "--bits", bits, *names, *FLAGS)
    evaluation = simstore.evaluate(SAMPLES / "pairs.jsonl", profiles=profiles, bits=bits, **OPTIONS)
    points = [line for line in lines if "k" in line]
    assert [{key: value for key, value in line.items() if key != "paper"} for line in points] == evaluation.points.to_pylist()
    assert [line for line in lines if "similar" in line] == evaluation.similar.to_pylist()
    summaries = [line for line in lines if "best" in line]
    for line, row in zip(summaries, evaluation.profiles.to_pylist(), strict=True):
        assert row == {key: line[key] for key in row}
        assert evaluation.best[row["profile"]] == line["best"]
        assert evaluation.recommended[row["profile"]] == line["recommended"]
    assert (evaluation.bits, evaluation.documents, evaluation.alike_from) == (bits, 1000, 0.8)


SOURCES = {
    "list of paths": lambda: [SAMPLES / "pairs.jsonl"],
    "dicts": lambda: iter(ROWS),
    "pandas": lambda: pd.DataFrame(ROWS),
    "polars": lambda: pl.DataFrame(ROWS),
    "pyarrow": lambda: pa.Table.from_pylist(ROWS),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_kind_of_source_gives_the_same(name):
    expected = simstore.evaluate(SAMPLES / "pairs.jsonl", **OPTIONS)
    evaluation = simstore.evaluate(SOURCES[name](), **OPTIONS)
    assert evaluation.points.to_pylist() == expected.points.to_pylist()
    assert evaluation.similar.to_pylist() == expected.similar.to_pylist()
    assert repr(evaluation) == repr(expected)


def test_recall_is_the_share_within_k_of_brute_force():
    profile = simstore.Profile("words-2")
    evaluation = simstore.evaluate(ROWS, profiles=profile, **OPTIONS)
    old = profile.fingerprints([row["text_old"] for row in ROWS]).to_numpy()
    new = profile.fingerprints([row["text_new"] for row in ROWS]).to_numpy()
    distances = np.bitwise_count(old ^ new)
    positive = np.array([row["jaccard3"] >= 0.8 for row in ROWS])
    for point in evaluation.points.to_pylist():
        assert point["positives"] == (distances[positive] <= point["k"]).sum()
        assert point["negatives"] == (distances[~positive] <= point["k"]).sum()
        assert point["recall"] == point["positives"] / positive.sum()


def test_tuples_and_labels_of_every_kind():
    pairs = [("to be or not", "to be or not", True), ("to be", "something else", False), ("a b", "a b", 1), ("c d", "e f", 0)]
    pairs += [("g h", "i j", np.bool_(False)), ["k l", "k l", np.int64(1)]]
    evaluation = simstore.evaluate(pairs, profiles="words-1", documents=2)
    assert (evaluation.pairs, evaluation.positives, evaluation.best) == (6, 3, {"words-1": 0})
    assert simstore.evaluate([pair[:2] for pair in pairs], profiles="words-1").positives == 6


def test_malformed_pairs_raise_or_are_skipped():
    pairs = [("to be or not", "to be or not", True), (None, "b", True), {"text_a": "a"}, ("a", "b", "yes")]
    with pytest.raises(simstore.BadInputError, match="`text_a` is not a string") as raised:
        simstore.evaluate(pairs)
    assert (raised.value.path, raised.value.line) == ("-", 2)
    with pytest.warns(simstore.SimstoreWarning) as warned:
        assert simstore.evaluate(iter(pairs), skip_bad=True).bad == 3
    assert str(warned[-1].message) == "skipped 3 invalid lines" and len(warned) == 4
    for pairs_argument, message in [(3, "expected paths"), ([3], "expected a dict"), (iter(["ab"]), "expected a dict")]:
        with pytest.raises(TypeError, match=message):
            simstore.evaluate(pairs_argument)
    for options, message in [({"bits": 32}, "`bits` is 32"), ({"alike_from": 2.0}, "`alike_from` is 2"), ({"documents": 0}, "`documents`")]:
        with pytest.raises(ValueError, match=message):
            simstore.evaluate(pairs[:1], **options)
    with pytest.raises(ValueError, match="nothing to measure"):
        simstore.evaluate([])
    with pytest.raises(FileNotFoundError):
        simstore.evaluate("nothing.jsonl")
    with pytest.raises(LookupError, match="gone"):
        simstore.evaluate(exec("raise LookupError('gone')") for _ in range(3))


def test_plots():
    evaluation = simstore.evaluate(ROWS, profiles=["words-3", "chars-4"], **OPTIONS)
    assert evaluation.to_svg().startswith("<svg") and evaluation.to_svg() in evaluation._repr_html_()
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    axes = evaluation.plot()
    assert len(axes.lines) == 8 and axes.get_xlabel() == "k, bits"
    _, own_axes = pyplot.subplots()
    assert evaluation.plot(own_axes) is own_axes and len(own_axes.lines) == 8
    pyplot.close("all")


def test_without_matplotlib_it_says_what_to_install():
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import simstore\n"
        "try: simstore.evaluate([('a b', 'a b')], profiles='words-1').plot()\n"
        "except ImportError as error: print(error)"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "pip install matplotlib" in output
