"""NUS-WIDE: images written in the official formats are read back, and files gone wrong are refused in one sentence."""

import re
import zipfile

import numpy as np
import pytest
from helpers.nuswide_files import official, small
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2papers.datasets.collections import nuswide


def write(folder, files, zipped=False):
    for name, content in files.items():
        group, _, base = name.partition("/")
        folder.mkdir(exist_ok=True)
        if zipped and group != "Low_Level_Features":
            with zipfile.ZipFile(folder / f"{group}.zip", "a", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(f"{group}/{base}", content)
        else:
            (folder / group).mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
    return folder


def read(folder, animals=("cat", "wolf", "zebra"), sizes=None):
    return nuswide.read(folder, animals, sizes)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n_train=st.integers(4, 12),
    n_test=st.integers(4, 9),
    whole=st.booleans(),
    zipped=st.booleans(),
)
def test_what_is_written_is_read(tmp_path_factory, seed, n_train, n_test, whole, zipped):
    data = small(seed, n_train, n_test)
    corpus = read(write(tmp_path_factory.mktemp("nuswide"), official(data, whole), zipped))
    wanted = [i for i, image in enumerate(data["images"]) if not image.startswith("actor")]
    assert (corpus.content.toarray() == data["words"][wanted]).all()
    assert (corpus.contexts["tag"].toarray() == data["tags"][wanted]).all()
    assert list(corpus.documents["image"]) == [data["images"][i].replace("\\", "/") for i in wanted]
    assert list(corpus.documents["part"]) == ["train" if i < n_train else "test" for i in wanted]
    assert [corpus.label_names[label] for label in corpus.labels] == [
        image.split("/")[0] for image in corpus.documents["image"]
    ]
    assert corpus.context_names["tag"][:2] == ["tag0", "tag1"]


def test_the_papers_animals_and_sizes():
    assert len(nuswide.ANIMALS) == 13
    assert sum(nuswide.PAPER_SIZES) == 3411


def test_other_sizes_than_the_papers_are_told_animal_by_animal(tmp_path):
    write(tmp_path / "a", official(small()))
    message = "the animals have 9 train and 6 test images, but the paper has 2054 and 1357; .*: cat 3\\+2, wolf 3\\+2, "
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "a", sizes=nuswide.PAPER_SIZES)
    assert read(tmp_path / "a", sizes=(9, 6)).n_documents == 15


def edit(name, change):
    def apply(files):
        files[name] = change(files[name])

    return apply


TRAIN_LIST, TRAIN_WORDS = "ImageList/TrainImagelist.txt", "Low_Level_Features/BoW_Train_int.dat"
TRAIN_TAGS, TAG_LIST = "NUS_WID_Tags/Train_Tags1k.dat", "NUS_WID_Tags/TagList1k.txt"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.pop(TRAIN_WORDS), "has no file BoW_Train_int.dat (unpack NUS_WID_Low_Level_Features.rar there)"),
        (lambda f: f.pop(TRAIN_LIST), "has no file TrainImagelist.txt"),
        (edit(TRAIN_LIST, lambda s: s.replace(b"\\", b"-", 1)), "TrainImagelist.txt, line 1 is b'actor-0000_"),
        (edit(TRAIN_LIST, lambda s: b"\xff" + s), "TrainImagelist.txt, line 1 is b'\\xffactor"),
        (edit(TRAIN_LIST, lambda s: s.replace(b"_", "\u2028".encode(), 1)), "TrainImagelist.txt, line 1 is b'actor"),
        (edit(TRAIN_LIST, lambda s: s + s), "TrainImagelist.txt, line 13 repeats the image actor/0000_"),
        (edit(TRAIN_LIST, lambda s: s.replace(b"zebra", b"horse")), None),
        (lambda f: f.update({"ImageList/TestImagelist.txt": f[TRAIN_LIST]}), "is in the train and in the test list"),
        (edit(TRAIN_WORDS, lambda s: s.replace(b"\r", b"7\r")), "BoW_Train_int.dat, line 2 has 501 numbers; 500 are"),
        (
            edit(TRAIN_WORDS, lambda s: b"-1" + s.replace(b"\n", b"\n-")),
            "BoW_Train_int.dat, line 2 must be whole numbers",
        ),
        (edit(TRAIN_WORDS, lambda s: s[: len(s) // 2 - 99]), "BoW_Train_int.dat, line 6 has"),
        (edit(TRAIN_WORDS, lambda s: s + s), "BoW_Train_int.dat has more lines than the image list, 12"),
        (edit(TRAIN_WORDS, lambda s: s.split(b"\n")[0]), "BoW_Train_int.dat has 1 lines, but the image list has 12"),
        (edit(TRAIN_WORDS, lambda s: b"0 " * 40_000), "BoW_Train_int.dat has a line of more than 65536 bytes"),
        (
            edit(TRAIN_TAGS, lambda s: s.replace(b"\n", b"\n2\t").replace(b"0\t\r", b"\r")),
            "Tags1k.dat, line 2 holds 2; 1",
        ),
        (edit(TAG_LIST, lambda s: s.replace(b"tag1\r", b"tag0\r")), "has 1000 lines, 999 of them distinct"),
        (edit(TAG_LIST, lambda s: b"\xff" + s), "TagList1k.txt is not UTF-8"),
    ],
)
def test_damage_is_refused(tmp_path, change, message):
    files = official(small())
    change(files)
    folder = write(tmp_path / "nuswide", files)
    if message is None:  # the animal is still in the test list, so only the count tells
        assert np.bincount(read(folder).labels).tolist() == [5, 5, 2]
        return
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read(folder)
    assert "\n" not in str(caught.value)


def test_unknown_folders_and_places(tmp_path):
    folder = write(tmp_path / "a", official(small()))
    with pytest.raises(ValueError, match="the image lists have no folder 'wolfs'; did you mean 'wolf'"):
        read(folder, animals=("cat", "wolfs"))
    with pytest.raises(ValueError, match="animals must be different folder names"):
        read(folder, animals=("cat", "cat"))
    with pytest.raises(ValueError, match="is not a folder with the files of NUS-WIDE"):
        read(tmp_path / "nothing")


def test_an_image_that_the_list_of_all_lacks_is_named(tmp_path):
    data = small()
    data["order"] = data["order"][data["order"] != 1]
    with pytest.raises(ValueError, match=r"Imagelist\.txt lacks the image cat/0001_\d+\.jpg of the train list"):
        read(write(tmp_path / "a", official(data, whole=True)))


def test_a_damaged_zip_is_refused(tmp_path):
    folder = write(tmp_path / "a", official(small()), zipped=True)
    path = folder / "NUS_WID_Tags.zip"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"NUS_WID_Tags\.zip is damaged or cut off"):
        read(folder)
    damaged = bytearray(whole)
    damaged[len(whole) // 4] ^= 0xFF
    path.write_bytes(bytes(damaged))
    with pytest.raises(ValueError, match=r"NUS_WID_Tags\.zip is damaged or cut off|Tags1k|TagList1k"):
        read(folder)


def test_a_zip_whose_parts_do_not_fit_is_refused_by_its_name(tmp_path):
    """Found by mutation: bytes cut out move the members to before the start of the file, an OSError that names none."""
    folder = write(tmp_path / "a", official(small()), zipped=True)
    path = folder / "ImageList.zip"
    path.write_bytes(path.read_bytes()[150:])
    with pytest.raises(ValueError, match=r"ImageList\.zip is damaged or cut off"):
        read(folder)
