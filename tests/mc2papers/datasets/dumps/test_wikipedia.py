"""Wikipedia: dumps of every schema, the real excerpts where they are, and dumps gone wrong."""

import bz2
import gzip
import lzma
import re
from collections import Counter

import numpy as np
import pytest
from helpers.crossed import first
from helpers.paths import DATA_FOLDER
from helpers.wikipedia_files import dump, multistream, page, write

from mc2core.base import storage, xmlstream
from mc2papers.datasets import catalogue
from mc2papers.datasets.dumps import shards, vocabulary, wikipedia

FOLDER = DATA_FOLDER / "wikipedia"
DUMPS = sorted(FOLDER.glob("enwiki-*.bz2"))
STUB = FOLDER / "aawiki-20260101-stub-meta-history.derived.xml.gz"
needs_data_folder = pytest.mark.skipif(
    len(DUMPS) < 5 or not STUB.is_file(), reason=f"the real Wikipedia files are not in {FOLDER} (set MC2_DATA_FOLDER)"
)


def parsed(tmp_path, *contents, **options):
    folders = []
    for number, content in enumerate(contents):
        source = write(tmp_path / f"dump{number}.xml.bz2", content)
        wikipedia.parse_pages(source, tmp_path / f"shard{number}", **options)
        folders.append(tmp_path / f"shard{number}")
    return folders


def corpus_of(folders, tmp_path):
    chosen = shards.choose(folders)
    gathered = shards.gather(chosen, vocabulary.count_vocabulary(chosen, None, tmp_path / "scratch"))
    return gathered.corpus(["category"])


