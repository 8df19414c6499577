"""PubMed and PNAS: citations of every layout, versions and deletions, the real excerpts, and files gone wrong."""

import gzip
import re
from collections import Counter

import numpy as np
import pytest
from helpers.paths import DATA_FOLDER
from helpers.pubmed_files import citation, document
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2core.base import xmlstream
from mc2papers.datasets.dumps import pubmed, shards, vocabulary

FOLDER = DATA_FOLDER / "pubmed"
FILES = sorted(FOLDER.glob("*.xml.gz"))
needs_data_folder = pytest.mark.skipif(
    len(FILES) < 22, reason=f"the real PubMed files are not in {FOLDER} (set MC2_DATA_FOLDER)"
)
ALL = pubmed.Selection(abstract=False)


def deletion(*keys):
    pmids = "".join(f'<PMID Version="1">{key}</PMID>' for key in keys)
    return f"<DeleteCitation>{pmids}</DeleteCitation>"


def parsed(tmp_path, *contents, selection=ALL, **options):
    folders = []
    for number, content in enumerate(contents):
        source = tmp_path / f"pubmed26n{number:04d}.xml.gz"
        source.write_bytes(gzip.compress(content if isinstance(content, bytes) else content.encode()))
        folders.append(tmp_path / f"shard{number}")
        pubmed.parse_citations(source, folders[-1], selection, **options)
    return folders


def gathered(folders, tmp_path):
    chosen = shards.choose(folders, pubmed.deleted_keys(folders))
    return shards.gather(chosen, vocabulary.count_vocabulary(chosen, None, tmp_path / "scratch", stop_words=()))


def words(found, row):
    return [found.vocabulary[v] for v in found.content[[row]].indices]


class TestSelections:
    def test_they_count_what_they_drop(self, tmp_path):
        selection = pubmed.Selection(first_year=2000, last_year=2005, abstract=True, mesh=True)
        content = document(
            citation(1),
            citation(2, date="<Year>1999</Year>"),
            citation(3, date="<Year>2006</Year>"),
            citation(4, date=""),
            citation(5, abstract="<AbstractText> </AbstractText>"),
            citation(6, mesh=()),
            "<PubmedBookArticle><BookDocument><PMID>9</PMID></BookDocument></PubmedBookArticle>",
            deletion(77),
        )
        (folder,) = parsed(tmp_path, content, selection=selection)
        assert shards.read_about(folder)["counts"] == {
            "book": 1, "citations": 6, "deletions": 1, "documents": 1, "other year": 2, "without MeSH": 1,
            "without abstract": 1, "without year": 1,
        }  # fmt: skip

    def test_pnas_is_found_by_any_of_its_numbers(self, tmp_path):
        selection = pubmed.Selection(1915, 2005, pubmed.PNAS, abstract=False)
        content = document(
            citation(1),
            citation(2, issn="1091-6490"),
            citation(3, issn="0028-0836"),
            citation(4, issn="", linking="0027-8424"),
            citation(5, date="<Year>1914</Year>"),
        )
        (folder,) = parsed(tmp_path, content, selection=selection)
        found = gathered([folder], tmp_path)
        assert found.key.tolist() == [1, 2, 4]
        assert shards.read_about(folder)["counts"]["other journal"] == 1
        assert found.corpus(["year"]).contexts["year"].tolist() == [2005] * 3

    def test_mesh_with_and_without_check_tags(self, tmp_path):
        qualified = citation(2, mesh=[("Heart", "N")]).replace(
            "</DescriptorName>", '</DescriptorName><QualifierName MajorTopicYN="Y">injuries</QualifierName>'
        )
        mesh = [("Humans", "N"), ("Neoplasms", "Y"), ("Male", "N"), ("Male", "N")]
        found = gathered(parsed(tmp_path, document(citation(1, mesh=mesh), qualified)), tmp_path)
        assert found.members["mesh"][1] == ["Heart", "Humans", "Male", "Neoplasms"]
        assert found.members["mesh"][0].toarray().tolist() == [[0, 1, 1, 1], [1, 0, 0, 0]]
        assert found.members["mesh_major"][1] == ["Heart", "Neoplasms"]
        pubmed.drop_names(found, "mesh", pubmed.CHECK_TAGS)
        corpus = found.corpus(["mesh", "year"], labels="mesh")
        assert corpus.context_names["mesh"] == corpus.label_names == ["Heart", "Neoplasms"]
        assert corpus.labels.toarray().tolist() == [[0, 1], [1, 0]]
        with pytest.raises(ValueError, match="context 'author' is not there; there are mesh, mesh_major, year"):
            found.corpus(["author"])


