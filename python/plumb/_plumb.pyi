"""The judge, the search for learning rates, the drawing of figures, and of the solver all but the vectors, in C++."""

from collections.abc import Callable, Sequence
from typing import Any

VERSION: str

class Error(RuntimeError):
    """What went wrong and, from the second line on, what to do about it."""

class Recurrence:
    """A Lanczos process without its vectors, of n elements each and a type with this epsilon."""

    def __init__(self, size: int, steps: int, tolerance: float, epsilon: float) -> None: ...
    def advance(self, coefficients: Sequence[float], norm: float) -> None:
        """Takes the components of the last vector's product along all vectors, and the norm of its remainder."""
    def known(self) -> str:
        """The extremes so far, in words."""
    def largest(self) -> tuple[float, float]:
        """The largest Ritz value and its residual."""
    @property
    def done(self) -> bool:
        """Whether it has ended."""

def spectrum_of_probes(probes: Sequence[Recurrence], n: int, sigma: float) -> dict[str, Any]:
    """The arguments of `plumb.Spectrum` that are measured, from processes of a matrix of n rows."""

def spectrum_of_eigenvalues(values: Sequence[float], error: float, sigma: float) -> dict[str, Any]:
    """The same from all eigenvalues, ascending."""

def require_dense_size(n: int) -> None:
    """Throws Error if a matrix of n rows is too large for all its eigenvalues."""

def write_signs(out: int, wide: bool, n: int, seed: int, index: int) -> None:
    """Writes a random start vector to n elements at this address, float64 if `wide`, else float32."""

def gram_schmidt(vectors: Sequence[int], subtract: Sequence[float], products: bool, size: int, w: int, wide: bool,
                 threads: int) -> list[float]:
    """w ← w − Σ subtract·v if there is something to subtract; then the products v·w (zeros unless `products`), followed by w·w;
    of vectors of `size` elements at these addresses, on at most `threads` threads."""

def allocated_memory() -> int:
    """Bytes that this process's allocations hold; 0 if unknown."""

def available_memory() -> int:
    """Bytes that it can allocate besides before the machine, or the container that it runs in, is out of memory."""

def judge(values: Sequence[tuple[str, Sequence[tuple[float, Sequence[float]]]]], metric: str,
          larger_is_better: bool | None, margin: float, by_seed: bool, planned_seeds: int) -> dict[str, Any]:
    """The arguments of `plumb.Verdicts`, of final values by arm and learning rate (0 if there is no sweep). Throws Error if
    the metric's name does not tell whether more of it is better, and nothing else does."""

def gate(ledger: str, base: str, candidate: str, runs: Sequence[tuple[str, str, float]], metric: str,
         larger_is_better: bool | None, error: float | None, margin: float | None, seeds: int | None) -> str:
    """The arguments of `plumb.GateAnswer`, as JSON."""

TEXT_COLOR: str
MUTED_COLOR: str
GRID_COLOR: str

def figure_svg(figure: str) -> str:
    """A figure as in results.json (docs/formats/results.md), drawn as SVG."""

def scaling_exponent(scales: Sequence[float], sizes: Sequence[Sequence[float]],
                     margin: float) -> tuple[float, float | None, float, str]:
    """Exponent, half of its interval (None of a single seed), slope between the two largest scales, and trend; sizes: (seeds,
    scales)."""

def student_t_quantile(probability: float, degrees: int) -> float:
    """t with P(T ≤ t) = probability, of Student's distribution."""

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

def judge_trial(*, steps: Sequence[int], losses: Sequence[float], warm_up: int, most: int,
                reference: float | None, diverged: bool) -> tuple[str, bool, str, bool]:
    """The outcome of a trial of at most `most` steps with these losses so far, whether it need not go on, why, and whether it is
    on the plateau of the labels' frequencies."""

def judge_plateau(because: str, gradient_at_input: float) -> tuple[str, str]:
    """The outcome of a trial on the plateau of the labels' frequencies, and why."""

def critical_rate(slope: float, rise: Callable[[float], float], start: float) -> float | None:
    """The rate at which a step no longer lowers the loss: slope is the derivative of the loss along the step, rise(rate) its
    change; None if no such rate was found."""

def search_rates(*, budget: Budget, spent: tuple[int, float], peak: float, warm_up: int, steps: int, reference: float,
                 least_gain: float, clear_gain: float, seed: int, critical_rate: float | None, momentum_gain: float,
                 signs: bool, attempt: Callable[[float, int, int, int, float], str],
                 progress: Callable[[str, float], object] | None) -> str:
    """The search for the stable rate, as the document of `plumb check --json`. attempt: learning rate, warm-up, seed, steps and
    seconds left to the document of a trial. spent: gradients and seconds of the budget."""
