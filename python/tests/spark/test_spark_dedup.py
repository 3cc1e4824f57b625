"""`simstore.spark.dedup` keeps the same rows as `simstore.dedup` on one machine."""

import itertools
import json
import subprocess
import warnings

import pytest

import corpora
import simstore


def document_frame(spark, rows, partitions=3, schema="id long, text string, date string"):
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, partitions), schema)


def mixed_rows():
    """Returns rows (id, text, date) in order of id. Some texts form chains or stars of similar texts, some are equal, some are unique."""
    words_of_chain = [f"w{at}" for at in range(150)]
    texts = [row["text"] for row in corpora.sample_rows("en.jsonl")] + corpora.random_texts(3, 60, words=36)
    texts += [" ".join(words_of_chain[at : at + 60]) for at in range(0, 80, 4)]
    texts += ["the same few words"] * 5 + ["", "?!", "", "nothing like it"]
    dates = ["2026-01-01", "", "2025-05-05", "9", "10", "soon", "2026-01-01"]
    # Punctuation changes the lengths of texts, but not their words.
    return [(at, text + "!" * (at * 7 % 5), dates[at % 7]) for at, text in enumerate(texts)]


def dedup_on_one_machine(rows, **options):
    """Returns a dict from the id of each row to the columns that `simstore.spark.dedup` should add to the row."""
    documents = [dict(zip(("id", "text", "date"), row)) for row in rows]
    with warnings.catch_warnings():
        # Ignores warnings about short texts and missing dates.
        warnings.simplefilter("ignore", simstore.SimstoreWarning)
        found = simstore.dedup(documents, **options)
    by_id = {id: (None, True, None, None, None) for id, *_ in rows}
    score = "distance" if "distance" in options else "similarity"
    removed = {row["id"]: (row["duplicate_of"], row[score]) for row in found.removed}
    clusters = itertools.groupby(found.clusters.to_pylist(), key=lambda row: row["cluster"])
    for _, members in clusters:
        members = list(members)
        cluster_id = min(row["id"] for row in members)
        for row in members:
            by_id[row["id"]] = (cluster_id, row["is_kept"], row["representative"], *removed.get(row["id"], (None, None)))
    return by_id


def dedup(df, **options):
    from simstore.spark import dedup, release

    found = dedup(df, **options)
    score = "distance" if "distance" in options else "similarity"
    assert found.columns == [*df.columns, "cluster", "is_kept", "representative", "duplicate_of", score]
    rows = found.collect()
    release()
    return {row.id: tuple(row[len(df.columns) :]) for row in rows}


@pytest.mark.parametrize("partitions", [1, 50])
def test_the_same_clusters_as_on_one_machine(spark, partitions):
    rows = mixed_rows()
    found = dedup(document_frame(spark, rows, partitions))
    assert found == dedup_on_one_machine(rows, similar=0.8)
    removed = {id: row for id, row in found.items() if not row[1]}
    texts = {id: text for id, text, _ in rows}
    assert len(removed) > 30
    for id, (_, _, representative, kept, similarity) in removed.items():
        assert found[kept][1] and found[representative][1]
        assert simstore.similarity(texts[id], texts[kept]) == similarity >= simstore.similarity(texts[id], texts[representative]) >= 0.8
    # The nearest kept row may differ from the representative.
    assert any(representative != kept for _, _, representative, kept, _ in removed.values())


def test_drop_duplicates_returns_the_kept_rows(spark):
    from simstore.spark import dedup, release

    rows = mixed_rows()
    df = document_frame(spark, rows)
    kept = dedup(df, drop_duplicates=True)
    assert kept.schema == df.schema
    expected = dedup_on_one_machine(rows, similar=0.8)
    assert sorted(map(tuple, kept.collect())) == [row for row in rows if expected[row[0]][1]]
    release()


@pytest.mark.parametrize("keep", ["longest", "newest:date", "largest:date", "smallest:date"])
def test_keep_rules(spark, keep):
    rows = mixed_rows()
    expected = dedup_on_one_machine(rows, similar=0.8, keep=keep)
    found = dedup(document_frame(spark, rows), keep=keep)
    # Among equally similar kept rows, the reported one may differ.
    assert all(found[row[3]][1] for row in found.values() if not row[1])
    found, expected = ({id: (*row[:3], row[4]) for id, row in by_id.items()} for by_id in (found, expected))
    assert found == expected and {id: row[1] for id, row in found.items()} != {
        id: row[1] for id, row in dedup_on_one_machine(rows, similar=0.8).items()
    }


