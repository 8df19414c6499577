"""Download against a local server that behaves badly in every way the readers of the real ones complain about."""

import hashlib
import os
import socket
import time

import pytest
import requests
from helpers.paths import ROOT
from helpers.servers import DATA, IMPATIENT

from mc2papers.datasets.download.fetch import FetchError, Patience, SourceFile, fetch, read_catalogue
from mc2papers.datasets.download.listing import list_baseline

SHA256 = hashlib.sha256(DATA).hexdigest()


def source(*addresses, sha256=SHA256):
    return SourceFile("toy", "file.bin", "toy/file.bin", tuple(addresses), sha256)


def get(tmp_path, *addresses, sha256=SHA256, data_folder=None):
    return fetch(source(*addresses, sha256=sha256), tmp_path / "got" / "file.bin", data_folder, patience=IMPATIENT)


def left_behind(tmp_path):
    return sorted(path.name for path in (tmp_path / "got").iterdir())


class TestResumed:
    def test_a_cut_download_goes_on_where_it_stopped(self, serve, tmp_path):
        server = serve(lambda handler, n: handler.give_rest(cut=100_000 if n < 3 else None))
        assert get(tmp_path, server.address()).read_bytes() == DATA
        assert [request.get("Range") for request in server.requests] == [None, "bytes=100000-", "bytes=200000-"]
        assert server.requests[1]["If-Range"] == '"one"'

    def test_a_later_run_goes_on_where_the_last_one_stopped(self, serve, tmp_path):
        server = serve(lambda handler, n: handler.give_rest(cut=100_000 if n == 1 else 0 if n < 5 else None))
        with pytest.raises(FetchError, match=r"failed 3 times in a row \(it ended after 100000 of 300000 bytes\)"):
            get(tmp_path, server.address())
        assert not (tmp_path / "got/file.bin").exists()
        assert get(tmp_path, server.address()).read_bytes() == DATA
        assert server.requests[-1]["Range"] == "bytes=100000-"
        assert left_behind(tmp_path) == ["file.bin"]

    def test_a_server_without_ranges_is_read_from_the_start(self, serve, tmp_path):
        server = serve(lambda handler, n: handler.give(cut=100_000 if n == 1 else None))
        assert get(tmp_path, server.address()).read_bytes() == DATA
        assert len(server.requests) == 2

    def test_versions_are_not_joined(self, serve, tmp_path):
        new = DATA[::-1]
        old, changed = '"one"', '"two"'
        server = serve(
            lambda handler, n: handler.give_rest(cut=100_000) if n == 1 else handler.give_rest(new, etag=changed)
        )
        assert get(tmp_path, server.address(), sha256=None).read_bytes() == new
        assert server.requests[1]["If-Range"] == old

    def test_without_validator_and_checksum_nothing_is_resumed(self, serve, tmp_path):
        server = serve(lambda handler, n: handler.give(cut=100_000 if n == 1 else None))
        assert get(tmp_path, server.address(), sha256=None).read_bytes() == DATA
        assert "Range" not in server.requests[1]

    def test_a_wrongly_joined_file_is_fetched_anew(self, serve, tmp_path):
        (tmp_path / "got").mkdir()
        (tmp_path / "got/.file.bin.part").write_bytes(b"rubbish of a former run")
        server = serve(lambda handler, n: handler.give_rest())
        assert get(tmp_path, server.address()).read_bytes() == DATA
        assert [request.get("Range") for request in server.requests] == ["bytes=23-", None]

    def test_a_complete_partial_file_is_taken(self, serve, tmp_path):
        (tmp_path / "got").mkdir()
        (tmp_path / "got/.file.bin.part").write_bytes(DATA)
        server = serve(lambda handler, n: handler.give_rest())
        assert get(tmp_path, server.address()).read_bytes() == DATA
        assert len(server.requests) == 1

    def test_a_partial_file_that_is_too_long_is_dropped(self, serve, tmp_path):
        (tmp_path / "got").mkdir()
        (tmp_path / "got/.file.bin.part").write_bytes(DATA + b"more")
        server = serve(lambda handler, n: handler.give_rest())
        assert get(tmp_path, server.address()).read_bytes() == DATA

    def test_another_range_than_asked_for_is_not_appended(self, serve, tmp_path):
        def wrong_range(handler, n):
            if n == 2:
                handler.give(DATA, 500, status=206, Content_Range="bytes 500-299999/300000")
            else:
                handler.give_rest(cut=1000 if n == 1 else None)

        server = serve(wrong_range)
        assert get(tmp_path, server.address(), sha256=None).read_bytes() == DATA
        assert [request.get("Range") for request in server.requests] == [None, "bytes=1000-", None]


