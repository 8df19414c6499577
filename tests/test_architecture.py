"""The rules of the package's layout (docs/development/architecture.md), read from its source with ``ast``."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import grimp
import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

import mc2core
import mc2papers

PACKAGE, PAPERS = (Path(one.__file__).parent for one in (mc2core, mc2papers))
ROOT = PACKAGE.parents[1]
#: packages of the library from the top floor to the lowest: each may import those of lower floors, and what stands in
#: its own folder
FLOORS = [{"app"}, {"explore"}, {"inference"}, {"models", "posterior"}, {"families"}, {"corpus"}, {"compute"}, {"base"}]
#: packages of the reproduction below all of its others, likewise
PAPERS_FLOORS = [{"baselines"}, {"datasets"}]
#: flat modules: names that users rely on
PUBLIC_MODULES = {"__init__", "__main__", "clustering", "perplexity", "plots", "sklearn"}
LONGEST_FUNCTION, LONGEST_MODULE = 70, 800
MAX_ARGUMENTS = 12
#: functions with more lines than that, docstring not counted, and why; a new one needs a reason as good
LONG_FUNCTIONS: dict[str, str] = {}
#: compiled functions with more positional parameters than that: to be cut
WIDE_KERNELS: set[str] = set()
MODULES = sorted([*PACKAGE.rglob("*.py"), *PAPERS.rglob("*.py")])


def name_of(path):
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def test_imports_go_to_a_lower_floor_or_stay_in_their_folder():
    """Those inside functions and for types too."""
    public = grimp.Layer(*PUBLIC_MODULES - {"__init__"}, independent=False)
    floors = [public, *(grimp.Layer(*floor) for floor in FLOORS)]
    imports = grimp.build_graph("mc2core", "mc2papers", cache_dir=None)
    assert not imports.find_illegal_dependencies_for_layers(floors, containers={"mc2core"})
    above = {one.removeprefix("mc2papers.") for one in imports.find_children("mc2papers")} - set().union(*PAPERS_FLOORS)
    floors = [grimp.Layer(*above, independent=False), *(grimp.Layer(*floor) for floor in PAPERS_FLOORS)]
    assert not imports.find_illegal_dependencies_for_layers(floors, containers={"mc2papers"})


def test_no_files_import_each_other():
    """Nor in a circle of several, inside functions too. Only types may name a class whose methods call the function."""
    imports = grimp.build_graph("mc2core", "mc2papers", cache_dir=None, exclude_type_checking_imports=True)
    number = {name: place for place, name in enumerate(sorted(imports.modules))}
    edges = [(number[one], number[of]) for of in number for one in imports.find_modules_that_directly_import(of)]
    graph = sparse.coo_array((np.ones(len(edges)), np.transpose(edges)), (len(number), len(number)))
    part = csgraph.connected_components(graph, connection="strong")[1]
    assert not [name for name, place in number.items() if np.count_nonzero(part == part[place]) > 1]


def test_the_library_knows_nothing_of_the_papers():
    imports = grimp.build_graph("mc2core", "mc2papers", cache_dir=None)
    imports.squash_module("mc2core")
    imports.squash_module("mc2papers")
    assert imports.find_modules_directly_imported_by("mc2papers") == {"mc2core"}
    assert imports.find_modules_directly_imported_by("mc2core") <= {"mc2core"}
    named = [path for path in PACKAGE.rglob("*.py") if "mc2papers" in path.read_text(encoding="utf-8")]
    assert [name_of(path) for path in named] == ["mc2core.compute.kernels"]  # whose compiled functions are both's


def test_every_package_has_a_floor_and_flat_modules_re_export():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set().union(*FLOORS)
    assert {path.stem for path in PACKAGE.glob("*.py")} == PUBLIC_MODULES
    for name in ("clustering", "perplexity", "plots"):
        tree = ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8"))
        kinds = {type(node) for node in tree.body}
        assert kinds <= {ast.Expr, ast.ImportFrom, ast.Assign}, f"{name}.py holds code of its own"


def test_packages_of_one_engine_are_independent_but_for_starts():
    """SVI may start from a Gibbs chain; no other engine imports another one."""
    inference = PACKAGE / "inference"
    for path in inference.rglob("*.py"):
        own = path.relative_to(inference).parts[0]
        if own not in ("gibbs", "svi", "fastex"):
            continue
        others = set(re.findall(r"mc2core\.inference\.(gibbs|svi|fastex)\b", path.read_text(encoding="utf-8"))) - {own}
        allowed = {"gibbs"} if path.relative_to(inference).as_posix() == "svi/start.py" else set()
        assert others <= allowed, f"{path.relative_to(ROOT)} imports {others}"


def functions():
    """(name, number of lines without the docstring, positional parameters, whether it is compiled) of every one."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                first = node.body[0]
                n_lines = node.end_lineno - node.lineno + 1
                n_lines -= first.end_lineno - first.lineno + 1 if ast.get_docstring(node) else 0
                parameters = len(node.args.posonlyargs) + len(node.args.args)
                decorators = map(ast.unparse, node.decorator_list)
                compiled = any(re.match(r"(numba\.)?((inner_)?kernel|n?jit)\b", one) for one in decorators)
                yield f"{name_of(path)}.{node.name}", n_lines, parameters, compiled


