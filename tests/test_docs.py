"""The API reference names what is there, and its docstrings say parameters that the signatures have."""

import doctest
import importlib
import inspect
import operator
import re
import runpy
from types import SimpleNamespace

import pytest
from helpers.paths import ROOT

import mc2core
from mc2core.app.cli import main as mc2
from mc2core.families import FAMILIES
from mc2papers.cli import main as mc2papers


def named():
    """Objects of ``docs/api``, by their full names."""
    found = {}
    for page in sorted((ROOT / "docs/api").glob("*.rst")):
        module = ""
        for directive, name in re.findall(r"^\.\. (currentmodule|auto\w+):: ([\w.]+)", page.read_text(), re.M):
            if directive == "currentmodule":
                module = f"{name}."
            elif directive != "automodule":
                full = name if name.startswith("mc2core.") else module + name
                home, _, last = full.rpartition(".")
                found[full] = getattr(importlib.import_module(home), last)
        for name, members in re.findall(r"^\.\. automodule:: ([\w.]+)\n +:members: (.*)", page.read_text(), re.M):
            found |= {f"{name}.{one}": getattr(importlib.import_module(name), one) for one in members.split(", ")}
    return found


def test_every_family_is_described_where_users_look_for_it(capsys):
    pages = [(ROOT / f"docs/{name}.md").read_text() for name in ("model", "how_to/contexts")]
    with pytest.raises(SystemExit):
        mc2(["fit", "--help"])
    words = re.findall(r"\w+", capsys.readouterr().out)
    for name, family in FAMILIES.items():
        assert all(f"`{name}`" in page for page in pages), name
        assert f"mc2core.families.{family.__name__}" in named(), name
        assert name in words, name


def functions(one):
    """``one`` and, of a class, its public methods."""
    yield one
    if inspect.isclass(one):
        yield from (
            getattr(one, name) for name in vars(one) if not name.startswith("_") and callable(getattr(one, name))
        )


@pytest.mark.parametrize("name", named())
def test_docstrings_say_parameters_that_are_there(name):
    for one in functions(named()[name]):
        said = re.search(r"^Parameters\n-+\n(.*?)(?=^[A-Z]\w+\n-{3,}$|\Z)", inspect.getdoc(one) or "", re.M | re.S)
        if said is None:
            continue
        entries = [line.partition(" : ")[0] for line in said[1].splitlines() if line and not line[0].isspace()]
        names = {name.strip().lstrip("*") for entry in entries for name in entry.split(",")}
        has = inspect.signature(one).parameters
        assert names <= set(has), (one, names - set(has))


def test_signatures_in_the_reference_are_those_of_the_code():
    """Those that a reader sees without building the site."""
    pages = "".join((ROOT / f"docs/api/{name}.rst").read_text() for name in ("corpus", "fit"))
    written = re.findall(r"^    ((?:Corpus\.)?\w+)(\(\n.*?^    \))$", pages, re.M | re.S)
    assert {"Corpus.from_texts", "fit"} <= {name for name, _ in written}
    for name, parameters in written:
        exec(f"def said{parameters}: ...", scope := {})
        has = inspect.signature(operator.attrgetter(name)(mc2core))
        plain = [one.replace(annotation=one.empty) for one in has.parameters.values()]
        assert str(inspect.signature(scope["said"])) == str(inspect.Signature(plain)), name


@pytest.mark.parametrize(("main", "program", "least"), [(mc2, "mc2", 6), (mc2papers, "mc2papers", 3)])
def test_the_reference_has_all_commands(capsys, main, program, least):
    with pytest.raises(SystemExit):
        main(["--help"])
    commands = re.findall(r"^    (\w+) ", capsys.readouterr().out.partition("commands:")[2], re.M)
    told = re.findall(rf"^\.\. command:: {program} (\w+)$", (ROOT / "docs/api/commands.rst").read_text(), re.M)
    assert len(commands) >= least
    assert set(commands) == set(told)


def test_what_documents_import_is_public():
    page = (ROOT / "docs/api/compatibility.md").read_text(encoding="utf-8")
    public = re.findall(r"`(mc2core[\w.]*)`", re.search(r"^\| Python \| the names .*$", page, re.M)[0])
    documents = [ROOT / "README.md", *(path for kind in ("md", "py") for path in (ROOT / "docs").rglob(f"*.{kind}"))]
    for path in documents:
        if {"notes", "gallery"} & {*path.parts}:
            continue
        for module, names in re.findall(r"^from (mc2core[\w.]*) import (.+)$", path.read_text(encoding="utf-8"), re.M):
            assert module in public, (path, module)
            assert {*names.split(", ")} <= {*importlib.import_module(module).__all__}, (path, names)
    assert all(importlib.import_module(name).__all__ for name in public)


