"""AnnData files, written here by h5py in the documented layout; the same reader was run on files of anndata 0.12."""

import re

import h5py
import numpy as np
import pytest
from helpers.h5ad_files import CONTEXTS, TEXT, write
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2core.corpus import Corpus
from mc2core.corpus.building.columns import ContextColumn
from mc2core.corpus.readers import h5ad
from mc2core.corpus.readers.reading import read_own

COUNTS = np.array([[1, 0, 2], [0, 3, 0]])


@settings(max_examples=20, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 6), st.integers(1, 5)),
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(["array", "csr_matrix", "csc_matrix"]),
)
def test_what_is_written_is_read(tmp_path_factory, shape, seed, kind):
    counts = np.random.default_rng(seed).poisson(1.0, shape)
    path = write(tmp_path_factory.mktemp("annotated") / "a.h5ad", counts, kind)
    corpus = h5ad.read(path, CONTEXTS, labels="donor", layer="counts")
    assert (corpus.content.toarray() == counts).all()
    assert corpus.vocabulary == [f"var{w}" for w in range(shape[1])]
    assert list(corpus.documents["id"]) == [f"obs{j}" for j in range(shape[0])]
    assert corpus.contexts["age"].tolist() == [j + 0.5 for j in range(shape[0])]
    assert np.array_equal(corpus.contexts["depth"], [np.nan, *range(1, shape[0])], equal_nan=True)
    names = corpus.context_names["tissue"]
    tissues = [[name for name, n in zip(names, row, strict=True) if n] for row in corpus.contexts["tissue"].toarray()]
    assert tissues == [[("skin", "lung")[j % 2]] for j in range(shape[0] - 1)] + [[]]
    assert [corpus.label_names[label] for label in corpus.labels] == [("bob", "ann")[j % 2] for j in range(shape[0])]


def dated(path):
    """Days as text, one missing; years as numbers; days as categories."""
    with h5py.File(write(path, np.ones((3, 2), int)), "a") as file:
        obs = file["obs"]
        obs.create_dataset("day", data=["2019-07-02", "", "2020-01-01"], dtype=TEXT)
        obs["year"] = np.array([1999.0, np.nan, 2000.5])
        first = obs.create_group("first")
        first.attrs["encoding-type"] = "categorical"
        first.create_dataset("categories", data=["01.07.2021", "02.07.2021"], dtype=TEXT)
        first["codes"] = np.array([1, -1, 0], dtype=np.int8)
    return path


def test_codes_of_obs_are_missing_values(tmp_path):
    path = write(tmp_path / "a.h5ad", np.ones((3, 2), int))
    with h5py.File(path, "a") as file:
        file["obs"].create_dataset("site", data=["NA", "skin", "unknown"], dtype=TEXT)
        file["obs"]["age"][1] = -99
    given = {"contexts": ["age:number", "site:bag"], "layer": "counts"}
    corpus, dropped = read_own(path, given | {"missing": "unknown,-99"})
    assert np.array_equal(corpus.contexts["age"], [0.5, np.nan, 2.5], equal_nan=True)
    assert corpus.context_names["site"] == ["skin"]
    assert sorted(one.number for one in dropped) == [1, 2]
    assert read_own(path, given | {"missing": "none"})[0].context_names["site"] == ["NA", "skin", "unknown"]


def test_dates_are_years_and_their_fractions(tmp_path):
    """2 July is day 182 of 365 (from 0), 1 July 181."""
    path = dated(tmp_path / "a.h5ad")
    contexts = {"day": ContextColumn("day", "date"), "year": ContextColumn("year", "date")}
    corpus = h5ad.read(path, contexts, layer="counts")
    assert corpus.contexts["day"] == pytest.approx([2019 + 182 / 365, np.nan, 2020], nan_ok=True)
    assert corpus.contexts["year"] == pytest.approx([1999, np.nan, 2000.5], nan_ok=True)
    first = h5ad.read(path, {"first": ContextColumn("first", "date")}, layer="counts", date_format="%d.%m.%Y").contexts[
        "first"
    ]
    assert first == pytest.approx([2021 + 182 / 365, np.nan, 2021 + 181 / 365], nan_ok=True)


def test_text_that_is_no_date_is_named(tmp_path):
    path = dated(tmp_path / "a.h5ad")
    with pytest.raises(
        ValueError, match=r"a\.h5ad: 2 of 3 rows cannot be read; --date-format '.*\n  row 1, column 'first'"
    ):
        h5ad.read(path, {"first": ContextColumn("first", "date")}, layer="counts")


def test_the_command_reads_dates_and_cells_like_the_earlier_ones(tmp_path):
    path = dated(tmp_path / "a.h5ad")
    settings = {"contexts": ["first:date"], "layer": "counts", "date_format": "%d.%m.%Y"}
    corpus, _ = read_own(path, settings)
    corpus.save(tmp_path / "corpus")
    new, _ = read_own(path, {}, like=Corpus.load(tmp_path / "corpus"))
    assert new.contexts["first"] == pytest.approx(corpus.contexts["first"], nan_ok=True)
    assert new.contexts["first"][2] == pytest.approx(2021 + 181 / 365)


