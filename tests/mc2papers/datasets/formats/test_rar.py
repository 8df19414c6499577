"""RAR archives, which bsdtar unpacks: what is done with its answers, by stand-ins for the program and by itself."""

import pytest

from mc2papers.datasets.formats import rar

# a damaged archive that seems to be encrypted: bsdtar used to ask for its passphrase, 10,000 times
ENCRYPTED = bytes.fromhex(
    "504b03041400090008008509765dbf794aed0b000000f000000011000000426f575f547261696e5f696e742e6461743354305230e6321c31"
    "2400504b03041400000008008509765d7ab98302080000000000"
)


def stand_in(folder, monkeypatch, script):
    program = folder / "bsdtar"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    (folder / "x.rar").write_bytes(b"Rar!")
    return folder / "x.rar"


def test_more_complaints_than_a_pipe_holds_end_in_one_sentence(tmp_path, monkeypatch):
    path = stand_in(tmp_path, monkeypatch, "yes complaint | head -c 300000 >&2; echo rows; exit 1")
    with pytest.raises(ValueError, match=r"x\.rar gives no a\.dat: complaint complaint") as caught:
        rar.unpack(path, [tmp_path / "a.dat"])
    assert len(str(caught.value)) < 600
    assert not (tmp_path / "a.dat").exists()


def test_a_member_comes_whole(tmp_path, monkeypatch):
    path = stand_in(tmp_path, monkeypatch, "yes 0123456789 | head -c 3000000; echo warning >&2")
    rar.unpack(path, [tmp_path / "a.dat"])
    assert (tmp_path / "a.dat").stat().st_size == 3_000_000


@pytest.mark.needs("bsdtar")
def test_no_passphrase_is_asked_for(tmp_path):
    (tmp_path / "x.rar").write_bytes(ENCRYPTED)
    with pytest.raises(ValueError, match=r"x\.rar gives no BoW_Train_int\.dat: .*passphrase") as caught:
        rar.unpack(tmp_path / "x.rar", [tmp_path / "BoW_Train_int.dat"])
    assert "Enter" not in str(caught.value)
