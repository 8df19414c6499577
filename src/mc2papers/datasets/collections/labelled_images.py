"""Read images that have one class each: LabelMe with visual words (LDA-C), and UIUC-Sports with tags of objects.

Both corpora come with the code of supervised LDA for classification (Wang, Blei, Fei-Fei 2009, blei-lab/class-slda).
Neither has a context.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base.records import lines_of
from mc2core.corpus import Corpus
from mc2core.corpus.building.counts import CountsBuilder, Dropped
from mc2papers.datasets.formats import archives, ldac

N_VISUAL_WORDS = 158
N_SCENES = 8
MAX_BYTES = 64 * 2**20
_PARTS = ("train", "test")
_INFO_LINE = re.compile(r"(\w+) ([\w.-]+)")
_TAG = re.compile(r"\w+")


def read_labelme(path: str | os.PathLike[str]) -> Corpus:
    """Read ``images.tgz``: ``{train,test}-data.dat`` in LDA-C, ``{train,test}-label.dat`` with a label 0-7 per line.

    Line i of both files is image i. Documents have ``id`` (part and line, such as "train-1") and ``split`` (official
    part). Labels are numbers, because the archive does not contain the names of the scenes.

    Raises ValueError if the archive is damaged or unsafe, if a file is missing or has another layout, or if the two
    files of a part have different numbers of lines.
    """
    path = Path(path)
    members = archives.read_members(
        path, [f"{part}-{what}.dat" for part in _PARTS for what in ("data", "label")], max_member_bytes=MAX_BYTES
    )
    contents, labels, ids, parts = [], [], [], []
    for part in _PARTS:
        name = f"{part}-data.dat"
        content = ldac.read_counts(members[name], N_VISUAL_WORDS, f"{path}: {name}", "the list of visual words")
        here = _scenes(members[f"{part}-label.dat"], f"{path}: {part}-label.dat")
        if content.shape[0] != len(here):
            raise ValueError(
                f"{path}: {part}-label.dat has {len(here)} lines, but {name} has {content.shape[0]} images"
            )
        contents.append(content)
        labels += here
        ids += [f"{part}-{line + 1}" for line in range(len(here))]
        parts += [part] * len(here)
    return Corpus(
        sp.vstack(contents, format="csr"),
        [f"visual{word}" for word in range(N_VISUAL_WORDS)],
        labels=np.array(labels),
        documents=pd.DataFrame({"id": ids, "split": parts}),
        label_names=[str(scene) for scene in range(N_SCENES)],
    )


def _scenes(content: bytes, file: str) -> list[int]:
    lines = content.rstrip(b"\r\n ").replace(b"\r\n", b"\n").split(b"\n")
    for i, line in enumerate(lines):
        if not re.fullmatch(rb"[0-9]", line) or int(line) >= N_SCENES:
            found = line[:20].decode("latin-1")
            raise ValueError(f"{file}, line {i + 1} is {found!r}; a number from 0 to {N_SCENES - 1} is needed")
    return [int(line) for line in lines]


def read_sports(annotations: str | os.PathLike[str], info: str | os.PathLike[str]) -> tuple[Corpus, list[Dropped]]:
    """Read the tags and the class of each image; line i of both files is image i.

    Parameters
    ----------
    annotations : file with one line ``tag, tag, ...`` per image. There is one tag per visible object. Tags are words.
    info : file with one line ``class file`` per image. Documents have ``id``, "class/file".

    Also returns the number of objects that were dropped because they have no name.

    Raises ValueError if a file is missing or not UTF-8, if a line is too long or has another form, if an image occurs
    twice, or if the files have different numbers of lines.
    """
    annotations, info = Path(annotations), Path(info)
    for path in (annotations, info):
        if not path.is_file():
            raise ValueError(f"{path} is missing")
    tagged, named = ([line.strip() for _, line in lines_of(path)] for path in (annotations, info))
    if len(tagged) != len(named):
        raise ValueError(
            f"{annotations} has {len(tagged)} lines, but {info} has {len(named)}; both need a line per image"
        )
    builder, unnamed = CountsBuilder(), 0
    for i, line in enumerate(tagged):
        tags = [tag.strip() for tag in line.removesuffix(",").split(",")] if line else []
        for tag in tags:
            if tag and not _TAG.fullmatch(tag):
                raise ValueError(
                    f"{annotations}, line {i + 1} has the tag {tag[:40]!r}; tags must be words separated by commas"
                )
        unnamed += tags.count("")
        builder.add(Counter(filter(None, tags)))
    counts, words = builder.finish()
    classes, ids = [], []
    for i, line in enumerate(named):
        match = _INFO_LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"{info}, line {i + 1} is {line[:60]!r}; a class and a file name are needed")
        classes.append(match[1])
        ids.append(f"{match[1]}/{match[2]}")
    if len(set(ids)) < len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise ValueError(f"{info} names the image {twice!r} twice")
    labels, sports = pd.factorize(np.array(classes, dtype=object), sort=True)
    corpus = Corpus(counts, words, labels=labels, documents=pd.DataFrame({"id": ids}), label_names=sports.tolist())
    return corpus, [Dropped("objects", unnamed, "without a tag")]