class TestArticles:
    @pytest.mark.parametrize("schema", ["", "0.1", "0.3", "0.4", "0.5", "0.6", "0.8", "0.9", "0.10", "0.11"])
    def test_every_schema_gives_the_same_articles(self, tmp_path, schema):
        old = schema in ("", "0.1", "0.3")
        ns = None if old else 0
        pages = [
            page(1, body="trees and shrubs [[Kategorie:Baum]]", ns=ns),
            page(2, body="#REDIRECT [[Title 1]]", ns=ns, redirect="" if old else '<redirect title="Title 1"/>'),
            page(3, "Benutzer:Somebody", ns=None if old else 2),
            page(4, "Kategorie:Baum", ns=None if old else 14),
            page(5, "Other: a title with a colon", body="shrubs &amp; [[Datei:x.jpg|weg]] trees", ns=ns),
            page(6, body="{{disambiguation}} * [[a]]", ns=ns),
            page(7, body="{{Disambiguation needed|x}} trees", ns=ns),
            page(8, "Many (disambiguation)", ns=ns),
            page(9, body="", ns=ns),
            page(10, body="return {}", ns=ns, inside="<model>Scribunto</model>"),
        ]
        (folder,) = parsed(tmp_path, dump(pages, schema))
        about = shards.read_about(folder)
        assert about["counts"] == {
            "articles": 3, "disambiguation": 2, "not an article": 2, "not wiki text": 1, "pages": 10, "redirect": 1,
            "without text": 1,
        }  # fmt: skip
        found = corpus_of([folder], tmp_path)
        assert found.documents["id"].tolist() == [1, 5, 7]
        assert found.vocabulary == ["shrubs", "trees"]
        assert found.content.toarray().tolist() == [[1, 1], [1, 1], [0, 1]]
        assert found.context_names["category"] == ["Baum"]
        pages = storage.read_arrays(folder / "category_pages.npz")
        assert (pages["id"].tolist(), shards.unpack_lines(pages["title"])) == ([4], ["Baum"])

    def test_the_latest_revision_wins_whatever_the_order(self, tmp_path):
        one = dump([page(1, body="early words", revision=5), page(2, body="kept words"), page(3, body="gone words")])
        two = dump([page(1, body="late words", revision=9), page(3, body="#REDIRECT [[x]]", revision=99)])
        folders = parsed(tmp_path, one, two)
        found = corpus_of(folders, tmp_path)
        assert found.documents["id"].tolist() == [1, 2]
        assert found.vocabulary == ["kept", "late", "words"]
        assert corpus_of(folders[::-1], tmp_path).digest == found.digest
        assert shards.choose(folders).repeated == 2
        with pytest.raises(ValueError, match=re.escape("are both made from dump0.xml.bz2, byte 0")):
            shards.choose([*folders, folders[0]])

    @pytest.mark.parametrize("parts", [1, 2, 5, 50])
    def test_any_number_of_jobs_gives_the_same_corpus(self, tmp_path, parts):
        path, index = multistream(tmp_path)
        wikipedia.parse_pages(path, tmp_path / "whole")
        whole = corpus_of([tmp_path / "whole"], tmp_path)
        assert whole.n_documents == 22
        ranges = wikipedia.multistream_ranges(index, path, parts)
        assert (ranges[0][0], ranges[-1][1]) == (0, path.stat().st_size)
        assert len(ranges) == min(parts, 8)  # eight streams of pages
        assert all(start < stop for start, stop in ranges)
        folders = []
        for start, stop in ranges:
            folders.append(tmp_path / f"part{start}")
            wikipedia.parse_pages(path, folders[-1], start=start, stop=stop)
        found = corpus_of(folders[::-1], tmp_path)
        assert found.digest == whole.digest
        assert found.documents.equals(whole.documents)
        assert found.context_names == whole.context_names

    def test_an_index_of_another_dump_is_refused(self, tmp_path):
        path, _ = multistream(tmp_path)
        for lines, message in (
            ("17:1:A\n", "has no stream at byte 17"),
            ("x:1:A\n", "line 1 is b'x:1:A', not 'offset:id"),
            ("99999999:1:A\n", "not 'offset:id:title' with an offset inside multistream"),
        ):
            with pytest.raises(ValueError, match=re.escape(message)):
                wikipedia.multistream_ranges(write(tmp_path / "bad.bz2", lines), path, 2)

    def test_small_blocks_and_runs_change_nothing(self, tmp_path, monkeypatch):
        path, _ = multistream(tmp_path)
        wikipedia.parse_pages(path, tmp_path / "whole")
        whole = corpus_of([tmp_path / "whole"], tmp_path)
        monkeypatch.setattr(shards, "BLOCK_DOCUMENTS", 3)
        monkeypatch.setattr(vocabulary, "RUN_WORDS", 4)
        wikipedia.parse_pages(path, tmp_path / "small")
        assert shards.read_about(tmp_path / "small")["blocks"] == 8
        assert corpus_of([tmp_path / "small"], tmp_path).digest == whole.digest


