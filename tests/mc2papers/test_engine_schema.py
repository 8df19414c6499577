"""Constructors of engines and baselines, their docstrings and the schema of plans say the same of every setting."""

import ast
import inspect
import math

import jsonschema
import pytest
from helpers.workflow_calls import ROOT

from mc2core.families import FAMILIES
from mc2core.inference.registry import ENGINES, engine_class, make_engine, settings_of
from mc2papers import engine_schema, plan, schemas
from mc2papers.baselines import registry as baselines

STORED = ROOT / "workflow/schemas"
FILES = ("engines.schema.yaml", "baselines.schema.yaml")
#: by the part of a plan
SCHEMAS = {file.partition(".")[0]: schemas.read(STORED / file)["properties"] for file in FILES}
SCHEMA = SCHEMAS["engines"] | SCHEMAS["baselines"]
KINDS = {engine: engine_class(engine) for engine in ENGINES} | baselines.BASELINES
DEFAULTS = {
    "engines": {engine: settings_of(engine) for engine in ENGINES},
    "baselines": {name: baselines.settings_of(name) for name in baselines.BASELINES},
}
SETTINGS = [(name, setting) for part in DEFAULTS.values() for name, settings in part.items() for setting in settings]


def make(name, settings, contexts):
    return make_engine(name, settings, contexts) if name in ENGINES else baselines.make_baseline(name, settings)


def test_the_stored_schemas_are_current():
    files = engine_schema.schema_files()
    assert set(files) == set(FILES)
    for name, text in files.items():
        written = (STORED / name).read_text(encoding="utf-8")
        assert written == text, "python -m mc2papers.engine_schema workflow/schemas"


def test_the_command_writes_the_schemas(tmp_path, capsys):
    assert engine_schema.main([str(tmp_path)]) == 0
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (STORED / name).read_bytes()
    for arguments in ([], [str(tmp_path / FILES[0])]):
        assert engine_schema.main(arguments) == 2
        assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize("engine", KINDS)
def test_every_argument_is_described_with_its_default(engine):
    parameters = inspect.signature(KINDS[engine]).parameters
    found = engine_schema.documented(KINDS[engine].__doc__)
    assert set(found) == set(parameters)
    for name, entry in found.items():
        assert entry.text.endswith("."), name
        written, default = ast.literal_eval(entry.default), parameters[name].default
        assert (type(written), written) == (type(default), default), name


def candidates(schema):
    """Values at, just within and just beyond every bound of a schema, and values of all types."""
    found = [None, True, False, "", "x", [], {}, [1], ["x"], {"x": 1}, -1, 0, 1, 2, 0.5, 1.5, 3.0, -1e-9, math.nan]
    found += [math.inf, -math.inf, 10**400, 2**31 - 1, 2**31, 2**63, 1e300]
    for bound in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
        if bound in schema:
            limit = schema[bound]
            near = (limit - 1, limit + 1) if isinstance(limit, int) else ()
            found += [limit, math.nextafter(limit, -math.inf), math.nextafter(limit, math.inf), *near]
    for one in schema.get("pattern", "")[2:-2].split("|"):
        found += [one, one.upper(), f"{one} "]
    for one in schema.get("enum", ()):
        found += [one, one.upper(), f"{one} "] if isinstance(one, str) else [one, one + 1, str(one), float(one)]
    if "items" in schema:
        found += [[one] for one in candidates(schema["items"])] + [schema["items"].get("enum", [1, 2]), [1, 1.0]]
    for key, inner in schema.get("properties", {}).items():
        for one in candidates(inner["items"]):
            found += [{key: [one, 1.0]}, {key: [1.0, one]}, {key: [one]}, {key: [1.0, 1.0, one]}, {key: one}]
    return found


#: what Python has a number for and plans a word, "inf"
IN_PYTHON_ALONE = {"document_concentration": math.inf}
#: what a setting needs beside it
BESIDE = {
    "token_contexts": {"kernel": "collapsed", "one_cluster_per_document": True},
    "global_step": {"n_tables": 2},
}


@pytest.mark.parametrize(("engine", "setting"), SETTINGS)
def test_the_schema_refuses_what_the_constructor_refuses(engine, setting):
    schema = SCHEMA[engine]["properties"][setting]
    beside, seen = BESIDE.get(setting, {}), set()
    contexts = {"year": {"family": "normal_gamma"}} if setting == "token_contexts" else {}
    for value in candidates(schema):
        refused = refusal(make, engine, {setting: value} | beside, contexts)
        by_schema = refusal(schemas.check_values, {setting: value}, SCHEMA[engine], "plan")
        if setting in IN_PYTHON_ALONE and value == IN_PYTHON_ALONE[setting]:
            assert by_schema
            assert not refused
            continue
        assert bool(refused) == bool(by_schema), f"{value!r}: {refused or 'accepted'}, but by the schema: {by_schema}"
        seen.add(bool(refused))
    assert seen == {True, False}