class TestCitations:
    def test_title_and_abstract_with_markup_inside(self, tmp_path):
        abstract = (
            '<AbstractText Label="AIM">Wild <i>Danio <b>rerio</b></i> tail.</AbstractText>'
            '<AbstractText Label="END">CO<sub>two</sub> last</AbstractText>'
            "<CopyrightInformation>owner</CopyrightInformation>"
        )
        other = "</Article><OtherAbstract><AbstractText>fremd</AbstractText></OtherAbstract>"
        parts = citation(1, "On <sup>alpha</sup>beta fish &amp; chips", abstract).replace("</Article>", other)
        found = gathered(parsed(tmp_path, document(parts, "<!-- no -->")), tmp_path)
        expected = ["alphabeta", "chips", "cotwo", "danio", "fish", "last", "rerio", "tail", "wild"]
        assert words(found, 0) == expected

    @pytest.mark.parametrize(
        ("date", "year"),
        [
            ("<Year>1999</Year><Month>Dec</Month>", 1999),
            ("<MedlineDate>1998 Dec-1999 Jan</MedlineDate>", 1998),
            ("<MedlineDate>Spring 2001</MedlineDate>", 2001),
            ("<MedlineDate>1976-1977 Winter</MedlineDate>", 1976),
            ("<MedlineDate>Vol 20010 no 3</MedlineDate>", None),
            ("<MedlineDate/>", None),
            ("", None),
            ("<Year>two thousand</Year>", None),
        ],
    )
    def test_years(self, tmp_path, date, year):
        found = gathered(parsed(tmp_path, document(citation(1, date=date))), tmp_path)
        assert found.numbers["year"].tolist() == [year] or (year is None and np.isnan(found.numbers["year"]).all())

    def test_electronic_date_stands_in_for_a_missing_year(self, tmp_path):
        content = citation(1, date="").replace("</Article>", "<ArticleDate><Year>2011</Year></ArticleDate></Article>")
        assert gathered(parsed(tmp_path, document(content)), tmp_path).numbers["year"].tolist() == [2011]

    def test_an_empty_abstract_leaves_the_title(self, tmp_path):
        (folder,) = parsed(tmp_path, document(citation(1, abstract=""), citation(2, title="", abstract="")))
        assert shards.read_about(folder)["counts"]["without text"] == 1
        assert words(gathered([folder], tmp_path), 0) == ["title"]

    def test_the_latest_version_wins_and_deleted_citations_go(self, tmp_path):
        versions = (("oldest", "1", {}), ("newest", "2", {}), ("older", "1", {"revised": "2020-01-01"}))
        first = document(
            *(citation(1, title, version=version, **more) for title, version, more in versions),
            citation(2, "before", revised="2010-01-02"),
            *(citation(key, title) for key, title in ((3, "withdrawn"), (4, "same"), (6, "out"))),
            citation(5, "undated", revised=""),
        )
        second = document(
            citation(2, "after", revised="2010-01-10"),
            citation(4, "same later file"),
            citation(5, "dated", revised="1999-01-01"),
            citation(6, "out", date="<Year>1900</Year>", revised="2011-01-01"),
            deletion(3, 99),
        )
        selection = pubmed.Selection(first_year=2000)
        folders = parsed(tmp_path, first, second, selection=selection)
        found = gathered(folders, tmp_path)
        titles = dict(zip(found.key.tolist(), found.title, strict=True))
        assert titles == {1: "newest", 2: "after", 4: "same later file", 5: "dated"}
        chosen = shards.choose(folders, pubmed.deleted_keys(folders))
        assert (chosen.repeated, chosen.deleted) == (6, 1)
        assert gathered(folders[::-1], tmp_path).corpus(["mesh"]).digest == found.corpus(["mesh"]).digest

    @settings(max_examples=8, deadline=None)
    @given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 3), st.sampled_from("abc")), min_size=1, max_size=12))
    def test_how_citations_are_cut_into_shards_does_not_matter(self, tmp_path_factory, rows):
        folder = tmp_path_factory.mktemp("pubmed")
        parts = [citation(key, f"word{letter * 3}", version=str(version)) for key, version, letter in rows]
        found = gathered(parsed(folder, *(document(part) for part in parts)), folder)
        last = {}
        for key, version, letter in rows:
            if key not in last or version >= last[key][0]:
                last[key] = version, f"word{letter * 3}"
        titles = dict(zip(found.key.tolist(), found.title, strict=True))
        assert titles == {key: title for key, (_, title) in last.items()}
        whole = folder / "whole"
        whole.mkdir()
        assert gathered(parsed(whole, document(*parts)), whole).corpus(["mesh"]).digest == found.corpus(["mesh"]).digest

    @pytest.mark.parametrize("size", [16, 64, 1 << 18])
    def test_parts_that_nobody_reads_change_nothing(self, tmp_path, monkeypatch, size):
        monkeypatch.setattr(xmlstream, "BLOCK_BYTES", size)
        authors = '<AuthorList CompleteYN="Y"><Author><LastName>Zed</LastName></Author></AuthorList>'
        data = "<PubmedData><History/><ReferenceList><Reference/></ReferenceList></PubmedData>"
        plain = [citation(key, f"title{'abcdefg'[key]}") for key in range(5)]
        parts = [part.replace("</Article>", f"{authors}</Article>") for part in plain]
        parts = [part.replace("</MedlineCitation>", f"</MedlineCitation>{data}") for part in parts]
        odd = citation(6, "<![CDATA[<AuthorList> is a <PubmedData>]]> odd")
        odd = odd.replace("</Article>", "<AuthorList/></Article>")
        found = gathered(parsed(tmp_path, document(*parts, "<!-- <PubmedData> -->", odd)), tmp_path)
        plain = gathered(parsed(tmp_path, document(*plain)), tmp_path)
        assert found.key.tolist() == [*plain.key.tolist(), 6]
        assert found.title[:5] == plain.title
        assert found.title[5] == "<AuthorList> is a <PubmedData> odd"
        lost = document(*parts[:2], parts[2].replace("</PubmedData>", ""), *parts[3:])
        with pytest.raises(ValueError, match="after 2 complete records: mismatched tag"):
            parsed(tmp_path, lost)


