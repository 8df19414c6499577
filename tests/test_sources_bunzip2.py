"""Our inflating of bzip2 against the library's compressing: any content, any number of streams, any damage."""

import bz2
import contextlib
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2core.sources import bunzip2


def inflate(packed):
    return b"".join(bunzip2.blocks(io.BytesIO(packed).read))


contents = st.one_of(
    st.binary(max_size=400),
    st.lists(st.tuples(st.sampled_from(b"ab\0\xff"), st.integers(1, 600)), max_size=6).map(
        lambda runs: b"".join(bytes([byte]) * n for byte, n in runs)  # four equal bytes and more are packed
    ),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(contents, st.integers(1, 9)), min_size=1, max_size=4), st.binary(max_size=3))
def test_what_is_packed_is_read(streams, rest):
    packed = b"".join(bz2.compress(content, level) for content, level in streams)
    assert inflate(packed + rest) == b"".join(content for content, _ in streams)


@pytest.mark.parametrize("together", [1, 3, 12])
def test_many_blocks(monkeypatch, together):
    monkeypatch.setattr(bunzip2, "TOGETHER", together)
    draw = np.random.default_rng(0)
    words = [bytes(draw.integers(97, 123, 5).astype(np.uint8)) for _ in range(2000)]
    content = b" ".join(words[i] for i in draw.integers(0, 2000, 600_000)) + bytes(1_000_000) + draw.bytes(200_000)
    packed = bz2.compress(content, 1) + bz2.compress(content[:1_000_000])
    monkeypatch.setattr(bunzip2, "_READ_BYTES", 70_001)  # blocks lie across what is read
    assert inflate(packed) == content + content[:1_000_000]


WHOLE = bz2.compress(bytes(range(256)) * 200)


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        (b"BZh", "it does not begin as bzip2 does"),
        (b"BZh0" + WHOLE[4:], "it does not begin as bzip2 does"),
        (WHOLE[:-1], "it is cut off"),
        (WHOLE[:200], "it is cut off"),
        (WHOLE[:4], "it is cut off"),
        (WHOLE[:10] + bytes([WHOLE[10] ^ 1]) + WHOLE[11:], "a block has a wrong checksum"),
        (WHOLE[:-2] + bytes([WHOLE[-2] ^ 8]) + WHOLE[-1:], "a stream has a wrong checksum"),
        (WHOLE[:4] + b"x" + WHOLE[5:], "a block is damaged"),
    ],
)
def test_damage_is_told(packed, message):
    with pytest.raises(bunzip2.Damage, match=message) as caught:
        inflate(packed)
    assert caught.value.is_cut == ("cut off" in message)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_random_damage_never_escapes_as_another_error(edits):
    packed = bytearray(WHOLE)
    for place, value in edits:
        packed[place] = value
    with contextlib.suppress(bunzip2.Damage):
        inflate(bytes(packed))
