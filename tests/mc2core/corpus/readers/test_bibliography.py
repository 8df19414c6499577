"""Bibliographies: the same works in every format are the same table, and a damaged file is one sentence."""

import gzip
import json
import logging
import re

import pytest
from helpers.commands import mc2
from helpers.paths import DATA_FOLDER
from helpers.pubmed_files import document

from mc2core import Corpus
from mc2core.app.cli import main
from mc2core.corpus.readers import bibliography
from mc2core.corpus.readers.authors import author_of

RIS = """\
TY  - JOUR
AU  - Müller, Jörg
AU  - Smith, Ann B.
TI  - Growing <i>apple</i> trees
JF  - Orchards
PY  - 2001/05/01
AB  - Trees need
pruning.
KW  - Pruning
KW  - apple tree
DO  - https://doi.org/10.1234/A.1
ER  -

TY  - JOUR
TI  - Iron &amp; forge
T2  - Metals
A1  - van der Berg, Jan
Y1  - 2003
ER  -
"""
MEDLINE = """\

PMID- 11
TI  - Growing apple
      trees
DP  - 2001 May 1
AB  - Trees need
      pruning.
LID - 10.1234/a.1 [doi]
FAU - Müller, Jörg
AU  - Müller J
FAU - Smith, Ann B
AU  - Smith AB
JT  - Orchards
MH  - *Trees/growth & development
OT  - Pruning
OT  - apple tree
SO  - Orchards. 2001 May 1.

PMID- 12
TI  - Iron & forge
DP  - 2003
AU  - van der Berg J
JT  - Metals
SO  - Metals. 2003.
"""
WOS = """\
FN Clarivate Analytics Web of Science
VR 1.0
PT J
AU Müller, J
   Smith, AB
AF Müller, Jörg
   Smith, Ann B.
TI Growing apple
   trees
SO Orchards
DE Pruning; apple
   tree
AB Trees need pruning.
CR Good IJ, 1950, PROBABILITY, DOI 10.1000/XYZ
   Moran M, 1960, TREES, V1, P2
PY 2001
DI 10.1234/a.1
UT WOS:1
ER

PT J
AU van der Berg, J
TI Iron & forge
SO Metals
PY 2003
UT WOS:2
ER

EF
"""
WOS_TABLE = (
    "PT\tAU\tTI\tSO\tDE\tAB\tCR\tPY\tDI\tUT\t\n"
    "J\tMüller, J; Smith, AB\tGrowing apple trees\tOrchards\tPruning; apple tree\tTrees need pruning.\t"
    "Good IJ, 1950, PROBABILITY, DOI 10.1000/XYZ; Moran M, 1960, TREES, V1, P2\t2001\t10.1234/a.1\tWOS:1\t\n"
    "J\tvan der Berg, J\tIron & forge\tMetals\t\t\t\t2003\t\tWOS:2\t\n"
)
SCOPUS = (
    "\ufeffAuthors,Title,Year,Source title,DOI,Abstract,Author Keywords,References,EID\n"
    '"Müller J., Smith A.B.",Growing apple trees,2001,Orchards,10.1234/a.1,Trees need pruning.,Pruning; apple tree,'
    '"Good I.J., Probability, doi: 10.1000/XYZ, (1950); Moran M., Trees, (1960)",2-s2.0-1\n'
    "van der Berg J.,Iron & forge,2003,Metals,,,,,2-s2.0-2\n"
)
BIBTEX = r"""
@string{orchards = "Orchards"}
@comment{jabref-meta: databaseType:bibtex;}
@article{mueller,
  author = {M{\"u}ller, J{\"o}rg and Ann B. Smith},
  title = {Growing {Apple} trees},
  journal = orchards, year = 2001, doi = {10.1234/a.1},
  abstract = {Trees need
    pruning.}, keywords = {Pruning, apple tree}
}
@book{berg, author = {Jan van der Berg}, title = {Iron \& forge}, date = {2003-02}, booktitle = {Metals}}
"""
OPENALEX = [
    {
        "id": "https://openalex.org/W1",
        "doi": "https://doi.org/10.1234/a.1",
        "display_name": "Growing apple trees",
        "publication_year": 2001,
        "ids": {"pmid": "https://pubmed.ncbi.nlm.nih.gov/11"},
        "authorships": [{"author": {"display_name": "Jörg Müller"}}, {"author": {"display_name": "Ann B. Smith"}}],
        "primary_location": {"source": {"display_name": "Orchards"}},
        "abstract_inverted_index": {"pruning.": [2], "Trees": [0], "need": [1]},
        "keywords": [{"display_name": "Pruning"}, {"display_name": "apple tree"}],
        "referenced_works": ["https://openalex.org/W7"],
    },
    {
        "id": "https://openalex.org/W2",
        "title": "Iron & forge",
        "publication_year": 2003,
        "authorships": [{"author": {"display_name": "Jan van der Berg"}}],
        "primary_location": {"source": {"display_name": "Metals"}},
        "abstract_inverted_index": None,
        "referenced_works": [],
    },
]


