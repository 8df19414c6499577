"""Fuzz what a user writes by hand: configurations, the two tables, ``--set``. ``harness.py`` says what a case is.

python tests/fuzz/configurations.py --seconds 60 --seed 1
"""

from __future__ import annotations

import copy
from pathlib import Path

from harness import Parser, main

from mc2core.base.settings import parse_settings, split_settings
from mc2papers import configuration, targets

CHECKOUT = Path(__file__).parents[2]
SCHEMAS = {
    path.name.partition(".")[0]: configuration.read_yaml(path) for path in (CHECKOUT / "workflow/schemas").iterdir()
}
TARGETS = tuple(targets.registry())
USUAL = configuration.read_yaml(CHECKOUT / "config/config.yaml")
TOKENS = [
    b": ", b"\n", b"\n  ", b"- ", b"[", b"]", b"{", b"}", b"&a ", b"*a", b"<<: *a", b"!!python/name:os.system ",
    b"!!set ",
    b"'", b'"', b"|\n", b"? ", b"#", b"%", b"\t", b"\r", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\x85", b".nan", b".inf",
    b"-1", b"0", b"1e-2", b"1e999", b"9" * 30, b"2020-13-45", b"1:30", b"null", b"~", b"true", b"nips", b"kernel=",
    b"=",
    b" iterations=0", b"seeds: 1\n", b"+", b",",
]  # fmt: skip


def read_configuration(folder: Path, target: Path) -> None:
    """All that Snakemake's main process does before the first job."""
    whole = copy.deepcopy(USUAL)
    changes = configuration.read_yaml(folder / "configuration.yaml")
    if not isinstance(changes, dict):
        raise ValueError("Snakemake refuses a configuration without keys")
    _update(whole, changes)
    whole = configuration.with_numbers(whole)
    configuration.check(whole, SCHEMAS["config"], "configuration")
    configuration.check_data_folder(whole)
    chosen = configuration.choose_datasets(whole)
    sources = configuration.read_table(folder / "datasets.tsv", SCHEMAS["datasets"], key="file")
    path = folder / "experiments.tsv"
    runs = configuration.read_experiments(path, SCHEMAS["experiments"], whole, whole["corpora"])
    configuration.check_runs(path, runs, whole, TARGETS)
    configuration.check_files(whole, sources, chosen)


def _update(old: dict, new: dict) -> None:
    """As Snakemake joins configurations."""
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            _update(old[key], value)
        else:
            old[key] = value


def read_settings(folder: Path, target: Path) -> None:
    text = (folder / "settings").read_text(encoding="utf-8", errors="surrogateescape")
    parse_settings(split_settings(text), "--set")


def _first(path: Path, n: int) -> bytes:
    return b"".join(path.read_bytes().splitlines(keepends=True)[:n])


def parsers(data_folder: Path | None) -> dict[str, Parser]:
    config = CHECKOUT / "config"
    tables = {
        "experiments.tsv": _first(config / "experiments.tsv", 12),
        "datasets.tsv": _first(config / "datasets.tsv", 6),
    }
    configurations = [
        {"configuration.yaml": (config / name).read_bytes(), **tables} for name in ("test.yaml", "config.yaml")
    ]
    settings = [{"settings": b"kernel=collapsed iterations=10 topic_word_prior=1e-2 exact_sweeps=[1,20] bits=[group]"}]
    return {
        "configuration": Parser(read_configuration, configurations, TOKENS),
        "settings": Parser(read_settings, settings, TOKENS),
    }


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", parsers))
