"""The check of recorded verdicts (tools/records.py)."""

from tools import records


def test_engines_of_a_target_are_those_of_its_runs():
    assert records.engines_of("uai2016_table1") == {"svi"}
    assert {"fastex", "uncollapsed"} <= records.engines_of("nips2012_table2")


def test_changed_fits_of_the_engines_are_counted_and_named():
    before, now = (
        {name: {"assignments": bits} for name, bits in fits.items()}
        for fits in (
            {"svi one": "a", "svi two": "b", "gibbs": "c"},
            {"svi one": "a", "svi two": "x", "gibbs": "y", "gibbs new": "z"},
        )
    )
    assert records.said(before, now, {"svi"}) == "1 of 2 fits changed: svi two"
    assert records.said(before, now, {"gibbs"}) == "2 of 2 fits changed"
    assert records.said(before, before, {"svi", "gibbs"}) == "unchanged"
