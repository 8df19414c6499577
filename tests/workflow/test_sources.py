"""The rules that bring real files and make corpora of them, on a tiny local data folder of every official layout."""

import bz2
import gzip
import re
import subprocess

import numpy as np
import pytest
import yaml
from helpers.configurations import SCHEMAS
from helpers.paths import DATA_FOLDER
from helpers.workflow_calls import ROOT, snakemake

from mc2core import Corpus
from mc2core.base.storage import read_json
from mc2papers import configuration
from mc2papers.datasets.catalogue import DATASETS
from mc2papers.datasets.formats import rar

DUMP = "enwiki-latest-pages-articles-multistream"


def page(key, title, text, ns=0):
    return (
        f"<page><title>{title}</title><ns>{ns}</ns><id>{key}</id><revision><id>{key}0</id>"
        f"<timestamp>2020-01-01T00:00:00Z</timestamp><text>{text}</text></revision></page>"
    )


def write_wikipedia(folder):
    """Twelve articles in four streams, with index, history and category graph."""
    streams = [bz2.compress(b"<mediawiki><siteinfo></siteinfo>")]
    index = []
    for first in range(1, 13, 4):
        pages = [
            page(key, f"Article {key}", f"tree oak{'abc'[key % 3]} [[Category:{'Oaks' if key % 2 else 'Elms'}]]")
            for key in range(first, first + 4)
        ]
        index += [f"{sum(map(len, streams))}:{key}:Article {key}" for key in range(first, first + 4)]
        streams.append(bz2.compress("".join(pages).encode()))
    graph = page(101, "Category:Oaks", "", 14) + page(102, "Category:Elms", "", 14) + page(103, "Category:Life", "", 14)
    index.append(f"{sum(map(len, streams))}:101:Category:Oaks")
    streams += [bz2.compress(graph.encode()), bz2.compress(b"</mediawiki>")]
    (folder / f"{DUMP}.xml.bz2").write_bytes(b"".join(streams))
    (folder / f"{DUMP}-index.txt.bz2").write_bytes(bz2.compress("\n".join([*index, ""]).encode()))
    revisions = "".join(
        f"<page><title>Article {key}</title><ns>0</ns><id>{key}</id><revision><id>{key}</id><timestamp>2001-01-01"
        f"T00:00:00Z</timestamp><contributor><username>Ann{key % 2}</username></contributor></revision></page>"
        for key in range(1, 12)
    )
    history = gzip.compress(f"<mediawiki>{revisions}</mediawiki>".encode())
    (folder / "enwiki-latest-stub-meta-history.xml.gz").write_bytes(history)
    sql(folder / "enwiki-latest-categorylinks.sql.gz", "categorylinks", ["cl_from", "cl_type", "cl_target_id"],
        ["(101,'subcat',2)", "(102,'subcat',2)", "(103,'subcat',1)"])  # fmt: skip
    sql(folder / "enwiki-latest-linktarget.sql.gz", "linktarget", ["lt_id", "lt_namespace", "lt_title"],
        ["(1,14,'Main_topic_classifications')", "(2,14,'Life')"])  # fmt: skip


def sql(path, table, columns, rows):
    lines = [f"CREATE TABLE `{table}` (", *(f"  `{name}` int," for name in columns), ") ENGINE=InnoDB;"]
    lines += [f"INSERT INTO `{table}` VALUES {','.join(rows)};", "-- Dump completed on 2026-01-01", ""]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))


def write_citations(path, keys, year, issn="1111-1111", abstract="Genes and cells"):
    articles = "".join(
        f"<PubmedArticle><MedlineCitation><PMID Version='1'>{key}</PMID><Article><Journal><ISSN>{issn}</ISSN>"
        f"<JournalIssue><PubDate><Year>{year}</Year></PubDate></JournalIssue></Journal>"
        f"<ArticleTitle>Mouse gene {key}</ArticleTitle>"
        f"<Abstract><AbstractText>{abstract}</AbstractText></Abstract></Article><MeshHeadingList><MeshHeading>"
        f"<DescriptorName MajorTopicYN='N'>Gene {key % 2}</DescriptorName></MeshHeading></MeshHeadingList>"
        "</MedlineCitation></PubmedArticle>"
        for key in keys
    )
    path.write_bytes(gzip.compress(f"<PubmedArticleSet>{articles}</PubmedArticleSet>".encode()))


