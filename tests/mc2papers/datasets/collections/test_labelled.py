"""Labelled corpora: what is written is read, what is damaged is refused in a sentence, the local data folder's
counts."""

import zipfile
from collections import Counter

import numpy as np
import pytest
from helpers import paths
from helpers.labelled_files import ABSTRACTS, ADDRESSES, IMAGES, INFO, TAGS, write_tar

from mc2core import Corpus
from mc2papers.datasets import catalogue
from mc2papers.datasets.collections import labelled_images, labelled_texts

DATA_FOLDER = paths.DATA_FOLDER / "labelled"
in_data_folder = pytest.mark.skipif(
    not DATA_FOLDER.is_dir(), reason=f"the real files are not in {DATA_FOLDER} (set MC2_DATA_FOLDER)"
)

ABSTRACTS |= {"o/test/C02/0004": "Heart liver g\u00fcnther".encode("latin-1"), "o/test/C23/0005": b"1 2 3"}
ABSTRACTS |= {"o/test/C01/0006": b"liver"}
ADDRESSES |= {"u/README": b"President Kennedy"}


def write_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def write_sports(folder, tags=TAGS, info=INFO):
    (folder / "uiuc-sports-annotations.txt").write_bytes(tags)
    (folder / "uiuc-sports-info.txt").write_bytes(info)
    return folder / "uiuc-sports-annotations.txt", folder / "uiuc-sports-info.txt"


def prepare_addresses(folder, path, which):
    files, settings = {"files": [path]}, {"half": which}
    return catalogue.prepare("stateunion", folder, source="real", test_size=0, settings=settings, files=files)


class TestRead:
    def test_labelme(self, tmp_path):
        corpus = labelled_images.read_labelme(write_tar(tmp_path / "images.tgz", IMAGES))
        assert corpus.content.shape == (4, 158)
        assert corpus.content.toarray()[[0, 0, 1, 3], [0, 157, 7, 7]].tolist() == [3, 1, 2, 5]
        assert corpus.n_tokens == 11
        assert corpus.labels.tolist() == [0, 7, 3, 3]
        assert corpus.label_names == list("01234567")
        assert corpus.documents["id"].tolist() == ["train-1", "train-2", "train-3", "test-1"]
        assert corpus.documents["split"].tolist() == ["train"] * 3 + ["test"]
        assert corpus.contexts == {}

    def test_sports(self, tmp_path):
        corpus, dropped = labelled_images.read_sports(*write_sports(tmp_path))
        assert corpus.vocabulary == ["athlete", "ball", "sky", "water"]
        assert corpus.content.toarray().tolist() == [[2, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0]]
        assert [corpus.label_names[label] for label in corpus.labels] == ["polo", "rowing", "polo", "bocce"]
        assert corpus.documents["id"][1] == "rowing/image_0001.jpg"
        assert [(one.number, one.what) for one in dropped] == [(1, "objects")]

    def test_ohsumed(self, tmp_path):
        corpus, dropped = labelled_texts.read_ohsumed(write_tar(tmp_path / "o.tar.gz", ABSTRACTS))
        assert corpus.vocabulary == ["heart", "liver"]
        assert corpus.content.toarray().tolist() == [[2, 1]] * 4 + [[1, 1], [0, 0], [0, 1]]
        names = [corpus.label_names[label] for label in corpus.labels]
        assert names == ["C01", "C02", "C01", "C02", "C02", "C23", "C01"]
        assert corpus.documents["id"].tolist() == [f"000{j}" for j in range(7)]
        assert corpus.documents["part"].tolist() == ["train"] * 4 + ["test"] * 3
        assert [(one.what, one.number) for one in dropped] == [("words", 2), ("tokens", 5)]

    def test_addresses(self, tmp_path):
        corpus, dropped = labelled_texts.read_addresses(write_zip(tmp_path / "u.zip", ADDRESSES))
        assert corpus.vocabulary == ["citizens", "fellow", "peace"]
        assert corpus.label_names == ["Bush", "GWBush", "Johnson", "Kennedy"]
        assert corpus.documents["id"].tolist() == [
            "1963-Johnson", "1963-Kennedy", "1965-Johnson-1", "1965-Johnson-2", "1990-Bush", "2001-GWBush-1",
        ]  # fmt: skip
        assert corpus.labels.tolist() == [2, 3, 2, 2, 0, 1]
        assert (
            corpus.contexts["year"].tolist()
            == corpus.documents["year"].tolist()
            == [1963, 1963, 1965, 1965, 1990, 2001]
        )
        assert dropped[-1].number == 6

    def test_the_heading_of_an_address_does_not_tell_its_class(self, tmp_path):
        many = {f"{1900 + j}-Truman.txt": b"TRUMAN\nspeech" for j in range(6)}
        corpus, _ = labelled_texts.read_addresses(write_zip(tmp_path / "u.zip", many))
        assert corpus.vocabulary == ["speech"]

    def test_datasets_hold_one_half_with_its_contexts(self, tmp_path):
        path = write_zip(tmp_path / "state_union.zip", ADDRESSES)
        folders = {}
        for which in ("validation", "report"):
            about = prepare_addresses(tmp_path / which, path, which)
            assert (about["documents"], about["contexts"], about["test_documents"]) == (3, ["year"], 0)
            folders[which] = Corpus.load(tmp_path / which / "train")
            assert f"The half '{which}' of 6 documents" in (tmp_path / which / "datasheet.md").read_text()
        ids = [one for corpus in folders.values() for one in corpus.documents["id"]]
        assert len(set(ids)) == 6
        assert folders["report"].units.keys() == {"year"}
        with pytest.raises(ValueError, match="half is 'all'; it must be one of validation, report"):
            prepare_addresses(tmp_path / "x", path, "all")
        with pytest.raises(ValueError, match="dataset 'uiucsports' is read from 2 files, not from 1"):
            catalogue.prepare("uiucsports", tmp_path / "x", source="real", files={"files": [path]})


