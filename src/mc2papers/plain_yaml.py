"""YAML as plans and ``--set`` use it: 1e-2 is a number, a key comes once, and what is wrong is one sentence."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml

from mc2core.base.records import lines_of


class _Loader(yaml.SafeLoader):
    """Plain data only."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            line = key.start_mark.line + 1
            if key.value in lines:
                raise ValueError(f"the key {key.value!r} is in line {lines[key.value]} and again in line {line}")
            lines[key.value] = line
        return node


# YAML 1.1, which PyYAML follows, takes an exponent only after a point and with a sign: 1.0e-2
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+\.?[0-9]*)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def parse(text: str, where: str) -> Any:
    """The value of a YAML text; ValueError, beginning with ``where``, for what is none."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise ValueError(f"{where} is not readable YAML: {error.problem or error.context}{place}") from None
    except RecursionError:
        raise ValueError(f"{where} is not readable YAML: it is nested too deep") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{where} is not readable YAML: {' '.join(str(error).split())}") from None


def read(path: str | os.PathLike[str]) -> Any:
    """The content of a UTF-8 file; ValueError naming the file and the place for one that cannot be read."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    return parse("".join(line for _, line in lines_of(path)), str(path))