class TestFaults:
    def test_a_stall_is_cut_and_resumed(self, serve, tmp_path):
        def stall(handler, n):
            handler.give_rest(cut=50_000 if n == 1 else None)
            if n == 1:
                handler.wfile.flush()
                time.sleep(1.2)

        begin = time.monotonic()
        assert get(tmp_path, serve(stall).address()).read_bytes() == DATA
        assert time.monotonic() - begin < 1.1

    def test_a_drip_of_bytes_counts_as_a_stall(self, serve, tmp_path):
        def drip(handler, n):
            if n > 1:
                return handler.give_rest()
            handler.give_rest(cut=1)
            for byte in DATA[1:60]:
                try:
                    handler.wfile.write(bytes([byte]))
                except OSError:
                    return None
                time.sleep(0.05)
            return None

        begin = time.monotonic()
        assert get(tmp_path, serve(drip).address()).read_bytes() == DATA
        assert time.monotonic() - begin < 2.0

    @pytest.mark.parametrize("status", [429, 500, 502, 503])
    def test_a_passing_fault_is_retried(self, serve, tmp_path, status):
        server = serve(lambda handler, n: handler.give(b"busy", status=status) if n < 3 else handler.give())
        assert get(tmp_path, server.address()).read_bytes() == DATA

    def test_the_server_says_when_to_come_back(self, serve, tmp_path):
        server = serve(lambda handler, n: handler.give(b"", status=503, Retry_After="1") if n == 1 else handler.give())
        begin = time.monotonic()
        get(tmp_path, server.address())
        assert time.monotonic() - begin >= 1.0

    def test_every_address_is_tried_and_every_reason_is_told(self, serve, tmp_path):
        missing = serve(lambda handler, n: handler.give(b"no", status=404))
        broken = serve(lambda handler, n: handler.give(b"oh", status=500))
        page = serve(lambda handler, n: handler.give(b" \n<!DOCTYPE html><p>moved", Content_Type="text/html"))
        wrong = serve(lambda handler, n: handler.give(DATA[1:]))
        empty = serve(lambda handler, n: handler.give(b""))
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            nobody = f"http://127.0.0.1:{closed.getsockname()[1]}/file.bin"
            with pytest.raises(FetchError) as caught:
                get(
                    tmp_path,
                    missing.address(),
                    broken.address(),
                    page.address(),
                    wrong.address(),
                    empty.address(),
                    nobody,
                    data_folder=tmp_path / "nowhere",
                )
        message = str(caught.value)
        assert message.startswith("cannot get file.bin of dataset toy: ")
        for reason in (
            "nowhere/toy/file.bin is missing",
            "answered 404 Not Found",
            "failed 3 times in a row (it answered 500 Internal Server Error)",
            "gave an HTML page instead of data",
            f"gave 299999 bytes with the sha256 {hashlib.sha256(DATA[1:]).hexdigest()}, not {SHA256}",
            "is empty",
            "Connection refused",
        ):
            assert reason in message
        assert "\n" not in message
        assert [len(server.requests) for server in (missing, broken, page, wrong)] == [1, 3, 1, 1]
        assert left_behind(tmp_path) == []

    def test_without_a_network_it_fails_at_once(self, tmp_path):
        began = time.monotonic()
        with pytest.raises(FetchError, match=r"/a cannot be reached \(Failed to resolve .*\); http://b"):
            fetch(
                source("http://a.invalid/a", "http://b.invalid/b"), tmp_path / "got" / "file.bin", patience=Patience()
            )
        assert time.monotonic() - began < 3

    def test_a_later_address_helps(self, serve, tmp_path):
        missing = serve(lambda handler, n: handler.give(b"no", status=404))
        good = serve(lambda handler, n: handler.give())
        assert get(tmp_path, missing.address(), good.address()).read_bytes() == DATA

    def test_an_endless_loop_of_redirects_is_refused(self, serve, tmp_path):
        server = serve(lambda handler, n: handler.give(b"", status=302, Location="/file.bin"))
        with pytest.raises(FetchError, match="Exceeded 30 redirects"):
            get(tmp_path, server.address())

    def test_https_is_not_left_for_a_file_without_a_checksum(self, serve, tmp_path, monkeypatch):
        class Plain(requests.adapters.HTTPAdapter):
            """Asks the server without TLS and answers as if it had been asked with it."""

            def send(self, request, **options):
                plain = request.copy()
                plain.url = plain.url.replace("https://", "http://")
                answer = super().send(plain, **options)
                answer.url = request.url
                return answer

        monkeypatch.setattr(requests.Session, "get_adapter", lambda session, url: Plain())
        other = serve(lambda handler, n: handler.give())
        server = serve(lambda handler, n: handler.give(b"", status=302, Location=other.address("other.bin")))
        address = server.address().replace("http://", "https://")
        with pytest.raises(FetchError, match=rf"redirects to {other.address('other.bin')}, which is not https"):
            get(tmp_path, address, sha256=None)
        assert left_behind(tmp_path) == []
        with pytest.raises(FetchError, match=f"{address} redirects to {other.address('other.bin')}, without https"):
            list_baseline(tmp_path / "list.tsv", page=address)
        assert get(tmp_path, address).read_bytes() == DATA  # the checksum says that it is the same file
        (tmp_path / "got/file.bin").unlink()
        assert get(tmp_path, server.address(), sha256=None).read_bytes() == DATA


