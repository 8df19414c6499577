"""7z archives of one file: what is packed is read, the real history agrees with its stub, and damage is told."""

import contextlib
import lzma
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import MIRROR

from mc2core.sources.dumps import wikipedia
from mc2core.sources.formats import sevenzip, xmlstream

FOLDER = MIRROR / "wikipedia"
HISTORY = FOLDER / "aawiki-20260101-pages-meta-history.xml.7z"
STUB = FOLDER / "aawiki-20260101-stub-meta-history.derived.xml.gz"
METHODS = {
    "lzma": (b"\x03\x01\x01", bytes([3 + 9 * (0 + 5 * 2)]) + struct.pack("<I", 1 << 16), {"id": lzma.FILTER_LZMA1}),
    "lzma2": (b"\x21", bytes([8]), {"id": lzma.FILTER_LZMA2}),
    "copy": (b"\x00", b"", None),
}


def number(value):
    return b"\xff" + struct.pack("<Q", value) if value > 127 else bytes([value])


def pack(content, method="lzma2", unpacked=None, crc=None, files=1, encoded=False, properties=None, name=None):
    """An archive as 7-Zip writes it, its index plain or itself packed."""
    identity, default, filters = METHODS[method]
    packed = content
    if filters:
        packed = lzma.compress(content, lzma.FORMAT_RAW, filters=[filters | {"dict_size": 1 << 16}])

    def streams(start, size, unpacked, crc):
        props = default if properties is None else properties
        coder = bytes([len(name or identity) | (0x20 if props else 0)]) + (name or identity)
        coder += number(len(props)) + props if props else b""
        return (
            b"\x06" + number(start) + b"\x01\x09" + number(size) + b"\x00"
            + b"\x07\x0b\x01\x00\x01" + coder + b"\x0c" + number(unpacked) + b"\x0a\x01"
            + struct.pack("<I", crc) + b"\x00\x08\x0d" + number(files) + b"\x00" + b"\x00"
        )  # fmt: skip

    size = len(content) if unpacked is None else unpacked
    index = b"\x01\x04" + streams(0, len(packed), size, zlib.crc32(content) if crc is None else crc) + b"\x05\x00\x00"
    body = packed
    if encoded:
        packed_index = lzma.compress(index, lzma.FORMAT_RAW, filters=[METHODS["lzma2"][2] | {"dict_size": 1 << 16}])
        body += packed_index
        index = b"\x17" + streams(len(packed), len(packed_index), len(index), zlib.crc32(index))
    start = struct.pack("<QQI", len(body), len(index), zlib.crc32(index))
    return sevenzip.SIGNATURE + b"\x00\x04" + struct.pack("<I", zlib.crc32(start)) + start + body + index


def read(tmp_path, archive):
    (tmp_path / "x.7z").write_bytes(archive)
    return b"".join(xmlstream.blocks(tmp_path / "x.7z"))


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=2000), st.integers(1, 500), st.sampled_from(list(METHODS)), st.booleans())
def test_what_is_packed_is_read(tmp_path_factory, piece, times, method, encoded):
    encoded = encoded and method == "lzma2"
    assert read(tmp_path_factory.mktemp("a"), pack(piece * times, method, encoded=encoded)) == piece * times


@pytest.mark.skipif(not HISTORY.is_file(), reason=f"the real Wikipedia files are not in {FOLDER} (set MC2_MIRROR)")
def test_the_real_history_agrees_with_its_stub(tmp_path):
    found = [wikipedia.parse_first_writers(path, tmp_path / f"{path.name}.npz") for path in (HISTORY, STUB)]
    assert found[0]["counts"] == found[1]["counts"]
    assert (found[0]["counts"]["pages"], found[0]["counts"]["revisions"]) == (507, 1307)
    arrays = [np.load(tmp_path / f"{path.name}.npz") for path in (HISTORY, STUB)]
    assert all((arrays[0][name] == arrays[1][name]).all() for name in ("id", "writer"))


GOOD = pack(b"<r/>" * 5000)


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (GOOD[:20], "it has no whole header"),
        (GOOD[: len(GOOD) // 2], r"it has \d+ bytes, but its index would end at byte \d+"),
        (GOOD[:15] + b"\x01" + GOOD[16:], "its header has a wrong checksum"),
        (GOOD[:-1] + b"\x01", "its index has a wrong checksum"),
        (pack(b"<r/>", crc=7), "its content has a wrong checksum"),
        (pack(b"<r/>", unpacked=2**60), r"its packed bytes give 4 instead of \d+"),
        (pack(b"<r/>", "copy", unpacked=2), "its packed bytes give 4 instead of 2"),
        (pack(b"<r/>", files=2), "it has 2 files; one is needed"),
        (pack(b"<r/>", name=b"\x03\x04\x01"), "it is packed by the method 030401; LZMA and LZMA2 can be read"),
        (pack(b"<r/>", properties=b"\x26"), r"it needs a dictionary of \d+ bytes; 268435456 are allowed"),
    ],
    ids=["start", "cut", "head", "index", "content", "long", "short", "files", "method", "dictionary"],
)
def test_damage_is_told(tmp_path, archive, message):
    with pytest.raises(
        xmlstream.DamagedInput, match=rf"x\.7z is damaged or cut off after \d+ inflated bytes: {message}"
    ):
        read(tmp_path, archive)


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(xmlstream, "BOMB_BYTES", 2**20)
    with pytest.raises(xmlstream.DamagedInput, match="inflates to more than 1000 times its size"):
        read(tmp_path, pack(bytes(2**24)))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=3), st.booleans())
def test_random_damage_never_escapes_as_another_error(tmp_path_factory, edits, with_checksums):
    archive = bytearray(GOOD)
    for place, value in edits:
        archive[place] = value
    if with_checksums:  # forged with care
        offset, size = struct.unpack("<QQ", GOOD[12:28])
        archive[28:32] = struct.pack("<I", zlib.crc32(archive[32 + offset : 32 + offset + size]))
        archive[8:12] = struct.pack("<I", zlib.crc32(archive[12:32]))
    with contextlib.suppress(xmlstream.DamagedInput):
        read(tmp_path_factory.mktemp("a"), bytes(archive))