def test_the_reference_has_all_public_names():
    """Of what is imported in examples; loose functions of families make them from configuration."""
    homes = (mc2core, *(importlib.import_module(f"mc2core.{name}") for name in ("models", "families", "inference")))
    public = [getattr(home, name) for home in homes for name in home.__all__]
    classes = {one for one in public if inspect.isclass(one)} | {mc2core.fit}
    assert classes <= set(named().values())


#: what users begin with; the others may have an example
FIRST = [
    "mc2core.Corpus", "mc2core.fit", "mc2core.Posterior", "mc2core.guide", "mc2core.plots", "mc2core.models.MC2",
    "mc2core.models.HDP", "mc2core.models.Mixture", "mc2core.inference.Gibbs", "mc2core.inference.SVI",
    "mc2core.inference.FastEx", "mc2core.inference.Stream",
]  # fmt: skip


@pytest.mark.parametrize("name", FIRST)
def test_examples_of_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    home, _, last = name.rpartition(".")
    one = getattr(importlib.import_module(home), last)
    found = [test for test in doctest.DocTestFinder(recurse=inspect.isclass(one)).find(one, name) if test.examples]
    assert found
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert [runner.run(test).failed for test in found] == [0] * len(found)


def test_the_table_of_models_and_engines_is_that_of_the_guide():
    from mc2core.explore import guide

    assert guide.table() in (ROOT / "docs/how_to/choosing_model.md").read_text(encoding="utf-8")


def test_the_calls_of_the_guide_are_possible_as_printed():
    """Each engine supports its model, and every name and command of the steps exists."""
    from mc2core import inference, models, plots
    from mc2core.explore import guide
    from mc2core.inference.registry import engine_class, engine_for

    def fit(corpus, model=None, engine=None):
        model = model or models.MC2()
        kind = engine_class(engine_for(type(model)))
        engine = engine or kind(**kind.defaults_for(type(model)))
        engine.supports(model)
        return type(model).__name__, type(engine).__name__

    corpus = mc2core.Corpus.from_texts(["lake boat", "star moon"], {"year": [1990, 1991]})
    engines = {name: getattr(inference, name) for name in inference.__all__}
    known = {**vars(models), **engines, "Corpus": mc2core.Corpus, "corpus": corpus, "plots": plots}
    known |= {"mc2core": SimpleNamespace(fit=fit, plots=plots), "values": [[1.0], [2.0]], "document": [0, 1]}
    for _, model, engine, call in guide.goals():
        found = eval(call.strip("`"), known)
        if call.startswith("`mc2core.fit"):
            assert [one.partition("(")[0].strip("`") for one in (model, engine)] == list(found)
    for name in re.findall(r"\b(?:Corpus|plots|mc2core)\.\w+", guide._STEPS):
        assert eval(name, known), name
    for name in re.findall(r"\bfit\.(\w+)", guide._STEPS):
        assert hasattr(mc2core.Fit, name) or name == "posterior", name
    for name in re.findall(r"\bmc2 (\w+)", guide._STEPS):
        with pytest.raises(SystemExit) as ended:
            mc2([name, "--help"])
        assert ended.value.code == 0, name


def test_the_long_description_has_no_part_of_a_picture(monkeypatch):
    """Neither its caption, which may have several lines, nor its address; bold text at the start of a line stays."""
    made = {}
    monkeypatch.setattr("setuptools.setup", lambda **settings: made.update(settings))
    runpy.run_path(str(ROOT / "setup.py"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (caption,) = re.findall(r"^!\[.*\n\n\*([^[(]*)", readme, re.M)
    assert caption not in made["long_description"]
    assert ".png" not in made["long_description"]
    assert made["long_description"].count("**") == readme.count("**")


def test_tables_of_the_site_show_columns_of_their_files():
    pytest.importorskip("sphinx", reason="Sphinx, of the extra docs, is not installed")
    cells = runpy.run_path(str(ROOT / "docs/tables.py"))["cells"]
    found = {}
    for page in (ROOT / "docs").rglob("*.md"):
        for file, columns in re.findall(
            r"^```{data-table} (.*)\n:columns: (.*)$", page.read_text(encoding="utf-8"), re.M
        ):
            found[page.name] = cells(page.parent / file, columns)
    assert set(found) == {"claims.md", "fidelity.md"}
    assert all(len(rows) > 100 and {len(row) for row in rows} == {7} for rows in found.values())
    assert found["claims.md"][0][4] == "dataset, data"
    assert "NIPS; real" in [row[4] for row in found["claims.md"]]
