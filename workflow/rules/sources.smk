"""What each corpus is made from: names in the configuration as files in results/."""


def fetched(dataset, names):
    return [
        f"results/sources/{configuration.FILES_OF.get(dataset, dataset)}/{name}"
        for name in names
    ]


def given_vocabulary(dataset):
    """The word list of a corpus, if its configuration names one and not a number of words."""
    name = config["corpora"][dataset]["vocabulary"]
    return fetched(dataset, [name]) if isinstance(name, str) else []


def dump_shards():
    """Shards of the Wikipedia dumps: multistream ones in parts, by their index."""
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
    """Shards of the citations that the configuration names; of the whole baseline after its listing is there."""
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
    """Files of NUS-WIDE; for the archive of features, which is no zip, what is unpacked from it."""
    files = fetched("nuswide", config["corpora"]["nuswide"]["files"])
    plain = [name for name in files if not name.endswith(".rar")]
    return {
        "files": plain
        + (list(rules.unpack_features.output) if len(plain) < len(files) else [])
    }


def pnas_years():
    """The years of PNAS to be fetched one by one."""
    first, last = (
        config["corpora"]["pnas"][bound] for bound in ("first_year", "last_year")
    )
    if first is None or last is None or first > last:
        raise WorkflowError(
            "corpora, pnas: files 'eutilities' needs first_year and last_year, in this order"
        )
    return range(first, last + 1)


def year_before(wildcards):
    """The file that has to be there first, whatever its age."""
    year = int(wildcards.year) - 1
    return (
        ancient(f"results/sources/pubmed/pnas-{year}.xml.gz")
        if year in pnas_years()
        else []
    )


def usage_files():
    return {"files": [local(config["corpora"]["aua"]["folder"])]}


def table_files(dataset):
    """All files that datasets.tsv has of a dataset."""
    return {
        "files": fetched(
            dataset,
            [row["file"] for row in CONFIGURATION.sources if row["dataset"] == dataset],
        )
    }


def own_files():
    """Files of the user; local ones: where a module puts its files (its prefix) does not matter for them."""
    paths = configuration.own_paths(config["corpora"]["mine"])
    return {
        "files" if key == "file" else key: [local(path)]
        for key, path in paths.items()
        if path
    }


# datasets whose corpora are not read from all their files of datasets.tsv
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
    """Input files of a corpus by role: none for a simulated one."""
    dataset = wildcards.dataset
    if config["corpora"][dataset]["source"] == "simulated":
        return {}
    return FILES.get(dataset, partial(table_files, dataset))()


def printed_counts(wildcards):
    """The lines of the papers' counts on a corpus, which is made again where these change, and not where others do."""
    lines = own_part("workflow/paper/datasets.csv").read_text(encoding="utf-8")
    return [
        line for line in lines.split("\n") if line.startswith(f"{wildcards.dataset},")
    ]


def corpus_memory(wildcards):
    """MB: whole dumps gather into a corpus of several GB."""
    whole = config["corpora"][wildcards.dataset]["source"] == "real"
    return (
        16000
        if whole
        and wildcards.dataset in ("wikipedia", "w100", "w1000", "pubmed", "pnas")
        else 2000
    )


def parts_index(wildcards):
    """The ranges of a dump that is parsed in parts."""
    whole = wildcards.parts == "1"
    return (
        []
        if whole
        else f"results/shards/wikipedia/{wildcards.file}/{wildcards.parts}-ranges.json"
    )


def citation_selection(wildcards):
    """Which citations become documents, as the configuration of their corpus says."""
    corpus = config["corpora"][wildcards.citations]
    return {
        name: corpus[name] for name in ("first_year", "last_year", "abstract", "mesh")
    }
