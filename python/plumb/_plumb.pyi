"""The judge, the search for learning rates, the drawing of figures, and of the solver all but the vectors, in C++."""

import enum
from collections.abc import Callable, Sequence
from typing import Any

VERSION: str

class Error(RuntimeError):
    """What went wrong and, from the second line on, what to do about it."""

class Recurrence:
    """A Lanczos process without its vectors, of n elements each and a type with this epsilon."""

    def __init__(self, size: int, steps: int, tolerance: float, epsilon: float) -> None: ...
    def advance(self, coefficients: Sequence[float], norm: float) -> None: ...
    def known(self) -> str: ...
    def largest(self) -> tuple[float, float]: ...
    @property
    def done(self) -> bool: ...

def spectrum_of_probes(probes: Sequence[Recurrence], n: int, sigma: float) -> dict[str, Any]: ...

def spectrum_of_eigenvalues(values: Sequence[float], error: float, sigma: float) -> dict[str, Any]: ...

def require_dense_size(n: int) -> None: ...

def write_signs(out: int, wide: bool, n: int, seed: int, index: int) -> None: ...

def gram_schmidt(vectors: Sequence[int], subtract: Sequence[float], products: bool, size: int, w: int, wide: bool,
                 threads: int) -> list[float]: ...

def allocated_memory() -> int: ...

def available_memory() -> int: ...

def judge(values: Sequence[tuple[str, Sequence[tuple[float, Sequence[float]]]]], metric: str,
          larger_is_better: bool | None, margin: float, by_seed: bool, planned_seeds: int) -> dict[str, Any]: ...

def gate(ledger: str, base: str, candidate: str, runs: Sequence[tuple[str, str, float]], metric: str,
         larger_is_better: bool | None, error: float | None, margin: float | None, seeds: int | None) -> str: ...

TEXT_COLOR: str
MUTED_COLOR: str
GRID_COLOR: str

def figure_svg(figure: str) -> str: ...

def scaling_exponent(scales: Sequence[float], sizes: Sequence[Sequence[float]],
                     margin: float) -> tuple[float, float | None, float, str]: ...

def student_t_quantile(probability: float, degrees: int) -> float: ...

class Budget:
    """What a check may spend: "250g" or "2min", or "5%" of the planned steps; the usual one if the text is empty."""

    def __init__(self, text: str, steps: int) -> None: ...

# Numbers of a check (check/thresholds.h): of its trials, and where alarms are raised.
STEPS_BETWEEN_LOSSES: int
MEASUREMENTS: int
INITIAL_LOSS_MARGIN: float
LARGEST_UPDATE: float
SMALLEST_UPDATES: float
CAUSALITY: float
SMALLEST_STATES: float
LARGEST_STATES: float
MOST_BELOW_EPSILON: float

class StepLength(enum.Enum):
    gradient = 0
    sign = 1
    weights = 2

def judge_trial(*, steps: Sequence[int], losses: Sequence[float], warm_up: int, most: int,
                reference: float | None, diverged: bool) -> tuple[str, bool, str, bool]: ...

def judge_plateau(because: str, gradient_at_input: float) -> tuple[str, str]: ...

def critical_rate(slope: float, rise: Callable[[float], float], start: float) -> float | None: ...

def search_rates(*, budget: Budget, spent: tuple[int, float], peak: float, warm_up: int, steps: int, reference: float,
                 least_gain: float, clear_gain: float, seed: int, critical_rate: float | None, momentum_gain: float,
                 step_length: StepLength, attempt: Callable[[float, int, int, int, float], str],
                 progress: Callable[[str, float], object] | None) -> str: ...
