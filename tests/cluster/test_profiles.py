"""What the small configuration on Slurm makes, found without a cluster."""

import re
import sys

import pytest
from helpers.workflow_calls import ROOT, snakemake

sys.path.append(str(ROOT / "tests" / "cluster"))
import profiles


@pytest.mark.workflow
@pytest.mark.needs("spark")
def test_every_rule_of_fits_and_scores_runs_on_slurm(checkout):
    code, output = snakemake(checkout, "-n", *profiles.TARGETS["slurm"], *profiles.CONFIGURATION)
    assert code == 0, output
    rules = "".join((ROOT / f"workflow/rules/{name}.smk").read_text() for name in ("fit", "score"))
    names = re.findall(r"^(?:use rule \w+ as|rule) (\w+)(?: with)?:$", rules, re.M)
    assert len(names) > 10
    planned = re.findall(r"^(\w+) +\d+$", output, re.M)
    # fits gathers files and runs nothing; fit and fit_with_snapshots are of large corpora, contexts_help of real ones
    elsewhere = {"fits", "fit", "fit_with_snapshots", "contexts_help"}
    assert set(names) - elsewhere <= set(planned)
    assert {"fit_nips_author_svi", "fit_nuswide_kmeans"} & set(planned)