def test_keep_none(spark):
    rows = mixed_rows()
    found = dedup(document_frame(spark, rows), keep="none")
    expected = dedup_on_one_machine(rows, similar=0.8, keep="none")
    assert {id: row[:3] for id, row in found.items()} == {id: row[:3] for id, row in expected.items()}
    assert {row[3:] for row in found.values()} == {(None, None)}


@pytest.mark.parametrize("keep", ["smallest-id", "longest", "none"])
def test_by_distance(spark, keep):
    rows = mixed_rows()
    found = dedup(document_frame(spark, rows), distance=6, keep=keep)
    expected = dedup_on_one_machine(rows, distance=6, keep=keep)
    if keep == "none":
        found, expected = ({id: row[:3] for id, row in by_id.items()} for by_id in (found, expected))
    assert found == expected


def test_ids_of_any_type(spark):
    rows = mixed_rows()
    schema = "id struct<page:int,part:string>, text string, date string"
    found = dedup(document_frame(spark, [((id // 4, "abcd"[id % 4]), *others) for id, *others in rows], schema=schema))

    def to_number(id):
        return None if id is None else id[0] * 4 + "abcd".index(id[1])

    expected = dedup_on_one_machine(rows, similar=0.8)
    found_by_number = {
        to_number(id): (to_number(row[0]), row[1], to_number(row[2]), to_number(row[3]), row[4]) for id, row in found.items()
    }
    assert found_by_number == expected


def test_invalid_arguments_are_refused(spark):
    from simstore.spark import dedup

    df = document_frame(spark, [(1, "a", ""), (2, "b", "")])
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


def dedup_against_on_one_machine(rows, paths, **options):
    found = simstore.dedup([dict(zip(("id", "text", "date"), row)) for row in rows], against=paths, **options)
    rows = found.clusters.to_pylist()
    score = "similarity" if "similarity" in found.clusters.column_names else "distance"
    paths = {row["id"]: row.get("store") for row in rows}
    return {row["id"]: (str(row["representative"]), row[score]) for row in rows if row["stored"]}, found, paths


def test_against_stores_of_fingerprints(spark, tmp_path):
    rows = mixed_rows()
    profile = simstore.Profile()
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    for path, stored_rows in zip(paths, (rows[::9], rows[4::11])):
        with simstore.Store(path, distance=6, profile=profile) as store:
            for id, text, _ in stored_rows:
                fingerprint = profile.fingerprint(text)
                if fingerprint is not None:
                    store.insert(fingerprint, 1000 + id, f"page {id}" if id % 2 else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", simstore.SimstoreWarning)
        expected, machine, stores = dedup_against_on_one_machine(rows, paths, distance=6)
    assert len(expected) > 20
    from simstore.spark import dedup, release

    found = dedup(document_frame(spark, rows), distance=6, against=paths).collect()
    release()
    assert {row.id: (row.stored, row.distance) for row in found if row.stored is not None} == expected
    assert {row.id: row.store for row in found if row.stored is not None} == {id: stores[id] for id in expected}
    assert all(not row.is_kept and row.duplicate_of is None for row in found if row.stored is not None)
    assert [row.is_kept for row in sorted(found)] == machine.is_kept.tolist()


def test_against_stores_of_similar_documents(spark, tmp_path):
    rows = mixed_rows()
    path = tmp_path / "similar"
    pages = tmp_path / "pages.jsonl"
    pages.write_text("".join(json.dumps({"id": f"page {id}", "text": text}) + "\n" for id, text, _ in rows[::9]))
    subprocess.run([corpora.cli_binary(), "add", path, pages, "--similar", "0.8"], check=True, capture_output=True)
    expected, machine, _ = dedup_against_on_one_machine(rows, [str(path)], similar=0.85)
    assert len(expected) > 10
    from simstore.spark import dedup, release

    found = dedup(document_frame(spark, rows), similar=0.85, against=str(path)).collect()
    release()
    assert {row.id: (row.stored, row.similarity) for row in found if row.stored is not None} == expected
    assert [row.is_kept for row in sorted(found)] == machine.is_kept.tolist()
    by_id = {row.id: row for row in found}
    assert all(by_id[row["id"]].representative == int(row["representative"]) for row in machine.clusters if not row["stored"])
    for row in machine.removed:
        if not row["stored"]:
            assert (by_id[row["id"]].duplicate_of, by_id[row["id"]].similarity) == (int(row["duplicate_of"]), row["similarity"])