GOOD = document(citation(1), citation(2), citation(3))
BOMB = '<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">'


class TestDamage:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("<PubmedArticleSet><PubmedArticle/></PubmedArticleSet>", "citation 1 has no PMID"),
            (GOOD.replace(">2</PMID>", ">two</PMID>"), "PMID 'two' is not a whole number"),
            (GOOD.replace('Version="1">2<', 'Version="x">2<'), "PMID 2: version 'x' is not a whole number"),
            (document(deletion("9" * 30)), "is not a whole number of up to nine digits"),
            ("<html><title>Error</title></html>", "is an HTML page instead of data"),
            ("<mediawiki/>", "has the root element <mediawiki>; <PubmedArticleSet> is needed"),
            (GOOD.replace('.dtd">', f'.dtd" [{BOMB}]>').replace("A title", "&b;"), "has its own declarations, which"),
        ],
    )
    def test_a_bad_file_is_refused(self, tmp_path, content, message):
        source = tmp_path / "bad.xml"
        source.write_text(content)
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            pubmed.parse_citations(source, tmp_path / "s", ALL, allow_truncated=True)
        assert "bad.xml" in str(caught.value)
        assert not (tmp_path / "s").exists()

    def test_a_cut_file_is_refused_or_accepted_with_a_warning(self, tmp_path):
        rng = np.random.default_rng(0)
        whole = gzip.compress(document(*(citation(key, rng.bytes(3000).hex()) for key in range(1, 200))).encode())
        (folder,) = parsed(tmp_path, document(citation(1, "earlier")))
        source = tmp_path / "cut.xml.gz"
        source.write_bytes(whole[: len(whole) // 2])
        message = r"cut\.xml\.gz is cut off after [0-9]+ inflated bytes; ([0-9]+) complete records come before"
        with pytest.raises(ValueError, match=message):
            pubmed.parse_citations(source, folder, ALL)
        assert shards.read_about(folder)["documents"] == 1  # what was whole stays
        about = pubmed.parse_citations(source, folder, ALL, allow_truncated=True)
        assert about["documents"] == int(re.search(message, about["warnings"][0])[1]) == about["counts"]["citations"]
        assert 60 < about["documents"] < 120

    def test_a_missing_end_tag_loses_only_what_comes_after(self, tmp_path):
        first = GOOD.index("</ArticleTitle>") + len("</ArticleTitle>")
        content = GOOD[:first] + GOOD[first:].replace("</ArticleTitle>", "", 1)
        source = tmp_path / "tag.xml"
        source.write_text(content)
        with pytest.raises(ValueError, match="cut off or damaged after 1 complete records: mismatched tag"):
            pubmed.parse_citations(source, tmp_path / "s", ALL)
        assert pubmed.parse_citations(source, tmp_path / "s", ALL, allow_truncated=True)["documents"] == 1


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    counts = Counter()
    for source in FILES:
        counts.update(pubmed.parse_citations(source, folder / source.name, ALL)["counts"])
    return [folder / source.name for source in FILES], counts, folder


class TestRealCitations:
    @needs_data_folder
    def test_real_counts(self, real):
        folders, counts, folder = real
        assert counts["citations"] == 1299
        assert counts["deletions"] > 10
        chosen = shards.choose(folders)
        found = shards.gather(chosen, vocabulary.count_vocabulary(chosen, 10_000, folder / "scratch"))
        assert found.content.shape == (1190, 10_000)
        mesh, names = found.members["mesh"]
        assert (np.diff(mesh.indptr) > 0).sum() == 929
        assert mesh.has_sorted_indices
        assert found.content.has_canonical_format
        assert len(names) == 3095
        assert len(found.members["mesh_major"][1]) >= 447  # the manifest counts marks on descriptors alone
        assert not np.isnan(found.numbers["year"]).any()

    @needs_data_folder
    @pytest.mark.parametrize(
        ("selection", "expected"),
        [
            (pubmed.Selection(mesh=True), 794),
            (pubmed.Selection(first_year=2000, mesh=True), 580),
            (pubmed.Selection(issn=pubmed.PNAS, abstract=False), 2),
        ],
    )
    def test_selections(self, tmp_path, selection, expected):
        for source in FILES:
            pubmed.parse_citations(source, tmp_path / source.name, selection)
        assert shards.choose(tmp_path / source.name for source in FILES).n_documents == expected
