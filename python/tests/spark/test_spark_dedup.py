"""`simstore.spark.dedup` keeps the same rows as `simstore.dedup` on one machine."""

import itertools
import json
import subprocess
import warnings

import pytest

import corpora
import simstore


def frame(spark, rows, partitions=3, schema="id long, text string, date string"):
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, partitions), schema)


def mixed():
    """Returns rows of three columns in the order of their ids: chains, stars, equal texts, texts without a near one."""
    numbers = [f"w{at}" for at in range(150)]
    texts = [row["text"] for row in corpora.rows_of("en.jsonl")] + corpora.texts(3, 60, words=36)
    texts += [" ".join(numbers[at : at + 60]) for at in range(0, 80, 4)]
    texts += ["the same few words"] * 5 + ["", "?!", "", "nothing like it"]
    dates = ["2026-01-01", "", "2025-05-05", "9", "10", "soon", "2026-01-01"]
    # Longer by signs, which are not part of words.
    return [(at, text + "!" * (at * 7 % 5), dates[at % 7]) for at, text in enumerate(texts)]


def one_machine(rows, **options):
    """Returns for each row its cluster (smallest id), whether it is kept, the representative, the kept duplicate, and the similarity."""
    told = [dict(zip(("id", "text", "date"), row)) for row in rows]
    with warnings.catch_warnings():
        # Ignores warnings about short texts and missing dates.
        warnings.simplefilter("ignore", simstore.SimstoreWarning)
        found = simstore.dedup(told, **options)
    of = {id: (None, True, None, None, None) for id, *_ in rows}
    how = "distance" if "distance" in options else "similarity"
    removed = {row["id"]: (row["duplicate_of"], row[how]) for row in found.removed}
    clusters = itertools.groupby(found.clusters.to_pylist(), key=lambda row: row["cluster"])
    for _, members in clusters:
        members = list(members)
        first = min(row["id"] for row in members)
        for row in members:
            of[row["id"]] = (first, row["is_kept"], row["representative"], *removed.get(row["id"], (None, None)))
    return of


def dedup(df, **options):
    from simstore.spark import dedup, release

    found = dedup(df, **options)
    how = "distance" if "distance" in options else "similarity"
    assert found.columns == [*df.columns, "cluster", "is_kept", "representative", "duplicate_of", how]
    rows = found.collect()
    release()
    return {row.id: tuple(row[len(df.columns) :]) for row in rows}


@pytest.mark.parametrize("partitions", [1, 50])
def test_the_same_clusters_as_on_one_machine(spark, partitions):
    rows = mixed()
    found = dedup(frame(spark, rows, partitions))
    assert found == one_machine(rows, similar=0.8)
    removed = {id: of for id, of in found.items() if not of[1]}
    texts = {id: text for id, text, _ in rows}
    assert len(removed) > 30
    for id, (_, _, representative, kept, share) in removed.items():
        assert found[kept][1] and found[representative][1]
        assert simstore.similarity(texts[id], texts[kept]) == share >= simstore.similarity(texts[id], texts[representative]) >= 0.8
    # The nearest kept row may differ from the representative.
    assert any(representative != kept for _, _, representative, kept, _ in removed.values())


def test_what_is_left(spark):
    from simstore.spark import dedup, release

    rows = mixed()
    df = frame(spark, rows)
    left = dedup(df, drop_duplicates=True)
    assert left.schema == df.schema
    expected = one_machine(rows, similar=0.8)
    assert sorted(map(tuple, left.collect())) == [row for row in rows if expected[row[0]][1]]
    release()


@pytest.mark.parametrize("keep", ["longest", "newest:date", "largest:date", "smallest:date"])
def test_what_is_kept(spark, keep):
    rows = mixed()
    expected = one_machine(rows, similar=0.8, keep=keep)
    found = dedup(frame(spark, rows), keep=keep)
    # Among equally similar kept rows, the reported one may differ.
    assert all(found[of[3]][1] for of in found.values() if not of[1])
    found, expected = ({id: (*of[:3], of[4]) for id, of in some.items()} for some in (found, expected))
    assert found == expected and {id: of[1] for id, of in found.items()} != {
        id: of[1] for id, of in one_machine(rows, similar=0.8).items()
    }


def test_nothing_is_kept(spark):
    rows = mixed()
    found = dedup(frame(spark, rows), keep="none")
    expected = one_machine(rows, similar=0.8, keep="none")
    assert {id: of[:3] for id, of in found.items()} == {id: of[:3] for id, of in expected.items()}
    assert {of[3:] for of in found.values()} == {(None, None)}