@pytest.mark.workflow
@pytest.mark.slow
def test_every_layout_becomes_a_corpus(checkout):
    """Wikipedia in parts with all three contexts; the listed baseline; PNAS by years; a usage log; an own table."""
    data_folder = checkout / "data_folder"
    (data_folder / "wikipedia").mkdir(parents=True)
    (data_folder / "pubmed").mkdir()
    write_wikipedia(data_folder / "wikipedia")
    write_citations(data_folder / "pubmed/pubmed26n0001.xml.gz", range(1, 7), 2001)
    write_citations(data_folder / "pubmed/pubmed25n0009.xml.gz", range(50, 60), 2001)
    for year in (1999, 2000):
        write_citations(
            data_folder / f"pubmed/pnas-{year}.xml.gz", range(year, year + 3), year, "0027-8424", abstract=""
        )
    (checkout / "log").mkdir()
    (checkout / "log/functions.csv").write_text("user,function,count\na,open,3\nb,save,1\nb,open,2\nc,save,4\n")
    changes = {
        "datasets": ["wikipedia", "w100", "pubmed", "pnas", "aua", "mine"],
        "data_folder": "data_folder",
        "corpora": {
            "wikipedia": {"source": "real", "parts": 2, "vocabulary": 3},
            "w100": {"source": "real", "n_categories": 1, "least_articles": 6},
            "pubmed": {"source": "real", "vocabulary": 3},
            "pnas": {"source": "real", "first_year": 1999, "last_year": 2000, "vocabulary": 100},
            "aua": {"source": "own", "folder": "log"},
        },
    }
    (checkout / "tiny.yaml").write_text(yaml.safe_dump(changes))
    code, output = snakemake(checkout, "corpora", "--configfile", "config/example.yaml", "tiny.yaml")
    assert code == 0, output
    corpora = checkout / "results/corpora"

    def whole(name):
        return [Corpus.load(corpora / name / part) for part in ("train", "test")]

    train, test = whole("wikipedia")
    assert train.n_documents + test.n_documents == 12
    assert train.vocabulary == ["oaka", "oakb", "tree"]
    assert train.context_names == {"category": ["Elms", "Oaks"], "writer": ["Ann0", "Ann1"], "topic": ["Life"]}
    assert train.missing("writer").sum() + test.missing("writer").sum() == 1
    assert len(list((checkout / f"results/shards/wikipedia/{DUMP}.xml.bz2").glob("*-of-2"))) == 2
    assert Corpus.load(corpora / "w100/train").n_documents == 6
    train, test = whole("pubmed")
    assert sorted([*train.documents["id"], *test.documents["id"]]) == list(range(1, 7))
    assert train.label_names == ["Gene 0", "Gene 1"]
    train, test = whole("pnas")
    assert list(train.contexts) == ["year"]
    assert train.n_documents + test.n_documents == 4  # 2000 and 2001 are in both files
    assert whole("mine")[0].documents.columns.tolist() == ["title"]
    assert read_json(corpora / "aua/source.json")["source"] == "own"
    for name in changes["datasets"]:
        assert (
            f"Source: {'own' if name in ('aua', 'mine') else 'real'}, " in (corpora / name / "datasheet.md").read_text()
        )

    ranges = f"results/shards/wikipedia/{DUMP}.xml.bz2/9-ranges.json"
    code, output = snakemake(checkout, ranges, "--configfile", "config/example.yaml", "tiny.yaml")
    assert code != 0
    assert "can be cut into 4 parts at most, but corpora, wikipedia, parts is 9" in output


@pytest.mark.workflow
@pytest.mark.slow
def test_a_corpus_follows_its_stop_words_and_printed_counts(checkout):
    (checkout / "own.csv").write_text("text\n" + "red lake\nblue sea\n" * 10)
    (checkout / "stop.txt").write_text("red\n")
    own = {"file": "own.csv", "text": "text", "stop_words": "stop.txt"}
    configuration = {"datasets": ["mine", "nips", "aua"], "corpora": {"mine": own}}
    (checkout / "own.yaml").write_text(yaml.safe_dump(configuration))
    call = checkout, "corpora", "--configfile", "config/test.yaml", "own.yaml"

    def made(output):
        return set(re.findall(r"Preparing corpus (\w+)", output))

    code, output = snakemake(*call)
    assert (code, made(output)) == (0, {"mine", "nips", "aua"}), output
    words = checkout / "results/corpora/mine/train/vocabulary.txt"
    assert words.read_text().split() == ["blue", "lake", "sea"]
    assert read_json(checkout / "results/corpora/mine/source.json")["files"] == ["own.csv", "stop.txt"]
    (checkout / "stop.txt").write_text("sea\n")
    counts = checkout / "workflow/paper/datasets.csv"
    counts.write_text(re.sub('"1,740"', '"1,741"', counts.read_text()))
    code, output = snakemake(*call)
    assert (code, made(output)) == (0, {"mine", "nips"}), output
    assert words.read_text().split() == ["blue", "lake", "red"]
    assert "| 1,741 | ICML14 |" in (checkout / "results/corpora/nips/datasheet.md").read_text()
    (checkout / "stop.txt").unlink()
    code, output = snakemake(*call)
    assert code == 1
    assert "configuration: corpora, mine: stop_words: 'stop.txt' is not there (the folder of this run is" in output