def refusal(function, *arguments):
    """What a ValueError says; "" if there is none."""
    try:
        function(*arguments)
    except ValueError as error:
        return str(error)
    return ""


def test_schemas_are_schemas():
    jsonschema.Draft202012Validator.check_schema(schemas.read(ROOT / "workflow/schemas/config.schema.yaml"))


def test_a_plan_holds_no_default_of_an_engine_a_baseline_or_a_family():
    """What a plan repeats would stay behind when the default changes."""
    for path in (ROOT / "config").glob("*.yaml"):
        whole = plan.read_yaml(path)
        for part, defaults in DEFAULTS.items():
            for engine, settings in whole.get(part, {}).items():
                for setting, value in settings.items():
                    assert value != plain(defaults[engine][setting]), f"{path.name}: {engine}: {setting}"
        for context, settings in whole.get("contexts", {}).items():
            defaults = inspect.signature(FAMILIES[settings.pop("family")]).parameters
            for setting, value in settings.items():
                assert value != defaults[setting].default, f"{path.name}: {context}: {setting}"


def plain(value):
    """As YAML holds it."""
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize(
    ("part", "given"), [("engines", {"gibbs": {"kernel": "blocked"}}), ("baselines", {"nmf": {"n_clusters": [3]}})]
)
def test_what_a_plan_leaves_out_is_the_constructors_default(part, given):
    expected = {
        name: {setting: plain(value) for setting, value in settings.items()} | given.get(name, {})
        for name, settings in DEFAULTS[part].items()
    }
    assert schemas.fill_defaults(given, {"properties": SCHEMAS[part]}) == expected


def test_defaults_of_families_are_those_of_their_constructors():
    schema = schemas.read(ROOT / "workflow/schemas/config.schema.yaml")["definitions"]
    described = schema["family"]["properties"]
    for name, family in FAMILIES.items():
        for setting, parameter in inspect.signature(family).parameters.items():
            one = described[setting]
            default = one.get("default", schema["positive"]["default"])
            assert default == parameter.default, f"{name}: {setting}"


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("list of int", {"type": "array", "items": {"type": "integer"}}),
        ("list of different int", {"type": "array", "items": {"type": "integer"}, "minItems": 1, "uniqueItems": True}),
        ("bool", {"type": "boolean"}),
        ("float in (0, 1]", {"type": "number", "exclusiveMinimum": 0.0, "maximum": 1.0}),
        ("int in [2, 5) or None", {"type": ["integer", "null"], "minimum": 2, "exclusiveMaximum": 5}),
        ("int in [1, inf)", {"type": "integer", "minimum": 1}),
        ('{"a", 3}', {"enum": ["a", 3]}),
        ('bool or list of {"a"}', {"type": ["boolean", "array"], "items": {"enum": ["a"]}}),
        ('int or "all" or "no"', {"type": ["string", "integer"], "pattern": "^(all|no)$"}),
        ("pair of int", {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer"}}),
    ],
)
def test_types_of_docstrings(kind, schema):
    assert engine_schema.schema_of_type(kind) == schema


@pytest.mark.parametrize("kind", ["number", "int >= 1", "float in [0, 1", '{"a"} or None', "dict of int", ""])
def test_types_that_are_none_are_refused(kind):
    with pytest.raises(ValueError, match="type "):
        engine_schema.schema_of_type(kind)


def test_an_argument_that_is_not_described_is_refused(monkeypatch):
    monkeypatch.setattr(
        engine_class("svi"), "__doc__", "SVI.\n\nParameters\n----------\nn_clusters : int, default 40\n"
    )
    with pytest.raises(ValueError, match="SVI: 'n_tables' is not described"):
        engine_schema.settings_schema(engine_class("svi"), settings_of("svi"))
    with pytest.raises(ValueError, match="'bits : int' is not of the form"):
        engine_schema.documented("A.\n\nParameters\n----------\nbits : int\n    Length.\n")


def test_the_first_sentence():
    text = 'Rates, see :mod:`a.b` (et al. (2006)); None is ``1``. Then more. "x" is'
    assert engine_schema.first_sentence(text) == "Rates, see a.b (et al. (2006)); null is 1."


def test_numbers_that_snakemake_leaves_as_text_are_read_beside_words():
    schema = {"properties": {"document_concentration": SCHEMA["gibbs"]["properties"]["document_concentration"]}}
    for given, wanted in (("1e-2", 0.01), ("3", 3), ("learn", "learn"), ("inf", "inf"), (2.5, 2.5)):
        assert schemas.read_numbers({"document_concentration": given}, schema)["document_concentration"] == wanted