class TestDamage:
    @pytest.mark.parametrize(
        ("file", "content", "message"),
        [
            ("train-data.dat", b"2 0:3\n1 7:2\n0\n", "train-data.dat, line 1 announces 2 words, but lists 1"),
            (
                "train-data.dat",
                b"1 158:1\n1 7:2\n0\n",
                "line 1 has word 158, but the list of visual words ends at word 157",
            ),
            ("test-data.dat", b"1 7:-5\n", "test-data.dat, line 1 must be whole numbers in the form 'nterms"),
            ("test-data.dat", b"1 7:5\n\n1 1:1\n", "test-data.dat, line 2 must be whole numbers in the form 'nterms"),
            ("test-data.dat", b"", "test-data.dat, line 1 must be whole numbers in the form 'nterms"),
            ("train-label.dat", b"0\n8\n3\n", "train-label.dat, line 2 is '8'; a number from 0 to 7 is needed"),
            ("train-label.dat", b"0\n\xff\n3\n", "line 2 is '\u00ff'; a number"),
            ("train-label.dat", b"0\n7\n", "train-label.dat has 2 lines, but train-data.dat has 3 images"),
            ("test-label.dat", None, "has no member test-label.dat"),
        ],
    )
    def test_a_damaged_labelme_is_refused(self, tmp_path, file, content, message):
        members = {name: old for name, old in IMAGES.items() if name != file}
        path = write_tar(tmp_path / "images.tgz", members if content is None else members | {file: content})
        with pytest.raises(ValueError, match=message):
            labelled_images.read_labelme(path)

    @pytest.mark.parametrize(
        ("files", "message"),
        [
            (
                {"tags": TAGS + b"more\n"},
                "annotations.txt has 5 lines, but .*info.txt has 4; both need a line per image",
            ),
            (
                {"tags": b"two words, ball\n\n\n\n"},
                "annotations.txt, line 1 has the tag 'two words'; tags must be words",
            ),
            ({"tags": b"ball\n\xff\n\n\n"}, "annotations.txt, line 2 is not UTF-8 text"),
            ({"info": INFO.replace(b"rowing ", b"")}, "info.txt, line 2 is 'image_0001.jpg'; a class and a file name"),
            ({"info": INFO.replace(b"0002", b"0001")}, "info.txt names the image 'polo/image_0001.jpg' twice"),
            ({"tags": b"", "info": b""}, "empty|no document"),
        ],
    )
    def test_damaged_sports_are_refused(self, tmp_path, files, message):
        with pytest.raises(ValueError, match=message):
            labelled_images.read_sports(*write_sports(tmp_path, **files))

    @pytest.mark.parametrize(
        ("read", "members", "message"),
        [
            ("read_ohsumed", {"../training/C01/1": b"x"}, "has a member with the unsafe name '../training/C01/1'"),
            ("read_ohsumed", {"/training/C01/1": b"x"}, "has a member with the unsafe name"),
            (
                "read_ohsumed",
                {"training/C1/1": b"x"},
                "has the member 'training/C1/1', not of the form .training,test./Cnn",
            ),
            ("read_ohsumed", {"training/C01/1": b"x", "test/C02/1": b"x"}, "has the text '1' twice"),
            ("read_ohsumed", {}, "has no text: no member is of the form"),
            ("read_ohsumed", {"test/C02/1": bytes(2**22 + 1)}, "unpacks to more than 4194304 bytes"),
            ("read_addresses", {"1963.txt": b"x"}, "has the member '1963.txt', not of the form YEAR-President.txt"),
            ("read_addresses", {"a/1963-Ford.txt": b"x", "b/1963-Ford.txt": b"x"}, "has the text '1963-Ford' twice"),
            ("read_addresses", {"README": b"x"}, "has no text"),
        ],
    )
    def test_damaged_texts_are_refused(self, tmp_path, read, members, message):
        with pytest.raises(ValueError, match=message) as refused:
            getattr(labelled_texts, read)(write_tar(tmp_path / "x.tar.gz", members))
        assert len(str(refused.value).splitlines()) == 1

    @pytest.mark.parametrize("read", [labelled_texts.read_ohsumed, labelled_images.read_labelme])
    def test_an_archive_that_is_cut_off_or_missing_is_refused(self, tmp_path, read):
        whole = write_tar(
            tmp_path / "whole.tgz", ABSTRACTS | IMAGES if read is labelled_images.read_labelme else ABSTRACTS
        )
        (tmp_path / "cut.tgz").write_bytes(whole.read_bytes()[:-20])
        with pytest.raises(ValueError, match=r"cut\.tgz is damaged or cut off"):
            read(tmp_path / "cut.tgz")
        with pytest.raises(ValueError, match=r"nothing\.tgz is missing"):
            read(tmp_path / "nothing.tgz")


