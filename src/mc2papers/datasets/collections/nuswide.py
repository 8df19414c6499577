"""Read the 13 animals of NUS-WIDE (ICML14, section 4): images with visual words, tags and folder names.

Visual words are the content, tags are the context, and folder names are the labels. The official files may be anywhere
in one folder, unpacked or inside zip archives. They are found by their names:

* image lists: ``TrainImagelist.txt`` and ``TestImagelist.txt`` (the official split), with lines
  like ``actor\\0001_2124494179.jpg``;
* visual words, 500 integers per line: ``BoW_Train_int.dat`` and ``BoW_Test_int.dat``, or ``BoW_int.dat`` in the order
  of ``Imagelist.txt``;
* tags, 1,000 zeros and ones per line: ``Train_Tags1k.dat`` and ``Test_Tags1k.dat``, or ``AllTags1k.txt``;
* names of tags: ``TagList1k.txt``.

The folder of an image is the search word by which the image was found. The animals of the paper are 13 of the 704
folders. Files are read line by line, and only the lines of selected images are parsed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base.checks import did_you_mean
from mc2core.corpus import Corpus
from mc2papers.datasets.formats import archives

# The paper gives only "13 animals" and the numbers of images. These animals are from multi-view experiments with the
# same numbers (Chen, Zhu and Xing, NIPS 2010). The check of the sizes below shows whether the images may be the same.
ANIMALS = (
    "antlers", "cat", "cow", "elephant", "hawk", "lion", "rabbit", "snake", "squirrel", "tiger", "whales", "wolf",
    "zebra",
)  # fmt: skip
PAPER_SIZES = (2054, 1357)
N_VISUAL_WORDS, N_TAGS = 500, 1000
PARTS = ("train", "test")
_IMAGE = re.compile(r"([^\\/]{1,200})[\\/]([^\\/]{1,200})")
_NUMBERS = re.compile(rb"[0-9]{1,9}(?:[ \t]+[0-9]{1,9})*")
_MAX_LINE_BYTES = 1 << 16
_MAX_IMAGES = 1_000_000


@dataclass(frozen=True)
class _Image:
    name: str
    folder: str
    part: str


def read(
    folder: str | os.PathLike[str], animals: Sequence[str] = ANIMALS, sizes: tuple[int, int] | None = PAPER_SIZES
) -> Corpus:
    """Read the images of some folders; ``documents`` has the official part of each image, "train" or "test".

    Parameters
    ----------
    folder : folder with the official files.
    animals : folder names; label i is animals[i].
    sizes : required numbers of training and test images (default: as in the paper); None accepts any numbers.

    Returns
    -------
    Corpus
        Training images first, each part in official order, with (J, 500) visual words and the (J, 1000) context ``tag``
        (missing for images without tags). ``documents`` has the columns image and part.

    Raises
    ------
    ValueError
        If a file is missing, damaged, too short or too long, if two files are inconsistent, if a folder name has no
        image, or if the parts have other sizes (the message has the number of images per animal).
    """
    files = _Files(Path(folder))
    if len(set(animals)) != len(animals) or not animals:
        raise ValueError(f"animals must be different folder names, not {list(animals)}")
    images = {part: list(_image_list(files, f"{part.capitalize()}Imagelist.txt", part)) for part in PARTS}
    both = {image.name for image in images["train"]} & {image.name for image in images["test"]}
    if both:
        raise ValueError(f"{files.folder}: image {min(both)} is in the train and in the test list")
    wanted = {part: [image for image in images[part] if image.folder in animals] for part in PARTS}
    _check_folders(files.folder, animals, images, wanted)
    _check_sizes(files.folder, animals, wanted, sizes)
    chosen = [image for part in PARTS for image in wanted[part]]
    content = _rows(files, "BoW_{}_int.dat", "BoW_int.dat", images, chosen, N_VISUAL_WORDS)
    tags = _rows(files, "{}_Tags1k.dat", "AllTags1k.txt", images, chosen, N_TAGS, largest=1)
    label = {animal: number for number, animal in enumerate(animals)}
    return Corpus(
        content,
        [f"visual{number + 1}" for number in range(N_VISUAL_WORDS)],
        contexts={"tag": tags},
        labels=np.array([label[image.folder] for image in chosen]),
        documents=pd.DataFrame({"image": [one.name for one in chosen], "part": [one.part for one in chosen]}),
        context_names={"tag": _tag_names(files)},
        label_names=animals,
    )


class _Files:
    """Access to the official files below a folder by their names, as plain files or as members of zip archives."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ValueError(f"{folder} is not a folder with the files of NUS-WIDE")
        self.folder = folder
        self._places: dict[str, tuple[Path, str]] = {}
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() == ".zip":
                with archives.reading(path), zipfile.ZipFile(path) as archive:
                    members = archive.namelist()
                for member in members:
                    self._places.setdefault(member.rpartition("/")[2], (path, member))
            elif path.is_file():
                self._places[path.name] = (path, "")

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of a file without line breaks and without blank lines at the end of the file.

        Raises ValueError for a damaged archive.
        """
        if name not in self._places:
            hint = " (unpack NUS_WID_Low_Level_Features.rar there)" if name.startswith("BoW") else ""
            raise ValueError(f"{self.folder} has no file {name}{hint}")
        path, member = self._places[name]
        with archives.reading(path), contextlib.ExitStack() as stack:
            if member:
                archive = stack.enter_context(zipfile.ZipFile(path))
                stream: IO[bytes] = stack.enter_context(archive.open(member))
            else:
                stream = stack.enter_context(path.open("rb"))
            n_blank = 0
            while line := stream.readline(_MAX_LINE_BYTES + 1):
                if len(line) > _MAX_LINE_BYTES:
                    raise archives.ArchiveError(f"{name} has a line of more than {_MAX_LINE_BYTES} bytes")
                line = line.rstrip(b"\r\n\t ")
                if not line:
                    n_blank += 1
                    if n_blank > _MAX_IMAGES:
                        raise archives.ArchiveError(f"{name} has more than {_MAX_IMAGES} blank lines")
                    continue
                yield from itertools.repeat(b"", n_blank)
                n_blank = 0
                yield line


def _image_list(files: _Files, name: str, part: str) -> Iterator[_Image]:
    seen: set[str] = set()
    for number, line in enumerate(files.lines(name), start=1):
        if number > _MAX_IMAGES:
            raise ValueError(f"{files.folder}: {name} has more than {_MAX_IMAGES} lines")
        try:
            match = _IMAGE.fullmatch(line.decode("utf-8"))
        except UnicodeDecodeError:
            match = None
        if match is None or not match[0].isprintable():
            raise ValueError(
                f"{files.folder}: {name}, line {number} is {line[:60]!r}; expected actor\\0001_2124494179.jpg"
            )
        image = f"{match[1]}/{match[2]}"
        if image in seen:
            raise ValueError(f"{files.folder}: {name}, line {number} repeats the image {image}")
        seen.add(image)
        yield _Image(image, match[1], part)


def _check_folders(
    folder: Path, animals: Sequence[str], images: dict[str, list[_Image]], wanted: dict[str, list[_Image]]
) -> None:
    found = {image.folder for part in PARTS for image in wanted[part]}
    for animal in animals:
        if animal not in found:
            known = sorted({image.folder for part in PARTS for image in images[part]})
            raise ValueError(f"{folder}: the image lists have no folder {animal!r}{did_you_mean(animal, known)}")


def _check_sizes(
    folder: Path, animals: Sequence[str], wanted: dict[str, list[_Image]], sizes: tuple[int, int] | None
) -> None:
    found = tuple(len(wanted[part]) for part in PARTS)
    if sizes is None or found == tuple(sizes):
        return
    counts = {part: pd.Series([image.folder for image in wanted[part]]).value_counts() for part in PARTS}
    each = ", ".join(f"{animal} {counts['train'].get(animal, 0)}+{counts['test'].get(animal, 0)}" for animal in animals)
    raise ValueError(
        f"{folder}: the animals have {found[0]} train and {found[1]} test images, but the paper has {sizes[0]} and "
        f"{sizes[1]}; images of each (train+test): {each}"
    )


def _rows(
    files: _Files,
    by_part: str,
    of_all: str,
    images: dict[str, list[_Image]],
    chosen: Sequence[_Image],
    n_columns: int,
    largest: int = np.iinfo(np.int32).max,
) -> sp.csr_matrix:
    """Return (len(chosen), n_columns) counts, from one file per part or from one file in the order of Imagelist.txt."""
    names = {part: by_part.format(part.capitalize()) for part in PARTS}
    if all(name in files for name in names.values()) or of_all not in files:
        tables = [(names[part], images[part]) for part in PARTS]
    else:
        tables = [(of_all, list(_image_list(files, "Imagelist.txt", "all")))]
    row_of = {image.name: row for row, image in enumerate(chosen)}
    rows: list[np.ndarray | None] = [None] * len(chosen)
    for name, listed in tables:
        for row, numbers in _wanted_lines(files, name, listed, row_of, n_columns, largest):
            rows[row] = numbers
    for image, found in zip(chosen, rows, strict=True):
        if found is None:
            raise ValueError(f"{files.folder}: Imagelist.txt lacks the image {image.name} of the {image.part} list")
    return sp.csr_matrix(np.array(rows, dtype=np.int32))


def _wanted_lines(
    files: _Files, name: str, listed: Sequence[_Image], row_of: dict[str, int], n_columns: int, largest: int
) -> Iterator[tuple[int, np.ndarray]]:
    number = 0
    for number, line in enumerate(files.lines(name), start=1):
        if number > len(listed):
            raise ValueError(f"{files.folder}: {name} has more lines than the image list, {len(listed)}")
        row = row_of.get(listed[number - 1].name)
        if row is None:
            continue
        where = f"{files.folder}: {name}, line {number}"
        if not _NUMBERS.fullmatch(line):
            raise ValueError(f"{where} must be whole numbers separated by blanks or tabs")
        numbers = np.array(line.split(), dtype=np.int64)
        if len(numbers) != n_columns:
            raise ValueError(f"{where} has {len(numbers)} numbers; {n_columns} are needed")
        if numbers.max() > largest:
            raise ValueError(f"{where} holds {numbers.max()}; {largest} is the highest allowed")
        yield row, numbers
    if number < len(listed):
        raise ValueError(f"{files.folder}: {name} has {number} lines, but the image list has {len(listed)}")


def _tag_names(files: _Files) -> list[str]:
    try:
        names = [line.strip().decode("utf-8") for line in files.lines("TagList1k.txt")]
    except UnicodeDecodeError as error:
        raise ValueError(f"{files.folder}: TagList1k.txt is not UTF-8 text: {error}") from error
    if len(names) != N_TAGS or len(set(names)) != N_TAGS:
        raise ValueError(
            f"{files.folder}: TagList1k.txt has {len(names)} lines, {len(set(names))} of them distinct; "
            f"{N_TAGS} distinct tags are needed"
        )
    return names