def test_the_case_of_endings_does_not_matter(tmp_path):
    path = write(tmp_path / "A.H5AD", COUNTS)
    np.save(tmp_path / "e.npy", np.eye(2))
    (tmp_path / "e.npy").rename(tmp_path / "E.NPY")
    corpus, _ = read_own(path, {"layer": "counts", "contexts": [f"place={tmp_path}/E.NPY:vector"]})
    assert (corpus.content.toarray() == COUNTS).all()
    assert corpus.contexts["place"].tolist() == [[1, 0], [0, 1]]


def test_nullable_columns_are_names_as_they_are_written(tmp_path):
    path = write(tmp_path / "a.h5ad", np.ones((3, 2), int))
    with h5py.File(path, "a") as file:
        for name, values in (("nullable-boolean", [True, False, True]), ("nullable-integer", [7, 8, 9])):
            group = file["obs"].create_group(name)
            group.attrs["encoding-type"] = name
            group["values"], group["mask"] = np.array(values), np.array([False, False, True])
    contexts = {"is_old": ContextColumn("nullable-boolean", "bag"), "batch": ContextColumn("nullable-integer", "bag")}
    corpus = h5ad.read(path, contexts, layer="counts")
    assert corpus.context_names == {"is_old": ["False", "True"], "batch": ["7", "8"]}
    assert corpus.missing("is_old").tolist() == [False, False, True]
    numbers = h5ad.read(path, {"batch": ContextColumn("nullable-integer", "number")}, layer="counts")
    assert numbers.contexts["batch"] == pytest.approx([7, 8, np.nan], nan_ok=True)


def with_vectors(path, width=2, shift=0.0):
    """Counts of three cells and, in obsm, a matrix of float32 and one of whole numbers."""
    with h5py.File(write(path, np.ones((3, 2), int)), "a") as file:
        obsm = file.create_group("obsm")
        obsm["X_pca"] = np.arange(3 * width, dtype=np.float32).reshape(3, width) + shift
        obsm["grid"] = np.arange(3)[:, None]
        packed = obsm.create_group("packed")
        packed.attrs["encoding-type"] = "csr_matrix"
        obsm["short"] = np.zeros((2, 4))
    return path


