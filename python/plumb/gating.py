"""Keep a candidate or not, at an error that holds over a whole series of them. The rule is Plumb's, in C++."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import SupportsFloat

from . import _plumb
from ._plumb import Error


@dataclass(frozen=True, repr=False)
class GateAnswer:
    """`decision` on `candidate`: "keep", "reject" or "more seeds", of which `next` names the arm that needs one; it is empty
    once the candidate is decided. `best`: the arm that it is compared with, itself if it was kept. `gain` over that arm:
    `mean`, `low` and `high`, positive where the candidate is better, of this `confidence`; None without a look."""

    candidate: str
    best: str
    decision: str
    next: str
    reason: str
    gain: dict[str, float | None]
    confidence: float
    text: str
    notes: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.decision == "keep"

    def __repr__(self) -> str:
        return self.text.rstrip()


def gate(ledger: str | os.PathLike[str], candidate: str,
         runs: Mapping[str, Mapping[int, SupportsFloat] | Iterable[SupportsFloat]] | None = None, *, base: str = "base",
         metric: str = "loss", larger_is_better: bool | None = None, error: float | None = None,
         margin: float | None = None, seeds: int | None = None) -> GateAnswer:
    """Whether to keep `candidate`, as `plumb judge --gate` says (docs/verdicts.md has the rule and its error rates).

    ledger: a file, made by the first call, that keeps all runs of the series; several processes may use it.
    runs: what ended since, or all: a dict from arms to dicts from seeds to final values, or to values. A value that is not
        finite is that of a failed run.
    base: the arm that the series begins with.
    error, margin, seeds: of the series, in its first call: the probability that any candidate is kept that is not better by
        more than the margin (0.05 and 0), and the most seeds of a candidate (12).
    """
    ended: list[tuple[str, str, float]] = []
    for arm, values in (runs or {}).items():
        try:
            pairs: Iterable[tuple[object, SupportsFloat]] = (
                values.items() if isinstance(values, Mapping) else [("", value) for value in values])
            ended += [(str(arm), str(seed), float(value)) for seed, value in pairs]
        except (TypeError, ValueError) as wrong:
            raise Error(f"the arm {arm!r}: its values are no numbers, one for each run: {wrong}\n"
                        "give a dict from seeds to final values, or a list of these; of a failed run NaN") from wrong
    answer = _plumb.gate(os.fspath(ledger), base, candidate, ended, metric, larger_is_better, error, margin, seeds)
    return GateAnswer(**json.loads(answer))
