"""Constructors of models, engines and baselines take and refuse what their docstrings say, and configurations repeat no
default.

A docstring has for each argument that a configuration may set a line such as

    bits : {8, 16, 32, 64, 128, 256}, default 128

A type is ``int``, ``float``, ``bool``, ``None``, ``{...}`` with the values allowed, ``list of ...``,
``list of different ...`` (at least one), ``pair of ...``, ``dict of {...} to ...``, a word in quotes, or some of them
with ``or`` between; numbers may have a range, as in ``float in (0, 1]``.
"""

import ast
import inspect
import math
import re

import jsonschema
import pytest
from helpers.workflow_calls import ROOT

from mc2core.families import FAMILIES
from mc2core.inference.registry import ENGINES, MODELS, engine_class, model_class
from mc2papers import configuration
from mc2papers.baselines.registry import BASELINES

KINDS = {
    "models": {name: model_class(name) for name in MODELS},
    "engines": {name: engine_class(name) for name in ENGINES},
    "baselines": BASELINES,
}
CLASSES = {name: kind for part in KINDS.values() for name, kind in part.items()}
SETTINGS = [
    (name, setting) for name, kind in CLASSES.items() for setting in inspect.signature(kind).parameters
    if setting not in ("contexts", "content")
]  # fmt: skip


def documented(docstring):
    """``{argument: (type, default or None, text)}`` of the section Parameters."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n|\Z)", inspect.cleandoc(docstring), re.S | re.M)
    entries = {}
    for block in re.split(r"\n(?=\S)", section[1]):
        head, _, text = block.partition("\n")
        name, kind, default = re.fullmatch(r"(\w+) : (.+?)(?:, default (.+))?", head).groups()
        entries[name] = kind, default, " ".join(text.split())
    return entries


@pytest.mark.parametrize("name", CLASSES)
def test_every_argument_is_described_with_its_default(name):
    parameters = inspect.signature(CLASSES[name]).parameters
    found = documented(CLASSES[name].__doc__) if parameters else {}
    assert list(found) == list(parameters)
    for argument, (_, default, text) in found.items():
        assert text.endswith("."), argument
        if default is None:
            assert parameters[argument].default is inspect.Parameter.empty, argument
            continue
        written, usual = ast.literal_eval(default), parameters[argument].default
        assert (type(written), written) == (type(usual), usual), argument


# -- types of docstrings as JSON Schemas ---------------------------------------------------------------------------
def schema_of_type(kind):
    schema, types = {}, []
    words = re.findall(r'(?<= or )"(\w+)"', f" or {kind}") if "{" not in kind else []
    if words:
        types, schema["pattern"] = ["string"], f"^({'|'.join(words)})$"
    for part in kind.split(" or "):
        if part.strip('"') in words:
            continue
        one = schema_of_part(part)
        types += [one.pop("type")] if "type" in one else []
        schema |= one
    return ({"type": types} if types else {}) | schema


def schema_of_part(kind):
    name, _, rest = kind.partition(" of ")
    if kind in ("bool", "None"):
        return {"type": {"bool": "boolean", "None": "null"}[kind]}
    if match := re.fullmatch(r"(int|float)(?: in ([\[(])(\S+), (\S+)([\])]))?", kind):
        return schema_of_number(*match.groups())
    if kind.startswith("{"):
        return {"enum": list(ast.literal_eval(f"[{kind[1:-1]}]"))}
    if name == "list":
        different = rest.startswith("different ")
        items = {"type": "array", "items": schema_of_type(rest.removeprefix("different "))}
        return items | ({"minItems": 1, "uniqueItems": True} if different else {})
    if name == "pair":
        return {"type": "array", "minItems": 2, "maxItems": 2, "items": schema_of_type(rest)}
    assert name == "dict", kind
    keys, _, values = rest.partition(" to ")
    inner = {key: schema_of_type(values) for key in ast.literal_eval(f"[{keys[1:-1]}]")}
    return {"type": "object", "additionalProperties": False, "properties": inner}


def schema_of_number(kind, left, least, most, right):
    schema = {"type": {"int": "integer", "float": "number"}[kind]}
    if least:
        schema["minimum" if left == "[" else "exclusiveMinimum"] = ast.literal_eval(least)
        if float(most) < math.inf:
            schema["maximum" if right == "]" else "exclusiveMaximum"] = ast.literal_eval(most)
    return schema


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


#: what a setting needs beside it
BESIDE = {
    "global_step": {"max_tables": 2},
    "rate_prior": {"component": "poisson"},
    "concentration_priors": {"topic_word_prior": "learn"},
}
OF_CLASS = {"nptot": {"contexts": {"year": {"family": "normal_gamma"}}}}


@pytest.mark.parametrize(("name", "setting"), SETTINGS)
def test_a_constructor_refuses_what_its_docstring_does(name, setting):
    schema = schema_of_type(documented(CLASSES[name].__doc__)[setting][0])
    beside, seen = BESIDE.get(setting, {}) | OF_CLASS.get(name, {}), set()
    if name == "hdp" and setting in ("document_concentration", "burstiness"):
        beside = {"document_level": True}
    if setting == "concentration_priors" and name != "nptot":
        beside = beside | {"document_level": True}
    for value in candidates(schema):
        refused = refusal(CLASSES[name], **beside | {setting: value})
        by_schema = refusal(configuration.check, value=[value], schema={"items": schema}, where="configuration")
        assert bool(refused) == bool(by_schema), f"{value!r}: {refused or 'accepted'}, but by its type: {by_schema}"
        assert setting in refused or not refused
        assert "\n" not in refused
        seen.add(bool(refused))
    assert seen == {True, False}


def refusal(function, **arguments):
    """What a ValueError says; "" if there is none."""
    try:
        function(**arguments)
    except ValueError as error:
        return str(error)
    return ""


def test_schemas_are_schemas():
    jsonschema.Draft202012Validator.check_schema(configuration.read_yaml(ROOT / "workflow/schemas/config.schema.yaml"))


def test_a_configuration_holds_no_default_of_the_library():
    """What a configuration repeats would stay behind when the default changes."""
    for path in (ROOT / "config").glob("*.yaml"):
        whole = configuration.read_yaml(path)
        for part, kinds in KINDS.items():
            for name, settings in whole.get(part, {}).items():
                usual = inspect.signature(kinds[name]).parameters
                for setting, value in settings.items():
                    default = usual[setting].default
                    plain = list(default) if isinstance(default, tuple) else default
                    assert value != plain, f"{path.name}: {name}: {setting}"
        for context, settings in whole.get("contexts", {}).items():
            defaults = inspect.signature(FAMILIES[settings.pop("family")]).parameters
            for setting, value in settings.items():
                assert value != defaults[setting].default, f"{path.name}: {context}: {setting}"


def test_defaults_of_families_are_those_of_their_constructors():
    schema = configuration.read_yaml(ROOT / "workflow/schemas/config.schema.yaml")["definitions"]
    described = schema["family"]["properties"]
    for name in described["family"]["enum"]:
        for setting, parameter in inspect.signature(FAMILIES[name]).parameters.items():
            one = described[setting]
            default = one.get("default", schema["positive"]["default"])
            assert default == parameter.default, f"{name}: {setting}"