def author(last, fore):
    return f"<Author><LastName>{last}</LastName><ForeName>{fore}</ForeName></Author>"


def article(pmid, title, year, journal, authors, abstract="", more="", ids=""):
    return (
        f"<PubmedArticle><MedlineCitation><PMID>{pmid}</PMID><Article><Journal><JournalIssue><PubDate><Year>{year}"
        f"</Year></PubDate></JournalIssue><Title>{journal}</Title></Journal><ArticleTitle>{title}</ArticleTitle>"
        f"{abstract}<AuthorList>{authors}</AuthorList></Article>{more}</MedlineCitation><PubmedData>{ids}</PubmedData>"
        "</PubmedArticle>"
    )


PUBMED = document(
    article(
        11,
        "Growing <i>apple</i> trees",
        2001,
        "Orchards",
        author("Müller", "Jörg") + author("Smith", "Ann B"),
        "<Abstract><AbstractText>Trees need</AbstractText><AbstractText>pruning.</AbstractText></Abstract>",
        "<MeshHeadingList><MeshHeading><DescriptorName>Trees</DescriptorName></MeshHeading></MeshHeadingList>"
        "<KeywordList><Keyword>Pruning</Keyword><Keyword>apple tree</Keyword></KeywordList>",
        '<ArticleIdList><ArticleId IdType="doi">10.1234/a.1</ArticleId></ArticleIdList><ReferenceList><Reference>'
        '<Citation>Good 1950</Citation><ArticleIdList><ArticleId IdType="pubmed">7</ArticleId></ArticleIdList>'
        "</Reference><Reference><Citation>Moran 1960</Citation></Reference></ReferenceList>",
    ),
    article(12, "Iron &amp; forge", 2003, "Metals", author("van der Berg", "Jan")),
)
FILES = {
    "export.ris": RIS,
    "refs.bib": BIBTEX.replace("{Apple}", "{a}pple"),
    "pubmed.xml": PUBMED,
    "pubmed.nbib": MEDLINE,
    "works.jsonl": "\n".join(map(json.dumps, OPENALEX)),
    "savedrecs.txt": WOS,
    "table.txt": WOS_TABLE,
    "scopus.csv": SCOPUS,
}
FIRST = {
    "title": "Growing apple trees", "abstract": "Trees need pruning.", "year": 2001, "journal": "Orchards",
    "authors": ["Muller, J.", "Smith, A."], "keywords": ["pruning", "apple tree"], "doi": "10.1234/a.1",
    "id": "10.1234/a.1",
}  # fmt: skip
SECOND = {
    "title": "Iron & forge", "abstract": "", "year": 2003, "journal": "Metals", "authors": ["van der Berg, J."],
    "keywords": [],
}  # fmt: skip
REFERENCES = {
    "pubmed.xml": ["PMID:7", "Moran 1960"],
    "works.jsonl": ["W7"],
    "savedrecs.txt": ["10.1000/xyz", "Moran M, 1960, TREES, V1, P2"],
    "table.txt": ["10.1000/xyz", "Moran M, 1960, TREES, V1, P2"],
    "scopus.csv": ["10.1000/xyz", "Moran M., Trees, (1960)"],
}
IDS = {
    "refs.bib": "berg", "pubmed.xml": "PMID:12", "pubmed.nbib": "PMID:12", "works.jsonl": "W2",
    "savedrecs.txt": "WOS:2", "table.txt": "WOS:2", "scopus.csv": "2-s2.0-2",
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_works(tmp_path, name, packed):
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(FILES[name].encode()) if packed else FILES[name].encode())
    first, second = (row for _, row in bibliography.read(path).rows)
    assert {key: first[key] for key in FIRST} == FIRST
    assert {key: second[key] for key in SECOND} == SECOND
    assert first["references"] == REFERENCES.get(name, [])
    assert first["text"] == "Growing apple trees\nTrees need pruning."
    assert second["text"] == "Iron & forge"
    assert first["mesh"] == (["Trees"] if name.startswith("pubmed") else [])
    assert second["id"] == IDS[name] if name in IDS else second["id"].startswith("record ")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.ris", RIS[:150], "is cut off: the record that begins in line 1 has no end"),
        ("x.ris", RIS.replace("ER  -\n\n", "\n"), "line 1: the record that begins here has no end"),
        ("x.ris", "<html>", "line 1: found '<html>'; a record of RIS begins with TY"),
        ("x.ris", "", "has no record"),
        ("x.ris", RIS.encode("cp1252"), "line 2 is not UTF-8 text"),
        ("x.bib", BIBTEX[:150], "line 4: this entry is damaged or cut off: Unexpectedly reached end of file"),
        ("x.bib", "no entry", "has no record"),
        ("x.xml", PUBMED[:-60], "is cut off or damaged after 1 complete records"),
        ("x.xml", "<html>", "is an HTML page instead of data"),
        ("x.nbib", MEDLINE[:-25], "is cut off in the record that begins in line 19: it has no field SO"),
        ("x.nbib", "TI  - Trees", "a record of MEDLINE begins with PMID"),
        ("x.jsonl", json.dumps(OPENALEX[0]) + '\n{"id": "W', "line 2 is not one JSON object"),
        ("x.txt", WOS[:-5], "is cut off after line 27: its last line .EF. is missing"),
        ("x.txt", WOS[:100], "is cut off: the record that begins in line 3 has no end"),
        ("x.txt", WOS_TABLE[:-40], "line 3 has 2 fields, but the header has 11"),
        ("x.csv", SCOPUS[:-20], "line 3 has 4 fields, but the header has 9"),
        ("x.jsonl", '{"title": "é"}'.encode("cp1252"), "line 1 is not UTF-8 text: byte 0xe9"),
        ("x.jsonl", "", "has no documents"),
        ("x.csv", "\ufeff\n\n  \n", "has no documents"),
        ("x.csv", RIS, "give one column of words by --text, --bag or --counts .*columns: 'TY  - JOUR'"),
        ("x.txt", "", "does not begin as an export of PubMed or Web of Science"),
        ("x.ris.gz", gzip.compress(RIS.encode())[:-9], "is damaged or cut off"),
        ("x.xml.gz", gzip.compress(PUBMED.encode())[:-9], "is cut off"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path, capsys, name, content, message):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ValueError, match=f"is not a bibliography; these are read|{message}") as caught:
        Corpus.from_bibliography(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert main(["import", str(path), "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
    said = capsys.readouterr().err
    assert re.search(message, said)
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("forms", "one"),
    [
        (["Jörg Müller", "MÜLLER, J. A.", "Müller JA", "J. Muller", "Müller, J.-P."], "Muller, J."),
        (["Jan van der Berg", "van der Berg, J", "van der Berg J"], "van der Berg, J."),
        (["Li W", "W. Li", "Wei Li", "Li, Wei", "W Li"], "Li, W."),
        (["O\u2019Brien, P", "P O'Brien", "O'BRIEN PM"], "O'Brien, P."),
        (["John Smith Jr.", "Smith, John, Jr.", "Smith J"], "Smith, J."),
        (["WHO Study Group"], "WHO Study Group"),
        (["{Plain Words}"], "Plain Words"),
        (["Jin GUO", "Jin Guo", "GUO, Jin", "Guo J"], "Guo, J."),
        (["Kumiko TANAKA-Ishii", "Tanaka-Ishii K."], "Tanaka-Ishii, K."),
        (["Plato"], "Plato"),
        (["王伟"], "王伟"),
    ],
)
def test_names_of_authors_get_one_form(forms, one):
    assert {author_of(form) for form in forms} == {one}


def ris(*works):
    return "".join(
        "TY  - JOUR\n" + "".join(f"{tag}  - {value}\n" for tag, value in work.items()) + "ER  - \n" for work in works
    )


def test_duplicates_are_left_out_and_fill_gaps(tmp_path):
    path = tmp_path / "x.ris"
    path.write_text(
        ris(
            {"TI": "Apple trees", "DO": "10.1234/a", "AU": "Li, W"},
            {"TI": "Other words", "DO": "10.1234/A", "AB": "Roots.", "PY": "1999"},
            {"TI": "APPLE TREES.", "AU": "Wei Li"},
            {"TI": "Apple trees", "DO": "10.1234/b"},  # another DOI
            {"TI": "Apple trees", "AU": "Smith, J"},  # another author, but as the one above
            {"TI": "Apple trees", "AU": "Smith, J", "PY": "2001"},  # another year
        )
    )
    works = bibliography.read(path)
    assert [(row["doi"], row["year"], row["abstract"]) for _, row in works.rows] == [
        ("10.1234/a", 1999, "Roots."),
        ("10.1234/b", 2001, ""),
    ]
    assert works.counts == {
        "records": 6, "same_id": 1, "same_title": 3, "without_abstract": 1, "forms": 3, "authors": 2,
    }  # fmt: skip


def test_the_datasheet_says_what_was_merged(tmp_path, output_of, caplog):
    works = [{"TI": f"Tree number {number} of {name}", "AU": f"{name}, A"} for number, name in enumerate("XYZXX")]
    path = tmp_path / "export.ris"
    path.write_text(ris(*works, works[0] | {"AU": "X, Ann"}, {"TI": "No author", "KW": "once"}))
    sheet = output_of(f"import {path} --out {tmp_path}/corpus")
    assert "- 7 records; the text of a document is its title and abstract" in sheet
    assert "0 with the DOI or PMID of an earlier record, 1 with the same title" in sheet
    assert "- 6 documents without an abstract" in sheet
    assert "4 forms of names became 3 (1 merged)" in sheet
    assert "- 2 values of author: in fewer than 2 documents" in sheet
    corpus = Corpus.load(tmp_path / "corpus")
    assert corpus.context_names == {"author": ["X, A."]}
    with caplog.at_level(logging.WARNING):
        again = Corpus.from_bibliography(path)
    assert again.digest == corpus.digest
    assert "(1 merged)" in caplog.text


def test_given_columns_and_rules_replace_the_defaults(tmp_path):
    path, out = tmp_path / "export.ris", tmp_path / "corpus"
    path.write_text(ris({"TI": "Apples", "AU": "Li, W", "KW": "a"}, {"TI": "Pears", "AU": "Li, W", "KW": "a"}))
    mc2(f"import {path} --context who=authors:bag --out {out}")
    assert Corpus.load(out).context_names == {"who": ["Li, W."]}
    corpus = Corpus.from_bibliography(path, rare=["author=3:pool"])
    assert corpus.context_names == {"author": ["(rare)"], "keyword": ["a"]}


def test_a_table_with_a_column_of_words_stays_a_table(tmp_path):
    path = tmp_path / "works.jsonl"
    path.write_text(FILES["works.jsonl"])
    arguments = ["import", str(path), "--text", "id", "--context", "year=publication_year:number"]
    mc2([*arguments, "--out", tmp_path / "corpus"])
    assert "openalex" in Corpus.load(tmp_path / "corpus").vocabulary


def test_later_exports_follow_the_first_one(tmp_path, capsys, output_of):
    (tmp_path / "a.ris").write_text(ris({"TI": "Apple trees", "AU": "Li, W"}, {"TI": "Pear trees", "AU": "Li, W"}))
    (tmp_path / "b.bib").write_text(
        "@article{a, title={Apple trees}, author={Wei Li}, doi={10.1234/x}}\n@article{b, title={Plum trees},"
        " author={Li, Wei}, year=2000}"
    )
    corpus = tmp_path / "corpus"
    mc2(f"import {tmp_path}/a.ris --out {corpus}")
    mc2(f"import {tmp_path}/b.bib --like {corpus} --out {tmp_path}/b")
    new = Corpus.load(tmp_path / "b")
    assert new.context_names == {"author": ["Li, W."]}
    assert new.contexts["author"].toarray().tolist() == [[1], [1]]
    capsys.readouterr()
    (tmp_path / "c.ris").write_text((tmp_path / "a.ris").read_text() + ris({"TI": "Plum trees", "AU": "Li, W"}))
    mc2(f"import {tmp_path}/c.ris --append --out {corpus}")
    assert "- 2 documents: the corpus has their ids already" in capsys.readouterr().out
    assert Corpus.load(corpus).n_documents == 3
    (tmp_path / "d.ris").write_text((tmp_path / "a.ris").read_text() + "\n")
    assert "nothing to do" in output_of(f"import {tmp_path}/d.ris --append --out {corpus}")


def test_other_files_are_no_bibliographies(tmp_path):
    (tmp_path / "x.txt").write_text("Some words.")
    with pytest.raises(ValueError, match=r"x\.txt is not a bibliography; these are read: RIS"):
        Corpus.from_bibliography(tmp_path / "x.txt")
    with pytest.raises(ValueError, match=r"y\.ris is missing"):
        Corpus.from_bibliography(tmp_path / "y.ris")
    (tmp_path / "x.csv").write_text("title,text\na,b\n")
    assert bibliography.format_of(tmp_path / "x.csv") is None


def test_books_of_pubmed_are_counted(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text(PUBMED.replace("</PubmedArticleSet>", "<PubmedBookArticle/></PubmedArticleSet>"))
    counts = bibliography.read(path).counts
    assert (counts["records"], counts["books"]) == (3, 1)
    assert "books left out: 1 (PubMed gives them other fields)" in bibliography.messages(counts)


def test_texts_of_a_bibliography_are_read_again(tmp_path):
    from mc2core.explore.texts import texts_of

    path = tmp_path / "export.ris"
    path.write_text(RIS)
    corpus = Corpus.from_bibliography(path)
    assert texts_of(corpus, path) == ["Growing apple trees\nTrees need pruning.", "Iron & forge"]


REAL = {
    "synergy/synergy_9_reviews.jsonl.gz": (7_234, 7_227, {"year", "author", "journal", "mesh"}),
    "acl/acl_anthology_2019.jsonl.gz": (48_356, 48_016, {"year", "author", "journal"}),
    "pubmed/efetch_xizhou-pubMR.xml.gz": (93, 93, {"year", "author", "journal", "keyword", "mesh", "reference"}),
}


@pytest.mark.parametrize("name", [*REAL])
def test_real_exports_are_read(name):
    path = DATA_FOLDER / name
    if not path.is_file():
        pytest.skip(f"{path} is not there (set MC2_DATA_FOLDER)")
    n_records, n_works, contexts = REAL[name]
    works = bibliography.read(path)
    assert (works.counts["records"], len(works.rows)) == (n_records, n_works)
    assert {text.partition("=")[0].partition(":")[0] for text in works.settings()["contexts"]} == contexts
    assert len({row["id"] for _, row in works.rows}) == n_works
    names = {name for _, row in works.rows for name in row["authors"]}
    in_form = sum(bool(re.fullmatch(r"[^,]+, .\.", name)) for name in names)
    assert in_form > 0.98 * len(names)