class TestVectors:
    def test_a_matrix_of_obsm_is_a_context_and_new_cells_have_theirs(self, tmp_path):
        path = with_vectors(tmp_path / "a.h5ad")
        corpus, _ = read_own(path, {"contexts": ["emb=X_pca:vector", "grid:vector", "age:number"], "layer": "counts"})
        assert corpus.context_kinds == {"emb": "vector", "grid": "vector", "age": "number"}
        assert corpus.contexts["emb"].tolist() == [[0, 1], [2, 3], [4, 5]]
        assert corpus.contexts["grid"].tolist() == [[0], [1], [2]]
        new, _ = read_own(with_vectors(tmp_path / "b.h5ad", shift=7.0), {}, like=corpus)
        assert new.contexts["emb"].tolist() == [[7, 8], [9, 10], [11, 12]]
        wider = with_vectors(tmp_path / "c.h5ad", width=3)
        with pytest.raises(ValueError, match="'emb' has vectors of 3 numbers, but the corpus has vectors of 2 there"):
            read_own(wider, {}, like=corpus)
        renamed, _ = read_own(path, {"contexts": ["grid=X_pca"]}, like=corpus.with_contexts({"grid": np.eye(3, 2)}))
        assert renamed.contexts["grid"].tolist() == [[0, 1], [2, 3], [4, 5]]
        without, dropped = read_own(write(tmp_path / "d.h5ad", np.ones((3, 2), int)), {}, like=corpus)
        assert without.missing("emb").all()
        assert sorted(one.why.split(",")[0] for one in dropped if one.what == "contexts") == ["emb", "grid"]

    @pytest.mark.parametrize(
        ("context", "message"),
        [
            ("emb=X_pac:vector", "a.h5ad: obsm has no 'X_pac'; did you mean 'X_pca'?"),
            ("packed:vector", "a.h5ad: obsm 'packed' is encoded as 'csr_matrix'; a dense matrix (array) is needed"),
            ("short:vector", "a.h5ad: obsm 'short' holds (2, 4) float64; numbers in 3 rows are needed"),
        ],
    )
    def test_what_is_no_such_matrix_is_refused(self, tmp_path, context, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            read_own(with_vectors(tmp_path / "a.h5ad"), {"contexts": [context], "layer": "counts"})

    def test_a_file_without_any_is_refused_and_so_is_a_table(self, tmp_path):
        with pytest.raises(ValueError, match=r"a\.h5ad has no obsm, where vectors stand"):
            read_own(write(tmp_path / "a.h5ad", COUNTS), {"contexts": ["X_pca:vector"], "layer": "counts"})
        (tmp_path / "a.csv").write_text("text\nferry\n")
        with pytest.raises(ValueError, match=r"'emb=text:vector' is a vector: it must have the form NAME=FILE\.npy"):
            read_own(tmp_path / "a.csv", {"text": "text", "contexts": ["emb=text:vector"]})


def damage(name, value):
    def apply(file):
        del file[name]
        file[name] = value

    return apply


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (None, {}, "holds 0.693147"),
        (None, {"layer": "count"}, "layers has no 'count'; did you mean 'counts'?"),
        (None, {"labels": "doner"}, "obs has no 'doner'; did you mean 'donor'?"),
        (None, {"labels": "tissue"}, "a.h5ad, row 2 has no value in column 'tissue'; each document needs a label"),
        (None, {"contexts": {"a": ContextColumn("donor", "number")}}, "a.h5ad: 2 of 2 rows cannot be read"),
        (None, {"contexts": {"a": ContextColumn("donor", "text")}}, "cannot be of kind 'text'"),
        (damage("obs/age", [1.0]), {"contexts": CONTEXTS}, "'age' has the shape (1,); 2 values are needed"),
        (damage("obs/tissue/codes", [0, 9]), {"contexts": CONTEXTS}, "has the category 9, but 2 names"),
        (damage("layers/counts/indices", [0, 99, 1]), {}, "a.h5ad"),
        (damage("layers/counts/indptr", [0, 2, 99]), {}, "a.h5ad"),
        (damage("obs/names", [1.5, 2.5]), {}, "is not a whole AnnData file"),
        (lambda file: file.pop("var"), {}, "is not a whole AnnData file"),
        (lambda file: file["layers/counts"].attrs.update({"encoding-type": "coo"}), {}, "is encoded as 'coo'"),
        (lambda file: file["layers/counts"].attrs.update({"shape": [2, 4]}), {}, "the matrix is (2, 4), but obs has 2"),
    ],
)
def test_damage_is_refused(tmp_path, change, options, message):
    path = write(tmp_path / "a.h5ad", COUNTS)
    if change:
        with h5py.File(path, "a") as file:
            change(file)
    with pytest.raises(ValueError, match=re.escape(message) if message != "a.h5ad" else None) as caught:
        h5ad.read(path, **({"layer": "counts"} if change else {}) | options)
    assert "\n" not in str(caught.value) or "rows cannot be read" in message


def test_a_bomb_is_refused(tmp_path):
    path = write(tmp_path / "a.h5ad", COUNTS)
    with h5py.File(path, "a") as file:
        del file["obs/age"]
        file.create_dataset("obs/age", (10**12,), chunks=(10**6,), dtype="f8")  # never written: it takes no room
    with pytest.raises(ValueError, match="obs/age claims 8000000000000 bytes, more than 1000 times the file"):
        h5ad.read(path, CONTEXTS, layer="counts")


def test_a_cut_file_is_refused(tmp_path):
    path = write(tmp_path / "a.h5ad", COUNTS)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"a\.h5ad is not a whole AnnData file"):
        h5ad.read(path)
    with pytest.raises(ValueError, match=r"b\.h5ad is missing"):
        h5ad.read(tmp_path / "b.h5ad")


def external_link(file, name, other):
    file[name] = h5py.ExternalLink(other, "obs/age")


def external_storage(file, name, other):
    file.create_dataset(name, (2,), "f8", external=[(other, 0, h5py.h5f.UNLIMITED)])


def virtual(file, name, other):
    layout = h5py.VirtualLayout((2,), "f8")
    layout[:] = h5py.VirtualSource(other, "obs/age", (2,))
    file.create_virtual_dataset(name, layout)


@pytest.mark.parametrize("put", [external_link, external_storage, virtual])
@pytest.mark.parametrize("name", ["obs/age", "obsm/X_pca"])
def test_other_files_are_not_read(tmp_path, put, name):
    other = str(write(tmp_path / "other.h5ad", COUNTS))
    path = write(tmp_path / "a.h5ad", COUNTS)
    with h5py.File(path, "a") as file:
        if name in file:
            del file[name]
        put(file, name, other)
    with pytest.raises(ValueError, match=rf"a\.h5ad: '{name.split('/')[1]}' lies in another file, which is not read"):
        h5ad.read(path, CONTEXTS, layer="counts")


def test_a_link_within_the_file_is_followed(tmp_path):
    path = write(tmp_path / "a.h5ad", COUNTS)
    with h5py.File(path, "a") as file:
        file.move("obs/age", "obs/years")
        file["obs/age"] = h5py.SoftLink("/obs/years")
    assert h5ad.read(path, CONTEXTS, layer="counts").contexts["age"].tolist() == [0.5, 1.5]
