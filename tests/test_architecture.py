"""The rules of the package's layout (docs/architecture.md), read from its source with ``ast``."""

import ast
import inspect
import re
from pathlib import Path

import grimp
import pytest

import mc2core

PACKAGE = Path(mc2core.__file__).parent
ROOT = PACKAGE.parents[1]
#: packages from the top floor to the lowest: each may import those of lower floors and what stands in its own folder
FLOORS = [
    {"app"},
    {"explore", "experiments"},
    {"engines"},
    {"model"},
    {"families", "sources"},
    {"corpus"},
    {"compute"},
    {"base"},
]
#: flat modules: names that users rely on, and nothing of their own
PUBLIC_MODULES = {"__init__", "__main__", "clustering", "perplexity", "sklearn"}
LONGEST_FUNCTION = 70
MOST_ARGUMENTS = 12
#: functions with more lines than that, docstring not counted, and why; a new one needs a reason as good
LONG_FUNCTIONS: dict[str, str] = {}
#: compiled functions with more positional parameters than that: to be cut
WIDE_KERNELS: set[str] = set()
MODULES = sorted(PACKAGE.rglob("*.py"))


def name_of(path):
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def test_imports_go_to_a_lower_floor_or_stay_in_their_folder():
    """Those inside functions and for types too."""
    public = grimp.Layer(*PUBLIC_MODULES - {"__init__"}, independent=False)
    floors = [public, *(grimp.Layer(*floor) for floor in FLOORS)]
    imports = grimp.build_graph("mc2core", cache_dir=None)
    assert not imports.find_illegal_dependencies_for_layers(floors, containers={"mc2core"})


def test_every_package_has_a_floor_and_flat_modules_only_pass_on_names():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set().union(*FLOORS)
    assert {path.stem for path in PACKAGE.glob("*.py")} == PUBLIC_MODULES
    for name in ("clustering", "perplexity", "sklearn"):
        tree = ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8"))
        kinds = {type(node) for node in tree.body}
        assert kinds <= {ast.Expr, ast.ImportFrom, ast.Assign}, f"{name}.py holds code of its own"


def test_packages_of_one_engine_do_not_know_each_other_but_for_starts():
    """SVI may start from a Gibbs chain; no other engine imports another one."""
    engines = PACKAGE / "engines"
    for path in engines.rglob("*.py"):
        own = path.relative_to(engines).parts[0]
        if own not in ("gibbs", "svi", "fastex"):
            continue
        others = set(re.findall(r"mc2core\.engines\.(gibbs|svi|fastex)\b", path.read_text(encoding="utf-8"))) - {own}
        allowed = {"gibbs"} if path.relative_to(engines).as_posix() == "svi/start.py" else set()
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
                compiled = any(re.match(r"(numba\.)?(kernel|n?jit)\b", ast.unparse(one)) for one in node.decorator_list)
                yield f"{name_of(path)}.{node.name}", n_lines, parameters, compiled


def test_functions_are_short():
    long = {name: n_lines for name, n_lines, _, _ in functions() if n_lines > LONGEST_FUNCTION}
    assert set(long) <= set(LONG_FUNCTIONS), f"cut them at their phases: {set(long) - set(LONG_FUNCTIONS)}"
    assert set(LONG_FUNCTIONS) <= set(long), f"short now, to be taken off the list: {set(LONG_FUNCTIONS) - set(long)}"


def test_kernels_take_named_tuples_rather_than_many_parameters():
    wide = {name for name, _, parameters, compiled in functions() if compiled and parameters > MOST_ARGUMENTS}
    assert wide <= WIDE_KERNELS, f"these take over {MOST_ARGUMENTS} parameters: {wide - WIDE_KERNELS}"
    assert wide >= WIDE_KERNELS, f"to be taken off the list: {WIDE_KERNELS - wide}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_public_names_have_docstrings(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{path.relative_to(ROOT)} has no docstring"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{path.relative_to(ROOT)}: {node.name} has no docstring"


def test_the_names_that_users_rely_on_are_there():
    from mc2core import engines, families

    for owner, names in (
        (mc2core, ("Corpus", "Model", "fit", "Fit", "clustering", "perplexity")),
        (engines, ("Gibbs", "SVI", "FastEx")),
        (families, ("DirichletCategorical", "NormalGamma", "GammaPoisson")),
        (
            mc2core.clustering,
            ("purity", "nmi", "rand_index", "f_score", "variation_of_information", "extended_nmi"),
        ),
    ):
        for name in names:
            one = getattr(owner, name)
            assert inspect.getdoc(one), f"{name} has no docstring"


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        pytest.param("difflib|did you mean", "base.checks", id="did you mean"),
        pytest.param(r"± \{|_sd\"\] = ", "experiments.report.tables", id="mean and spread"),
        pytest.param(
            r"\"does not hold\"|\"cannot be told\"|\bClaim\(", "experiments.report.claims", id="verdict of a claim"
        ),
    ],
)
def test_what_many_say_is_written_once(pattern, place):
    assert {name_of(path) for path in MODULES if re.search(pattern, path.read_text(encoding="utf-8"))} == {place}


def test_tests_mirror_the_package():
    """A folder of tests is a folder of the package; helpers of several tests are no tests themselves."""
    tests = ROOT / "tests"
    if not tests.is_dir():
        pytest.skip("the tests of an installed package")
    own = {"workflow", "reliability", "cluster", "fuzz", "helpers", "__pycache__"}
    for folder in tests.iterdir():
        if folder.is_dir() and folder.name not in own:
            assert (PACKAGE / folder.name).is_dir(), f"tests/{folder.name} mirrors nothing"
