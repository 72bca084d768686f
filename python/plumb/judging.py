"""Is one arm of runs better than another, and how sure is that? The rules are Plumb's, in C++."""

import math
import numbers
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, SupportsFloat, TypeAlias

from . import _plumb
from ._plumb import Error
from .showing import section

Arm: TypeAlias = Iterable[SupportsFloat] | Mapping[float, Iterable[SupportsFloat]]


@dataclass(frozen=True)
class Verdict:
    """A verdict on "`arm` is better than `baseline` by more than the margin": "supported", "contradicted", "no effect of
    that size", "undecided" or "this setting cannot test it". `gain` is positive where the arm is better; `low` and `high`
    are the ends of its interval of this `confidence`. `seeds_needed`: the seeds for each arm with which 80% of such
    comparisons would be decided; None if it is decided, or if more seeds would not help, as `reason` says. `one_run`: one of
    the arms is a single run, and the interval is that of one new run of the other."""

    baseline: str
    arm: str
    outcome: str
    gain: float
    low: float
    high: float
    confidence: float
    rule: str
    reason: str
    seeds_needed: int | None
    one_run: bool

    def __bool__(self) -> bool:
        return self.outcome == "supported"


@dataclass(frozen=True)
class ArmSummary:
    """An arm at its best learning rate (None if it is no sweep): its runs, how many failed, and mean and standard deviation
    of the others."""

    name: str
    runs: int
    failed: int
    mean: float
    deviation: float
    learning_rate: float | None


@dataclass(frozen=True, repr=False)
class Verdicts:
    """`pairs`: a Verdict on each arm but the first, which is the baseline. `noise_floor`: 95 of 100 pairs of runs that
    differ in the seed alone differ by less."""

    arms: list[ArmSummary]
    pairs: list[Verdict]
    noise_floor: float
    text: str

    def __getitem__(self, arm: str) -> Verdict:
        for pair in self.pairs:
            if pair.arm == arm:
                return pair
        raise KeyError(arm)

    def __repr__(self) -> str:
        return self.text.rstrip()

    def _repr_html_(self) -> str:
        title, table, *rest = self.text.strip().split("\n\n")
        rows = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]
        return section(title, rows, notes=[line for paragraph in rest for line in paragraph.splitlines()])


def judge(arms: Mapping[Any, Arm], *, metric: str = "loss", larger_is_better: bool | None = None, margin: float = 0.0,
          by_seed: bool = False, looks: int = 0) -> Verdicts:
    """Judges every arm against the first, as `plumb judge` does (docs/verdicts.md has its error rates).

    arms: a dict from names to final values, one per seed, or to a dict from learning rates to those: each arm is then judged
        at its own best rate. A value that is None or not finite is that of a failed run.
    larger_is_better: None: by the metric's name.
    margin: only a difference of more than this counts.
    by_seed: value i of every arm has the same seed, and differences are formed seed by seed.
    looks: the number of seeds planned for each arm, if the arms are judged after each from the third on.
    """
    if not isinstance(arms, Mapping):
        raise Error("arms are a dict from names to final values\nwrite plumb.judge({'a': [2.1, 2.2, 2.0], 'b': […]})")
    values = []
    for name, found in arms.items():
        if isinstance(found, Mapping) and len(found) > 1 and all(isinstance(rate, numbers.Integral) for rate in found):
            raise Error(f"the arm {name!r}: {', '.join(map(str, found))} are seeds rather than learning rates\n"
                        "give the values alone, list(values.values()), with by_seed=True to pair them; or rates as floats")
        rates: Any = found.items() if isinstance(found, Mapping) else [(0.0, found)]
        try:
            values.append((str(name), sorted((float(rate), [math.nan if value is None else float(value) for value in losses])
                                             for rate, losses in rates)))
        except (TypeError, ValueError) as error:
            raise Error(f"the arm {name!r}: its values are no numbers, one for each run: {error}\n"
                        "give a list of final values, or a dict from learning rates to such lists") from error
    judged = _plumb.judge(values, metric, larger_is_better, margin, by_seed, looks)
    return Verdicts(arms=[ArmSummary(**arm) for arm in judged["arms"]], pairs=[Verdict(**pair) for pair in judged["pairs"]],
                    noise_floor=judged["noise_floor"], text=judged["text"])
