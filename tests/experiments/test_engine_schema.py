"""Engines' constructors, their docstrings and the schema of plans say the same of every setting."""

import ast
import inspect
import math

import jsonschema
import pytest
from workflow_calls import ROOT

from mc2core.engines.registry import ENGINES, engine_class, make_engine, settings_of
from mc2core.experiments import engine_schema, plan, schemas
from mc2core.families import FAMILIES

STORED = ROOT / "workflow/schemas/engines.schema.yaml"
SCHEMA = schemas.read(STORED)["properties"]
SETTINGS = [(engine, setting) for engine in ENGINES for setting in settings_of(engine)]


def entries(engine):
    return engine_schema.documented(engine_class(engine).__doc__)


def test_the_stored_schema_is_current():
    written = STORED.read_text(encoding="utf-8")
    assert written == engine_schema.engines_schema(), "python -m mc2core.experiments.engine_schema " + str(STORED)


def test_the_command_writes_the_schema(tmp_path, capsys):
    path = tmp_path / "engines.yaml"
    assert engine_schema.main([str(path)]) == 0
    assert path.read_bytes() == STORED.read_bytes()
    assert engine_schema.main([]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize("engine", ENGINES)
def test_every_argument_is_described_with_its_default(engine):
    parameters = inspect.signature(engine_class(engine)).parameters
    found = entries(engine)
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
    for one in schema.get("enum", ()):
        found += [one, one.upper(), f"{one} "] if isinstance(one, str) else [one, one + 1, str(one), float(one)]
    if "items" in schema:
        found += [[one] for one in candidates(schema["items"])] + [schema["items"]["enum"]]
    for key, inner in schema.get("properties", {}).items():
        for one in candidates(inner["items"]):
            found += [{key: [one, 1.0]}, {key: [1.0, one]}, {key: [one]}, {key: [1.0, 1.0, one]}, {key: one}]
    return found


#: what a setting needs beside it
BESIDE = {"token_contexts": {"kernel": "collapsed", "one_cluster_per_document": True}}


@pytest.mark.parametrize(("engine", "setting"), SETTINGS)
def test_the_schema_refuses_what_the_constructor_refuses(engine, setting):
    schema = SCHEMA[engine]["properties"][setting]
    beside, seen = BESIDE.get(setting, {}), set()
    contexts = {"year": {"family": "normal_gamma"}} if beside else {}
    for value in candidates(schema):
        refused = refusal(make_engine, engine, {setting: value} | beside, contexts)
        by_schema = refusal(schemas.check_values, {setting: value}, SCHEMA[engine], "plan")
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


def test_a_plan_holds_no_default_of_an_engine_or_a_family():
    """What a plan repeats would stay behind when the default changes."""
    for path in (ROOT / "config").glob("*.yaml"):
        whole = plan.read_yaml(path)
        for engine, settings in whole.get("engines", {}).items():
            for setting, value in settings.items():
                assert value != settings_of(engine)[setting], f"{path.name}: {engine}: {setting}"
        for context, settings in whole.get("contexts", {}).items():
            defaults = inspect.signature(FAMILIES[settings.pop("family")]).parameters
            for setting, value in settings.items():
                assert value != defaults[setting].default, f"{path.name}: {context}: {setting}"


def test_what_a_plan_leaves_out_is_the_constructors_default():
    given = {"gibbs": {"kernel": "blocked"}}
    filled = schemas.fill_defaults(given, {"properties": SCHEMA})
    assert filled["gibbs"] == settings_of("gibbs") | {"kernel": "blocked"}
    assert filled["svi"] == settings_of("svi")
    assert filled["fastex"] == settings_of("fastex")


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
        ("bool", {"type": "boolean"}),
        ("float in (0, 1]", {"type": "number", "exclusiveMinimum": 0.0, "maximum": 1.0}),
        ("int in [2, 5) or None", {"type": ["integer", "null"], "minimum": 2, "exclusiveMaximum": 5}),
        ("int in [1, inf)", {"type": "integer", "minimum": 1}),
        ('{"a", 3}', {"enum": ["a", 3]}),
        ('bool or list of {"a"}', {"type": ["boolean", "array"], "items": {"enum": ["a"]}}),
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
        engine_schema.engine_schema("svi")
    with pytest.raises(ValueError, match="'bits : int' is not of the form"):
        engine_schema.documented("A.\n\nParameters\n----------\nbits : int\n    Length.\n")


def test_the_first_sentence():
    text = 'Rates, see :mod:`a.b` (et al. (2006)); None is ``1``. Then more. "x" is'
    assert engine_schema.first_sentence(text) == "Rates, see a.b (et al. (2006)); null is 1."