@pytest.mark.parametrize("keep", ["smallest-id", "longest", "none"])
def test_by_distance(spark, keep):
    rows = mixed()
    found = dedup(frame(spark, rows), distance=6, keep=keep)
    expected = one_machine(rows, distance=6, keep=keep)
    if keep == "none":
        found, expected = ({id: of[:3] for id, of in some.items()} for some in (found, expected))
    assert found == expected


def test_ids_of_any_type(spark):
    rows = mixed()
    schema = "id struct<page:int,part:string>, text string, date string"
    found = dedup(frame(spark, [((id // 4, "abcd"[id % 4]), *others) for id, *others in rows], schema=schema))

    def number(id):
        return None if id is None else id[0] * 4 + "abcd".index(id[1])

    expected = one_machine(rows, similar=0.8)
    numbered = {number(id): (number(of[0]), of[1], number(of[2]), number(of[3]), of[4]) for id, of in found.items()}
    assert numbered == expected


def test_what_makes_no_sense_is_refused(spark):
    from simstore.spark import dedup

    df = frame(spark, [(1, "a", ""), (2, "b", "")])
    with pytest.raises(ValueError, match="option `similar` compares texts"):
        dedup(df, similar=0.8, distance=3)
    with pytest.raises(ValueError, match="have no order"):
        dedup(df, keep="first")
    with pytest.raises(ValueError, match='expected "smallest-id"'):
        dedup(df, keep="best")
    with pytest.raises(ValueError, match="no column `day`"):
        dedup(df, keep="newest:day")
    with pytest.raises(TypeError, match='column `day` is date: "largest" compares numbers, "newest:day" dates'):
        dedup(df.selectExpr("id", "text", "date'2024-01-01' as day"), keep="largest:day")
    with pytest.raises(TypeError, match="texts are string"):
        dedup(df, text="id")
    with pytest.raises(ValueError, match="there is a column `is_kept`"):
        dedup(df.withColumnRenamed("date", "Is_Kept"))
    with pytest.raises(ValueError, match="2 rows have the id 1 in column `id`"):
        dedup(df.union(df.where("id = 1")))
    with pytest.raises(ValueError, match="at most 16"):
        dedup(df, distance=17)


def one_machine_against(rows, paths, **options):
    found = simstore.dedup([dict(zip(("id", "text", "date"), row)) for row in rows], against=paths, **options)
    rows = found.clusters.to_pylist()
    how = "similarity" if "similarity" in found.clusters.column_names else "distance"
    paths = {row["id"]: row.get("store") for row in rows}
    return {row["id"]: (str(row["representative"]), row[how]) for row in rows if row["stored"]}, found, paths


def test_against_stores_of_fingerprints(spark, tmp_path):
    rows = mixed()
    profile = simstore.Profile()
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    for path, some in zip(paths, (rows[::9], rows[4::11])):
        with simstore.Store(path, distance=6, profile=profile) as store:
            for id, text, _ in some:
                fingerprint = profile.fingerprint(text)
                if fingerprint is not None:
                    store.insert(fingerprint, 1000 + id, f"page {id}" if id % 2 else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", simstore.SimstoreWarning)
        expected, machine, stores = one_machine_against(rows, paths, distance=6)
    assert len(expected) > 20
    from simstore.spark import dedup, release

    found = dedup(frame(spark, rows), distance=6, against=paths).collect()
    release()
    assert {row.id: (row.stored, row.distance) for row in found if row.stored is not None} == expected
    assert {row.id: row.store for row in found if row.stored is not None} == {id: stores[id] for id in expected}
    assert all(not row.is_kept and row.duplicate_of is None for row in found if row.stored is not None)
    assert [row.is_kept for row in sorted(found)] == machine.is_kept.tolist()


def test_against_stores_of_similar_documents(spark, tmp_path):
    rows = mixed()
    path = tmp_path / "similar"
    pages = tmp_path / "pages.jsonl"
    pages.write_text("".join(json.dumps({"id": f"page {id}", "text": text}) + "\n" for id, text, _ in rows[::9]))
    subprocess.run([corpora.binary(), "add", path, pages, "--similar", "0.8"], check=True, capture_output=True)
    expected, machine, _ = one_machine_against(rows, [str(path)], similar=0.85)
    assert len(expected) > 10
    from simstore.spark import dedup, release

    found = dedup(frame(spark, rows), similar=0.85, against=str(path)).collect()
    release()
    assert {row.id: (row.stored, row.similarity) for row in found if row.stored is not None} == expected
    assert [row.is_kept for row in sorted(found)] == machine.is_kept.tolist()
    of = {row.id: row for row in found}
    assert all(of[row["id"]].representative == int(row["representative"]) for row in machine.clusters if not row["stored"])
    for row in machine.removed:
        if not row["stored"]:
            assert (of[row["id"]].duplicate_of, of[row["id"]].similarity) == (int(row["duplicate_of"]), row["similarity"])