def test_functions_are_short():
    long = {name: n_lines for name, n_lines, _, _ in functions() if n_lines > LONGEST_FUNCTION}
    assert set(long) <= set(LONG_FUNCTIONS), f"cut them at their phases: {set(long) - set(LONG_FUNCTIONS)}"
    assert set(LONG_FUNCTIONS) <= set(long), f"short now, to be taken off the list: {set(LONG_FUNCTIONS) - set(long)}"


def test_modules_are_short():
    long = {name_of(path) for path in MODULES if path.read_text(encoding="utf-8").count("\n") > LONGEST_MODULE}
    assert not long, f"split them into whole ideas: {long}"


def test_kernels_take_named_tuples_rather_than_many_parameters():
    wide = {name for name, _, parameters, compiled in functions() if compiled and parameters > MAX_ARGUMENTS}
    assert wide <= WIDE_KERNELS, f"these take over {MAX_ARGUMENTS} parameters: {wide - WIDE_KERNELS}"
    assert wide >= WIDE_KERNELS, f"to be taken off the list: {WIDE_KERNELS - wide}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_public_names_have_docstrings(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{path.relative_to(ROOT)} has no docstring"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{path.relative_to(ROOT)}: {node.name} has no docstring"


def test_the_names_that_users_rely_on_are_there():
    from mc2core import families, inference, models

    for owner, names in (
        (mc2core, ("Corpus", "Posterior", "fit", "Fit", "clustering", "perplexity")),
        (models, ("MC2", "HDP", "NPTOT", "Mixture")),
        (inference, ("Gibbs", "SVI", "FastEx")),
        (families, ("DirichletCategorical", "NormalGamma", "GammaPoisson")),
        (mc2core.clustering, ("purity", "nmi", "rand_index", "f_score", "variation_of_information", "extended_nmi")),
    ):
        for name in names:
            one = getattr(owner, name)
            assert inspect.getdoc(one), f"{name} has no docstring"


@pytest.mark.parametrize(
    ("code", "needed"),
    [
        ("from mc2core.app.cli import main; sys.argv[1:] = ['--help']; main()", set()),
        ("import mc2core; mc2core.Corpus([[1, 2], [0, 1]]).document_lengths", {"email", "inspect", "numpy", "scipy"}),
        ("import mc2core; mc2core.fit", {"email", "inspect", "numba", "numpy", "scipy"}),
    ],
    ids=["mc2 --help", "a corpus", "mc2core.fit"],
)
def test_what_takes_long_to_load_is_loaded_where_it_is_needed(code, needed):
    """Packages that take a tenth of a second and more each, and what of Python's own doubles a command's start."""
    told = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
    done = subprocess.run([sys.executable, "-c", told + code], capture_output=True, text=True, check=True)
    heavy = {"email", "inspect", "matplotlib", "numba", "numpy", "pandas", "pyarrow", "scipy", "sklearn"}
    assert heavy & set(done.stderr.split()) == needed


def test_the_version_is_that_of_the_distribution():
    assert mc2core.__version__ == metadata.version("mc2core")
    said = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    said += re.findall(r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[:1]
    assert said == [mc2core.__version__] * 2


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        pytest.param("difflib|did you mean", "mc2core.base.checks", id="did you mean"),
        pytest.param(r"± \{|_sd\"\] = ", "mc2papers.report.tables", id="mean and spread"),
        pytest.param(
            r"\"not reproduced\"|\"inconclusive\"|\bClaim\(", "mc2papers.report.claims", id="verdict of a claim"
        ),
    ],
)
def test_what_many_say_is_written_once(pattern, place):
    assert {name_of(path) for path in MODULES if re.search(pattern, path.read_text(encoding="utf-8"))} == {place}


def test_tests_mirror_the_packages():
    """A folder of tests is a folder of a package; helpers of several tests are no tests themselves."""
    tests = ROOT / "tests"
    if not tests.is_dir():
        pytest.skip("the tests of an installed package")
    own = {"mc2core", "mc2papers", "helpers", "workflow", "reliability", "cluster", "fuzz", "__pycache__"}
    assert {folder.name for folder in tests.iterdir() if folder.is_dir()} <= own
    for package in (PACKAGE, PAPERS):
        for folder in (tests / package.name).rglob("*"):
            if folder.is_dir() and folder.name != "__pycache__":
                where = folder.relative_to(tests)
                assert (PACKAGE.parent / where).is_dir(), f"tests/{where} mirrors nothing"


def test_no_test_module_is_imported_by_another():
    """What several tests share is in tests/helpers."""
    tests = ROOT / "tests"
    if not tests.is_dir():
        pytest.skip("the tests of an installed package")
    imports = re.compile(r"^\s*(?:from|import) [^\n]*\btest_\w+", re.MULTILINE)
    named = {str(path.relative_to(tests)) for path in tests.rglob("*.py") if imports.search(path.read_text("utf-8"))}
    assert not named