class TestCorpus:
    def test_the_vocabulary_has_the_most_frequent_words(self, tmp_path):
        body = "the the the oak oak elm elm ash ash ash yew"
        (folder,) = parsed(tmp_path, dump([page(1, body=body), page(2, body="oak fir")]))
        chosen = shards.choose([folder])
        assert vocabulary.count_vocabulary(chosen, 2, tmp_path / "x") == ["ash", "oak"]
        assert vocabulary.count_vocabulary(chosen, 3, tmp_path / "x", stop_words=()) == ["ash", "oak", "the"]
        assert vocabulary.count_vocabulary(chosen, None, tmp_path / "x", min_letters=4, stop_words=()) == []
        assert not list((tmp_path / "x").iterdir())

    def test_a_given_vocabulary_is_checked(self, tmp_path):
        good = tmp_path / "v.txt"
        good.write_text("oak\nNone\r\n")
        assert vocabulary.read_vocabulary(good) == ["oak", "none"]
        cases = {"oak\nit\n": "line 2 is 'it'", "oak\nelm\noak\n": "line 3 has the word 'oak' for the second"}
        for content, message in (cases | {"": "has no words", "<html>\n": "line 1 is '<html>'"}).items():
            good.write_text(content)
            with pytest.raises(ValueError, match=re.escape(message)):
                vocabulary.read_vocabulary(good)

    def test_documents_without_a_word_of_the_vocabulary_are_dropped(self, tmp_path):
        (folder,) = parsed(tmp_path, dump([page(1, body="oak"), page(2, body="elm")]))
        gathered = shards.gather(shards.choose([folder]), ["oak"])
        assert (gathered.key.tolist(), gathered.empty) == ([1], 1)
        with pytest.raises(ValueError, match="no document is left"):
            shards.gather(shards.choose([folder]), ["yew"])

    def test_sampled_categories(self, tmp_path):
        path, _ = multistream(tmp_path)
        wikipedia.parse_pages(path, tmp_path / "s")
        chosen = shards.choose([tmp_path / "s"])
        drawn = wikipedia.sample_categories(chosen, 2, seed=1)
        assert drawn == wikipedia.sample_categories(chosen, 2, seed=1)
        part = wikipedia.in_categories(chosen, drawn)
        expected = [key for key in range(1, 23) if f"C{key % 4}" in drawn]
        gathered = shards.gather(part, ["common"])
        assert gathered.key.tolist() == expected
        with pytest.raises(ValueError, match="5 categories are asked for, but only 4 have 1 articles or more"):
            wikipedia.sample_categories(chosen, 5, seed=1)

    def test_first_writers(self, tmp_path):
        def revision(stamp, who):
            return f"<revision><id>1</id><timestamp>{stamp}</timestamp><contributor{who}</revision>"

        def history(key, *revisions, ns=0):
            return f"<page><title>T{key}</title><ns>{ns}</ns><id>{key}</id>{''.join(revisions)}</page>"

        name = "><username>{}</username><id>1</id></contributor>".format
        pages = [
            history(3, revision("2003", name("Late")), revision("2001", name("Early"))),
            history(1, revision("2001", "><ip>1.2.3.4</ip></contributor>"), revision("2002", name("Second"))),
            history(2, revision("2001", ' deleted="deleted"/>')),
            history(4, revision("2001", name("Talker")), ns=1),
            history(5, revision("2009", name("Early"))),
        ]
        stub = write(tmp_path / "stub.gz", dump(pages), gzip.compress)
        about = wikipedia.parse_first_writers(stub, tmp_path / "w.npz")
        assert about["counts"] == {
            "first writer anonymous": 1, "first writer hidden": 1, "first writer named": 2, "not an article": 1,
            "pages": 5, "revisions": 7,
        }  # fmt: skip
        (folder,) = parsed(tmp_path, dump([page(key) for key in (1, 2, 3, 5, 6)]))
        gathered = shards.gather(shards.choose([folder]), ["words"])
        wikipedia.add_writers(gathered, [tmp_path / "w.npz"])
        found = gathered.corpus(["writer"])
        assert found.context_names["writer"] == ["Early"]
        assert found.contexts["writer"].toarray().ravel().tolist() == [0, 0, 1, 1, 0]


BOMB = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
GOOD = dump([page(1), page(2), page(3)])
OPEN = GOOD.removesuffix("</mediawiki>")
LONG = dump([page(key, body=np.random.default_rng(key).bytes(20_000).hex()) for key in range(1, 60)])


