"""Fuzz the readers of tables, word lists, bags of words, collections and archives (see ``harness.py``).

python tests/fuzz/sources_files.py --seconds 60 --seed 1
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from harness import Parser, main

sys.path.insert(0, str(Path(__file__).parents[1]))
from helpers import labelled_files, nips_files, nuswide_files

from mc2core.corpus import datasheet
from mc2core.corpus.building.columns import ContextColumn, Layout
from mc2core.corpus.readers import table, uci
from mc2papers.datasets.collections import labelled_images, labelled_texts, nips, nuswide, usage
from mc2papers.datasets.download import fetch
from mc2papers.datasets.dumps import vocabulary
from mc2papers.datasets.formats import archives, rar

LAYOUT = Layout(
    "text", contexts={"year": ContextColumn("year", "number"), "tags": ContextColumn("tags", "counts")}, id="id"
)
BAGS = Layout("tags", content_kind="bag", labels="id", keep=("text",))
ROWS = [
    {"id": "a1", "text": "Green \u00e9lan, trees; 2", "year": 1999, "tags": "oak:2; elm"},
    {"id": "b2", "text": 'says "no"\nand ends', "year": None, "tags": ""},
    {"id": "c3", "text": "", "year": -1.5e3, "tags": "x;;y:0"},
]
TABLE_TOKENS = [
    b'"', b"'", b",", b";", b":", b"\t", b"\r\n", b"\n", b"\\u0000", b"\\ud800", b"\x00", b"\xff", b"\xef\xbb\xbf",
    b"{", b"}", b"[", b"]", b"null", b"NaN", b"Infinity", b"1e999", b"-1", b"99999999999999999999", b"true",
    "\u2028\u0661".encode(),
]  # fmt: skip


def _table(separator: str) -> bytes:
    quoted = [[f'"{str(value).replace(chr(34), chr(34) * 2)}"' for value in row.values()] for row in ROWS]
    return "\r\n".join(separator.join(row) for row in [list(ROWS[0]), *quoted]).encode()


def _parquet(columns: dict[str, list]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def _by_suffix(folder: Path) -> Path:
    return next(iter(folder.iterdir()))


def read_own(folder: Path, target: Path) -> None:
    path = _by_suffix(folder)
    corpus, _ = table.read_table(path, LAYOUT)
    corpus.save(target)
    table.read_table(path, BAGS)


def read_uci(folder: Path, target: Path) -> None:
    uci.read(next(folder.glob("docword*")), folder / "vocab.x.txt")


def read_usage(folder: Path, target: Path) -> None:
    usage.read(folder)


def read_nuswide(folder: Path, target: Path) -> None:
    nuswide.read(folder, ("cat", "wolf", "zebra"), None)


def read_words(folder: Path, target: Path) -> None:
    path = _by_suffix(folder)
    refused = []
    for read in (table.read_vocabulary, vocabulary.read_vocabulary):
        try:
            read(path)
        except ValueError as error:
            refused.append(error)
    if refused:
        raise refused[0]


def read_catalogue(folder: Path, target: Path) -> None:
    fetch.read_catalogue(folder / "datasets.tsv")
    datasheet.read_paper_counts(folder / "datasets.csv", "nips")


def read_rar(folder: Path, target: Path) -> None:
    rar.unpack(_by_suffix(folder), [target.with_name("BoW_Train_int.dat")])


def read_nips_members(folder: Path, target: Path) -> None:
    """The text files damaged, then packed."""
    path = target.with_suffix(".zip")
    nips_files.write_zip(path, {one.name: one.read_bytes() for one in folder.iterdir()})
    nips.read(path)


def read_labelme(folder: Path, target: Path) -> None:
    """The files damaged, then packed."""
    path = target.with_suffix(".tgz")
    labelled_files.write_tar(path, {one.name: one.read_bytes() for one in folder.iterdir()})
    labelled_images.read_labelme(path).save(target)


def read_sports(folder: Path, target: Path) -> None:
    corpus, _ = labelled_images.read_sports(*sorted(folder.iterdir()))
    corpus.save(target)


def read_ohsumed(folder: Path, target: Path) -> None:
    corpus, _ = labelled_texts.read_ohsumed(_by_suffix(folder))
    corpus.save(target)


def read_addresses(folder: Path, target: Path) -> None:
    corpus, _ = labelled_texts.read_addresses(_by_suffix(folder))
    corpus.save(target)


def read_archive(folder: Path, target: Path) -> None:
    for _ in archives.iterate_members(_by_suffix(folder), max_total_bytes=2**24):
        pass


def _written(write: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write(path)
        return path.read_bytes()


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _zipped_images(files: dict[str, bytes]) -> dict[str, bytes]:
    """The official files, all but the features in archives."""
    groups: dict[str, dict[str, bytes]] = {}
    for name, content in files.items():
        groups.setdefault(name.partition("/")[0], {})[name] = content
    plain = {Path(name).name: content for name, content in groups.pop("Low_Level_Features").items()}
    return plain | {f"{group}.zip": _zip(members) for group, members in groups.items()}


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def parsers(data_folder: Path | None) -> dict[str, Parser]:
    own_inputs = [
        {"x.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS).encode()},
        {"x.csv": _table(",")},
        {"x.tsv": _table("\t")},
    ]
    functions = b"user,function,count\nann,open,3\nbob,save,1\nann,save,2\n"
    logs = {
        "functions.csv": functions,
        "products.csv": b"user,product\nann,p\n",
        "paid.csv": b"user,paid\nann,1\nbob,0\n",
    }
    rows = _parquet({name: [row[name] for row in ROWS] for name in ROWS[0]})
    columns = {"user": ["ann", "bob"], "function": ["open", "save"], "count": [3, 1]}
    images = nuswide_files.small()
    plain = nuswide_files.official(images)
    whole = nuswide_files.official(images, whole=True)
    data = nips_files.small()
    members = nips_files.text_members(data)
    files = {"a/x.txt": b"some text " * 30, "a/y.txt": bytes(1000)}
    zipped = _written(lambda path: nips_files.write_zip(path, members))
    checkout = Path(__file__).parents[2]
    catalogue = {
        "datasets.tsv": b"".join((checkout / "config/datasets.tsv").read_bytes().splitlines(keepends=True)[:5]),
        "datasets.csv": (checkout / "workflow/paper/datasets.csv").read_bytes(),
    }
    lists = [{"words.txt": b"ant\nbee\ncat\n"}, {"words.txt": b"ant\r\nbee\r\nNone"}]
    features = {"BoW_Train_int.dat": b"1 2 3\n" * 40, "x/other.dat": bytes(500)}
    rars = [{"x.rar": _tar(features)}, {"x.rar": _zip(features)}]  # bsdtar reads any format, and writes none of RAR
    packs = [bytes, lambda content: gzip.compress(content, 1), lzma.compress]
    return {
        "own": Parser(read_own, own_inputs, TABLE_TOKENS),
        "own parquet": Parser(read_own, [{"x.parquet": rows}]),
        "uci": Parser(
            read_uci,
            [
                {"docword.x.txt": b"2\n3\n4\n1 1 2\n1 3 1\n2 1 1\n2 2 7\n", "vocab.x.txt": b"ant\nbee\ncat\n"},
                {"docword.x.txt.gz": gzip.compress(b"1\n3\n1\n1 1 2\n"), "vocab.x.txt": b"ant\nbee\ncat\n"},
            ],
            [b"\n", b" ", b"\r", b"-1", b"0", b"4294967297", b"9" * 30, b"x", b"\xff"],
        ),
        "usage": Parser(read_usage, [logs, {"functions.parquet": _parquet(columns)}], TABLE_TOKENS),
        "nuswide": Parser(
            read_nuswide,
            [{Path(name).name: content for name, content in one.items()} for one in (plain, whole)],
            [b"\n", b"\\", b" ", b"\t", b"1", b"99999999999", b"cat\\0001_1.jpg\n", b"\xff", b"\x00"],
        ),
        "nuswide zip": Parser(
            read_nuswide,
            [_zipped_images(one) for one in (plain, whole)],
            [b"PK\x01\x02", b"PK\x05\x06", b"\xff\xff\xff\xff"],
        ),
        "word list": Parser(read_words, lists, [*TABLE_TOKENS, b"\x85", b"\x0b", b"bee\n"]),
        "catalogue": Parser(read_catalogue, [catalogue], [*TABLE_TOKENS, b"http://", b"../", b"nips,"]),
        **({"rar": Parser(read_rar, rars)} if shutil.which("bsdtar") else {}),
        "nips": Parser(read_nips_members, [members], [b"\r\n", b":", b" ", b"=", b"-1", b"9" * 20, b"\xff", b"\x00"]),
        "labelme": Parser(
            read_labelme,
            [labelled_files.IMAGES],
            [b"\r\n", b"\n", b":", b" ", b"0", b"157:1", b"158:1", b"-1", b"9" * 20, b"\xff", b"\x00"],
        ),
        "sports": Parser(
            read_sports,
            [{"annotations.txt": labelled_files.TAGS, "info.txt": labelled_files.INFO}],
            [b",", b" ", b"\r\n", b"\n", b"\x85", b"\x0b", b"\x00", b"\xff", b"\xef\xbb\xbf", "\u2028\u0661".encode()],
        ),
        "ohsumed": Parser(
            read_ohsumed,
            [{"x.tar": _tar(labelled_files.ABSTRACTS)}],
            [b"\x00" * 512, b"7777777", b"../", b"ustar", b"training/C01/"],
            packs,
        ),
        "addresses": Parser(
            read_addresses,
            [{"x.zip": _zip(labelled_files.ADDRESSES)}, {"x.tar": _tar(labelled_files.ADDRESSES)}],
            [b"PK\x01\x02", b"PK\x05\x06", b"\xff\xff\xff\xff", b"../", b"1963-Kennedy.txt"],
        ),
        "zip": Parser(read_archive, [{"x.zip": zipped}], [b"PK\x01\x02", b"PK\x05\x06", b"\xff\xff\xff\xff", b"../"]),
        "tar": Parser(read_archive, [{"x.tar": _tar(files)}], [b"\x00" * 512, b"7777777", b"../", b"ustar"], packs),
    }  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", parsers))
