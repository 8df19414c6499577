"""Find the input files of each corpus: functions that convert names in the configuration to paths in results/."""


def fetched(dataset, names):
    return [
        f"results/sources/{configuration.FILES_OF.get(dataset, dataset)}/{name}"
        for name in names
    ]


def given_vocabulary(dataset):
    """Return the word list of a corpus; [] if its configuration has a number of words instead."""
    name = config["corpora"][dataset]["vocabulary"]
    return fetched(dataset, [name]) if isinstance(name, str) else []


def dump_shards():
    """Return the shards of the Wikipedia dumps; a multistream dump has several shards, one per part."""
    wikipedia = config["corpora"]["wikipedia"]
    parts = {
        name: wikipedia["parts"] if "multistream" in name else 1
        for name in wikipedia["files"]
    }
    return [
        f"results/shards/wikipedia/{name}/{part}-of-{n}"
        for name, n in parts.items()
        for part in range(n)
    ]


def wikipedia_files():
    wikipedia = config["corpora"]["wikipedia"]
    files = {"shards": dump_shards(), "vocabulary": given_vocabulary("wikipedia")}
    if "writer" in wikipedia["contexts"]:
        files["writers"] = [
            f"results/shards/wikipedia/{name}.npz" for name in wikipedia["writers"]
        ]
    if "topic" in wikipedia["contexts"]:
        files["links"] = fetched("wikipedia", [wikipedia["links"]])
        files["targets"] = fetched(
            "wikipedia", [wikipedia["targets"]] if wikipedia["targets"] else []
        )
    return files


def citation_files(dataset):
    """Return the shards of the citation files in the configuration; the baseline must be listed first."""
    names = config["corpora"][dataset]["files"]
    if names == "eutilities":
        names = [f"pnas-{year}.xml.gz" for year in pnas_years()]
    if names == "baseline":
        names = [
            source.name
            for source in read_catalogue(checkpoints.list_baseline.get().output[0])
        ]
    return {
        "shards": [f"results/shards/{dataset}/{name}" for name in names],
        "vocabulary": given_vocabulary(dataset),
    }


def feature_files():
    """Return the files of NUS-WIDE; the RAR archive of features is replaced by the files that are unpacked from it."""
    files = fetched("nuswide", config["corpora"]["nuswide"]["files"])
    plain = [name for name in files if not name.endswith(".rar")]
    return {
        "files": plain
        + (list(rules.unpack_features.output) if len(plain) < len(files) else [])
    }


def pnas_years():
    """Return the years for which citations of PNAS are fetched."""
    first, last = (
        config["corpora"]["pnas"][bound] for bound in ("first_year", "last_year")
    )
    if first is None or last is None or first > last:
        raise WorkflowError(
            "corpora, pnas: files 'eutilities' needs first_year and last_year, in this order"
        )
    return range(first, last + 1)


def year_before(wildcards):
    """Return the file of the previous year, which must exist first; its age does not matter."""
    year = int(wildcards.year) - 1
    return (
        ancient(f"results/sources/pubmed/pnas-{year}.xml.gz")
        if year in pnas_years()
        else []
    )


def usage_files():
    return {"files": [local(config["corpora"]["aua"]["folder"])]}


def table_files(dataset):
    """Return all files of a dataset in datasets.tsv."""
    return {
        "files": fetched(
            dataset,
            [row["file"] for row in CONFIGURATION.sources if row["dataset"] == dataset],
        )
    }


def own_files():
    """Return the files of the user. They are local, so the prefix of a module does not change their paths."""
    paths = configuration.own_paths(config["corpora"]["mine"])
    return {
        "files" if key == "file" else key: [local(path)]
        for key, path in paths.items()
        if path
    }


# input files of datasets that are not read from all their files in datasets.tsv
FILES = {
    "nuswide": feature_files,
    "wikipedia": wikipedia_files,
    "pubmed": lambda: citation_files("pubmed"),
    "pnas": lambda: citation_files("pnas"),
    "w100": lambda: {"shards": dump_shards()},
    "w1000": lambda: {"shards": dump_shards()},
    "aua": usage_files,
    "mine": own_files,
}


def corpus_files(wildcards):
    """Return the input files of a corpus by role; a simulated corpus has none."""
    dataset = wildcards.dataset
    if config["corpora"][dataset]["source"] == "simulated":
        return {}
    return FILES.get(dataset, partial(table_files, dataset))()


def printed_counts(wildcards):
    """Return the lines with the papers' counts of a corpus, so that the corpus is made again only if they change."""
    lines = own_part("workflow/paper/datasets.csv").read_text(encoding="utf-8")
    return [
        line for line in lines.split("\n") if line.startswith(f"{wildcards.dataset},")
    ]


def corpus_memory(wildcards):
    """Return the memory in MB; the corpus of a complete dump has several GB."""
    whole = config["corpora"][wildcards.dataset]["source"] == "real"
    return (
        16000
        if whole
        and wildcards.dataset in ("wikipedia", "w100", "w1000", "pubmed", "pnas")
        else 2000
    )


def parts_index(wildcards):
    """Return the file with the byte ranges of a dump that is parsed in parts; [] for a dump in one part."""
    whole = wildcards.parts == "1"
    return (
        []
        if whole
        else f"results/shards/wikipedia/{wildcards.file}/{wildcards.parts}-ranges.json"
    )


def citation_selection(wildcards):
    """Return the rules in the configuration that select the citations of a corpus."""
    corpus = config["corpora"][wildcards.citations]
    return {
        name: corpus[name] for name in ("first_year", "last_year", "abstract", "mesh")
    }