class TestDamage:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (BOMB + dump([page(1, body="&b;")]), "has its own declarations, which are not allowed"),
            ("<html><body>404</body></html>", "is an HTML page instead of data"),
            ("<feed><page/></feed>", "has the root element <feed>; <mediawiki> is needed"),
            ("<feed/>", "has the root element <feed>"),
            (dump([]), "has no pages"),
            (dump([page(1).replace("<id>1</id>", "<id>one</id>")]), "page 'Title 1' has the id 'one'"),
            (dump([page(1).replace("<id>10</id>", "")]), "page 'Title 1' has the revision id None"),
            (dump([page(1, ns="x")]), "has the ns 'x'"),
        ],
    )
    def test_a_bad_dump_is_refused(self, tmp_path, content, message):
        (tmp_path / "s").mkdir()
        (tmp_path / "s" / "old").write_text("kept")
        source = tmp_path / "bad.xml"
        source.write_bytes(content.encode())
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            wikipedia.parse_pages(source, tmp_path / "s", allow_truncated=True)
        assert "bad.xml" in str(caught.value)
        assert [path.name for path in (tmp_path / "s").iterdir()] == ["old"]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.xml", "s"]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (OPEN, "cut off or damaged after 3 complete records: the end of the file inside of an element"),
            (GOOD[: GOOD.rindex("<page>") + 150], "after 2 complete records"),
            (GOOD.replace("</revision></page></m", "</page></m"), "after 2 complete records: mismatched tag"),
            (GOOD + GOOD, "after 3 complete records: junk after document element"),
        ],
    )
    def test_what_is_complete_before_a_damage_may_be_kept(self, tmp_path, content, message):
        source = write(tmp_path / "bad.xml.bz2", content)
        folder = tmp_path / "s"
        with pytest.raises(ValueError, match=re.escape(message)):
            wikipedia.parse_pages(source, folder)
        assert not folder.exists()
        about = wikipedia.parse_pages(source, folder, allow_truncated=True)
        assert message in about["warnings"][0]
        assert about["documents"] == int(re.search("after ([0-9])", message)[1])

    @pytest.mark.parametrize("compress", first([bz2.compress, gzip.compress, lzma.compress]))
    def test_a_cut_compressed_dump_gives_what_is_complete(self, tmp_path, compress):
        whole = compress(LONG.encode())
        source = tmp_path / "cut.xml.x"
        source.write_bytes(whole[: len(whole) * 2 // 3])
        why = r"cut.xml.x is cut off after [0-9]+ inflated bytes; [0-9]+ complete records come"
        with pytest.raises(ValueError, match=why):
            wikipedia.parse_pages(source, tmp_path / "s")
        about = wikipedia.parse_pages(source, tmp_path / "s", allow_truncated=True)
        assert 15 < about["documents"] < 45
        source.write_bytes(whole)
        assert wikipedia.parse_pages(source, tmp_path / "s")["documents"] == 59
        source.write_bytes(b"")
        with pytest.raises(ValueError, match=r"cut\.xml\.x is empty"):
            wikipedia.parse_pages(source, tmp_path / "s", allow_truncated=True)

    @pytest.mark.parametrize(
        ("compress", "place", "message"),
        first(
            [
                (gzip.compress, -6, "CRC check failed"),
                (bz2.compress, 10, "Invalid data stream"),
                (lzma.compress, -45, "Corrupt input data"),
            ]
        ),
    )
    def test_a_wrong_checksum_is_noticed(self, tmp_path, compress, place, message):
        whole = bytearray(compress(LONG.encode()))
        whole[place] ^= 1
        source = tmp_path / "flip.xml.x"
        source.write_bytes(whole)
        with pytest.raises(ValueError, match=rf"flip.xml.x is damaged after [0-9]+ inflated bytes: .*{message}"):
            wikipedia.parse_pages(source, tmp_path / "s")

    def test_accepted_damage_is_told_in_the_datasheet(self, tmp_path):
        cut = write(tmp_path / "cut.xml.bz2", OPEN)
        wikipedia.parse_pages(cut, tmp_path / "s", allow_truncated=True)
        stub = write(tmp_path / "stub.xml.gz", OPEN, gzip.compress)
        wikipedia.parse_first_writers(stub, tmp_path / "w.npz", allow_truncated=True)
        files = {"shards": [tmp_path / "s"], "writers": [tmp_path / "w.npz"]}
        settings = {"vocabulary": None, "min_letters": 3, "drop_stop_words": True, "contexts": ["writer"], "root": ""}
        catalogue.prepare("wikipedia", tmp_path / "corpus", source="real", settings=settings, files=files)
        warnings = (tmp_path / "corpus" / "datasheet.md").read_text().partition("## Warnings")[2]
        for name in ("cut.xml.bz2", "stub.xml.gz"):
            assert f"{name} is cut off or damaged after 3 complete records" in warnings

    def test_a_compression_bomb_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.setattr(xmlstream, "BOMB_BYTES", 2**20)
        source = write(tmp_path / "bomb.xml.bz2", b"<mediawiki>" + b" " * 2**25)
        with pytest.raises(ValueError, match="inflates to more than 1000 times its size"):
            wikipedia.parse_pages(source, tmp_path / "s", allow_truncated=True)

    def test_endless_rubbish_without_a_page_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.setattr(xmlstream, "MAX_RECORD_BYTES", 2**20)
        source = write(tmp_path / "rubbish.xml.bz2", b"<mediawiki>" + b"<a>b</a>" * 200_000)
        with pytest.raises(ValueError, match=r"has [0-9]+ bytes without the end of a <page> after 0"):
            wikipedia.parse_pages(source, tmp_path / "s", allow_truncated=True)

    def test_markup_nested_10000_deep_is_removed_from_the_text(self, tmp_path):
        body = "{{" * 10_000 + "oak" + "}}" * 10_000 + " elm " + "[[" * 10_000 + " yew"
        (folder,) = parsed(tmp_path, dump([page(1, body=body)]))
        assert corpus_of([folder], tmp_path).vocabulary == ["elm", "yew"]


class TestRealDumps:
    @pytest.mark.slow
    @needs_data_folder
    def test_excerpts(self, tmp_path):
        folders, counts = [], {}
        for source in DUMPS:
            folders.append(tmp_path / source.name)
            truncated = "2014" in source.name
            about = wikipedia.parse_pages(source, folders[-1], allow_truncated=truncated)
            assert len(about["warnings"]) == truncated
            counts[source.name[:13]] = Counter(about["counts"])
        pages = {name: (one["pages"], one["articles"] + one["disambiguation"]) for name, one in counts.items()}
        assert pages == {
            "enwiki-2014-e": (361, 215), "enwiki-202502": (70, 6), "enwiki-latest": (206, 106),
            "enwiki-minidu": (27, 24), "enwiki-table-": (5, 5),
        }  # fmt: skip
        assert counts["enwiki-202502"]["redirect"] == 64
        with pytest.raises(ValueError, match="cut off or damaged after 361 complete records"):
            wikipedia.parse_pages(DUMPS[0], tmp_path / "x")
        chosen = shards.choose(folders, counted=["disambiguation"])
        # 241 distinct articles in some dump; by the latest version of each, 14 are none any more
        assert chosen.fates == {"kept": 227, "disambiguation": 13, "redirect": 1}
        assert (chosen.n_documents, chosen.repeated) == (227, sum(one["articles"] for one in counts.values()) - 227)
        gathered = shards.gather(chosen, vocabulary.read_vocabulary(FOLDER / "dictnostops.txt"))
        found = gathered.corpus(["category"])
        assert (found.n_documents, found.n_words) == (227, 7702)
        n_used = len(np.unique(found.content.indices))
        assert 6500 < n_used < 7046  # the manifest counts words of templates and tables too
        assert found.contexts["category"].shape[1] > 1800
        assert corpus_of(folders, tmp_path).digest == corpus_of(folders[::-1], tmp_path).digest

    @needs_data_folder
    def test_stub_history(self, tmp_path):
        about = wikipedia.parse_first_writers(STUB, tmp_path / "w.npz")
        assert (about["counts"]["pages"], about["counts"]["revisions"]) == (507, 1307)