@pytest.mark.workflow
@pytest.mark.slow
@pytest.mark.skipif(
    not (DATA_FOLDER / "wikipedia").is_dir(), reason=f"the real files are not in {DATA_FOLDER} (set MC2_DATA_FOLDER)"
)
def test_the_data_folder_gives_the_numbers_of_its_manifest(checkout):
    arguments = [
        "--configfile",
        "config/real.yaml",
        "--config",
        f"data_folder={DATA_FOLDER}",
        "datasets=nips,wikipedia",
    ]
    code, output = snakemake(checkout, "corpora", *arguments)
    assert code == 0, output
    tables = {name: (checkout / f"results/corpora/{name}/datasheet.md").read_text() for name in ("nips", "wikipedia")}
    for line in ("| documents | 1,740 |", "| words | 13,649 |", "| tokens | 2,301,375 |", "| author: values | 2,037 |"):
        assert line in tables["nips"]
    assert "in the files: 356; distinct: 241. Counted by their latest version, 227 are articles" in tables["wikipedia"]
    assert "is cut off or damaged after 361 complete records" in tables["wikipedia"]


@pytest.mark.workflow
@pytest.mark.slow
def test_without_data_and_network_a_rule_fails_with_one_sentence(checkout):
    (checkout / "nothing").mkdir()
    arguments = ["--configfile", "config/real.yaml", "--config", "data_folder=nothing", "datasets=nips"]
    target = "results/sources/wikipedia/enwiki-2014-excerpt_testdata_en.bz2"
    code, output = snakemake(checkout, target, *arguments)
    assert code != 0
    sentence = (
        "cannot get enwiki-2014-excerpt_testdata_en.bz2 of dataset wikipedia: "
        "nothing/wikipedia/enwiki-2014-excerpt_testdata_en.bz2 is missing; it has no official address"
    )
    assert f"\nError: {sentence}\n" in output


def config_of(*configurations):
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())

    def merge(old, new):
        for key, value in new.items():
            old[key] = merge(old[key], value) if isinstance(value, dict) and isinstance(old.get(key), dict) else value
        return old

    for changes in configurations:
        merge(config, changes)
    return config


def test_files_of_a_real_corpus_are_in_the_table():
    table = configuration.read_table(ROOT / "config/datasets.tsv", SCHEMAS["datasets"], "file")
    every = [name for name, dataset in DATASETS.items() if dataset.read and name not in ("aua", "mine")]
    real = {"corpora": {name: {"source": "real"} for name in every}}
    configuration.check_files(config_of(real), table, every)
    others = [row for row in table if row["dataset"] != "wikipedia"]
    with pytest.raises(ValueError, match=r"^configuration: corpora, w100: .* has no file of 'wikipedia'$"):
        configuration.check_files(config_of(real), others, ["w100"])
    data_folder = yaml.safe_load((ROOT / "config/real.yaml").read_text())
    configuration.check_files(config_of(data_folder), table, data_folder["datasets"])
    wrong = {"corpora": {"wikipedia": {"source": "real", "writers": ["enwiki-latest-stub-meta-histroy.xml.gz"]}}}
    configuration.check_files(config_of(wrong), table, ["nips"])  # not chosen
    for name in ("wikipedia", "w100"):
        message = rf"corpora, {name}: writers: 'enwiki-latest-stub-meta-histroy.* is not in .* did you mean '.*history"
        with pytest.raises(ValueError, match=message):
            configuration.check_files(config_of(wrong, {"corpora": {"w100": {"source": "real"}}}), table, [name])


def test_without_bsdtar_a_sentence_names_its_package(tmp_path, monkeypatch):
    archive = tmp_path / "features.rar"
    archive.touch()
    monkeypatch.setenv("PATH", "")
    message = f"{archive} is unpacked by the program bsdtar, which is not installed (Debian: libarchive-tools)"
    with pytest.raises(ValueError, match=re.escape(message)):
        rar.unpack(archive, [tmp_path / "BoW_Train_int.dat"])


@pytest.mark.needs("bsdtar")
def test_features_are_unpacked_by_name_whole_or_not_at_all(tmp_path):
    for name in ("BoW_Train_int.dat", "other.dat"):
        (tmp_path / name).write_text(f"{name} 1 2 3\n")
    archive = tmp_path / "features.rar"  # bsdtar reads any format, and writes none of RAR
    subprocess.run(["bsdtar", "-cf", archive, "-C", tmp_path, "BoW_Train_int.dat", "other.dat"], check=True)
    target = tmp_path / "out/BoW_Train_int.dat"
    rar.unpack(archive, [target])
    assert target.read_text() == "BoW_Train_int.dat 1 2 3\n"
    with pytest.raises(ValueError, match=r"features\.rar gives no BoW_Test_int\.dat"):
        rar.unpack(archive, [tmp_path / "out/BoW_Test_int.dat"])
    archive.write_bytes(archive.read_bytes()[:700])
    with pytest.raises(ValueError, match=r"features\.rar gives no BoW_Train_int\.dat: "):
        rar.unpack(archive, [target])
    assert target.read_text() == "BoW_Train_int.dat 1 2 3\n"
    assert np.all([not one.name.endswith(".part") for one in target.parent.iterdir()])