HEADER = "dataset\tfile\tpath\tsha256\taddresses\tlicence\n"


class TestFetched:
    def test_a_good_answer_is_kept_and_not_fetched_again(self, serve, tmp_path):
        server = serve(lambda handler, n: handler.give())
        assert get(tmp_path, server.address()).read_bytes() == DATA
        get(tmp_path, server.address())
        assert len(server.requests) == 1
        assert left_behind(tmp_path) == ["file.bin"]

    def test_the_data_folder_comes_first(self, serve, tmp_path):
        server = serve(lambda handler, n: handler.give(b"from the network"))
        (tmp_path / "data/toy").mkdir(parents=True)
        (tmp_path / "data/toy/file.bin").write_bytes(DATA)
        assert get(tmp_path, server.address(), data_folder=tmp_path / "data").read_bytes() == DATA
        assert server.requests == []
        assert left_behind(tmp_path) == ["file.bin"]

    def test_a_damaged_data_folder_copy_is_passed_over(self, serve, tmp_path):
        server = serve(lambda handler, n: handler.give())
        (tmp_path / "data/toy").mkdir(parents=True)
        (tmp_path / "data/toy/file.bin").write_bytes(DATA[:-1])
        assert get(tmp_path, server.address(), data_folder=tmp_path / "data").read_bytes() == DATA
        with pytest.raises(FetchError, match=r"gave 299999 bytes with the sha256 \w+, not \w+; it has no official"):
            fetch(source(), tmp_path / "other", tmp_path / "data", patience=IMPATIENT)

    def test_a_wrong_target_is_replaced(self, serve, tmp_path):
        server = serve(lambda handler, n: handler.give())
        (tmp_path / "got").mkdir()
        (tmp_path / "got/file.bin").write_bytes(b"half of it")
        assert get(tmp_path, server.address()).read_bytes() == DATA

    def test_packed_transfer_is_not_unpacked(self, serve, tmp_path):
        server = serve(lambda handler, n: handler.give(Content_Encoding="gzip"))
        assert get(tmp_path, server.address()).read_bytes() == DATA

    def test_the_file_is_readable_by_its_group_like_any_other(self, serve, tmp_path):
        server = serve(lambda handler, n: handler.give())
        umask = os.umask(0)
        os.umask(umask)
        assert get(tmp_path, server.address()).stat().st_mode & 0o777 == 0o666 & ~umask


class TestCatalogue:
    def test_is_read(self, tmp_path):
        path = tmp_path / "datasets.tsv"
        path.write_text(HEADER + f"toy\tfile.bin\ttoy/file.bin\t{SHA256}\thttp://a/x https://b/y\tnone\n")
        assert read_catalogue(path) == [
            SourceFile("toy", "file.bin", "toy/file.bin", ("http://a/x", "https://b/y"), SHA256, "none")
        ]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("dataset\tfile\n", "has no column 'path'"),
            (HEADER + "toy\tf\tm\tabc\thttp://a/x\t\n", "line 2: sha256 'abc' is not 64 hexadecimal digits"),
            (HEADER + "toy\tf\tm\t\tftp://a/x\t\n", "line 2: address 'ftp://a/x' must begin with http"),
            (HEADER + "toy\tf\t../m\t\thttp://a/x\t\n", "line 2: path '../m' must be a path inside"),
            (HEADER + "toy\t/f\tm\t\thttp://a/x\t\n", "line 2: file '/f' must be a path inside"),
            (HEADER + "toy\tf\n", "line 2 has 2 fields, but the header has 6"),
            (HEADER + "toy\tf\tm\t\thttp://a/x\t\textra\n", "line 2 has 7 fields, but the header has 6"),
        ],
    )
    def test_a_wrong_one_is_refused(self, tmp_path, text, message):
        path = tmp_path / "datasets.tsv"
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_catalogue(path)

    def test_the_projects_own_is_sound(self):
        files = read_catalogue(ROOT / "config" / "datasets.tsv")
        assert {"nips-corpus-20111211.zip", "dictnostops.txt"} <= {file.name for file in files}
        assert len({(file.dataset, file.name) for file in files}) == len(files)
        # an excerpt that only a local data folder has is known by its checksum
        assert all(file.licence and (file.addresses or (file.path and file.sha256)) for file in files)
