"""What each harness of this folder reports: how much was tried, and what did not hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from .children import Outcome


@dataclass
class Report:
    """Counts of one harness.

    Attributes
    ----------
    name : what was done, in plural: "killed fits"
    tried : cases so far
    failures : a sentence for each case that did not hold, with all that is needed to repeat it
    counts : other counts worth recording, such as how many inputs were refused
    """

    name: str
    tried: int = 0
    failures: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def held(self) -> int:
        """Cases that held."""
        return self.tried - len(self.failures)

    def add(self, case: str, outcome: Outcome) -> None:
        """Count a case and what it counts; ``case`` tells how to repeat it."""
        self.tried += 1
        for what in outcome.counts:
            self.count(what)
        if outcome.wrong:
            self.failures.append(f"{case}: {outcome.wrong}")

    def count(self, what: str) -> None:
        """Count one more of ``what``."""
        self.counts[what] = self.counts.get(what, 0) + 1
