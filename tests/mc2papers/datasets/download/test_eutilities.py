"""A journal's citations through E-utilities, from a local server with the faults of the real one."""

import gzip
import itertools
import re
import time
import urllib.parse

import pytest
from helpers.eutilities_answers import KEYS, search
from helpers.pubmed_files import citation, document
from helpers.servers import IMPATIENT

from mc2papers.datasets.download import eutilities
from mc2papers.datasets.download.fetch import FetchError
from mc2papers.datasets.dumps import pubmed


def asked(handler):
    address = urllib.parse.urlsplit(handler.path)
    return address.path.rpartition("/")[2], {k: v[0] for k, v in urllib.parse.parse_qs(address.query).items()}


def answer(handler, keys=KEYS):
    tool, query = asked(handler)
    if tool == "esearch.fcgi":
        assert query["term"] == "(0027-8424[ISSN] OR 1091-6490[ISSN]) AND 1999[dp]"
        handler.give(search(keys))
    else:
        handler.give(document(*map(citation, query["id"].split(","))).encode())


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(eutilities, "BATCH", 3)


def get(tmp_path, server, pause_seconds=0.0):
    return eutilities.fetch_year(
        tmp_path / "1999.xml.gz", 1999, server=server.address("entrez"), pause_seconds=pause_seconds, patience=IMPATIENT
    )


def parsed(tmp_path):
    return pubmed.parse_citations(tmp_path / "1999.xml.gz", tmp_path / "s", pubmed.Selection(issn=pubmed.PNAS))


def test_batches_become_one_file_that_the_reader_reads(serve, tmp_path):
    times = []
    server = serve(lambda handler, n: (times.append(time.monotonic()), answer(handler, KEYS[::-1])))
    assert get(tmp_path, server, pause_seconds=0.05) == 7
    assert parsed(tmp_path)["documents"] == 7
    assert re.findall(rb">(100[0-9])</PMID>", gzip.decompress((tmp_path / "1999.xml.gz").read_bytes())) == [
        key.encode() for key in KEYS
    ]
    assert len(times) == 4
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) > 0.04
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1999.xml.gz", "s"]


def test_a_second_call_goes_on_where_the_first_stopped(serve, tmp_path):
    broken = serve(lambda handler, n: answer(handler) if n < 3 else handler.give(b"", status=503))
    with pytest.raises(FetchError, match="it answered 503 Service Unavailable"):
        get(tmp_path, broken)
    assert not (tmp_path / "1999.xml.gz").exists()
    whole = serve(lambda handler, n: answer(handler))
    assert get(tmp_path, whole) == 7
    assert len(whole.requests) == 2
    assert parsed(tmp_path)["documents"] == 7


@pytest.mark.parametrize(
    "fault",
    [
        lambda handler: handler.give(b"busy", status=429, Retry_After="0"),
        lambda handler: handler.give(b"oh", status=500),
        lambda handler: handler.give(b"<PubmedArticleSet><PubmedArticle>"),
        lambda handler: handler.give(b"<eFetchResult><ERROR>busy</ERROR></eFetchResult>"),
        lambda handler: handler.give(b'{"error":"API rate limit exceeded"}'),
        lambda handler: handler.give(document(citation(1001)).encode(), cut=90),
    ],
)
def test_a_passing_fault_is_asked_again(serve, tmp_path, fault):
    server = serve(lambda handler, n: fault(handler) if n in (1, 3) else answer(handler))
    assert get(tmp_path, server) == 7
    assert parsed(tmp_path)["documents"] == 7


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (search(KEYS, 10_001), "10001 citations were found, but a search lists only 10000"),
        (search(KEYS, 9), "gave a wrong answer: .*search.xml is incomplete: it lists 7 of 9 citations"),
        (b"<eSearchResult><ERROR>no</ERROR></eSearchResult>", "search.xml has no list of citations"),
        (b"<html>down for maintenance</html>", "gave an HTML page instead of data"),
    ],
)
def test_other_answers_are_refused(serve, tmp_path, content, message):
    server = serve(lambda handler, n: handler.give(content))
    with pytest.raises((FetchError, ValueError), match=message):
        get(tmp_path, server)
    assert not (tmp_path / "1999.xml.gz").exists()


def test_a_year_without_citations(serve, tmp_path):
    assert get(tmp_path, serve(lambda handler, n: answer(handler, []))) == 0
    assert parsed(tmp_path)["documents"] == 0