class TestDataFolder:
    @in_data_folder
    def test_real_images_have_the_counts_of_the_manifest(self):
        corpus = labelled_images.read_labelme(DATA_FOLDER / "images.tgz")
        assert (corpus.n_documents, corpus.n_words, corpus.n_tokens) == (1600, 158, 1600 * 2401)
        assert np.bincount(corpus.labels).tolist() == [200] * 8
        corpus, _ = labelled_images.read_sports(
            DATA_FOLDER / "uiuc-sports-annotations.txt", DATA_FOLDER / "uiuc-sports-info.txt"
        )
        assert (corpus.n_documents, corpus.n_words, len(corpus.label_names)) == (1792, 364, 8)

    @in_data_folder
    def test_real_texts_have_the_counts_of_the_manifest(self):
        corpus, _ = labelled_texts.read_ohsumed(DATA_FOLDER / "ohsumed_single_23.tar.gz")
        sizes = Counter(corpus.labels.tolist())
        assert (corpus.n_documents, len(sizes), min(sizes.values()), max(sizes.values())) == (7400, 23, 19, 1175)
        corpus, _ = labelled_texts.read_addresses(DATA_FOLDER / "state_union.zip")
        year = corpus.contexts["year"]
        assert (corpus.n_documents, len(corpus.label_names), year.min(), year.max()) == (65, 11, 1945, 2006)
