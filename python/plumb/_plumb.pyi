"""The solver, the judge and the drawing of figures, in C++. Tensors have n elements in all, in the order of the variables."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

class Error(RuntimeError):
    """What went wrong and, from the second line on, what to do about it."""

class Options:
    """How a spectrum is measured; the names are those of `plumb.Hessian.spectrum`."""

    def __init__(self, *, steps: int, probes: int, seed: int, tolerance: float, dense: bool, sigma: float,
                 basis_directory: str) -> None: ...

class FunctionHessian:
    """The Hessian of the sum of the terms with respect to the variables, flattened: (n, n)."""

    def __init__(self, variables: Sequence[Tensor], terms: Sequence[Callable[[], Tensor]], graph_memory: int) -> None:
        """terms: each returns a single number with its graph. graph_memory: bytes for graphs kept between products."""

    def multiply(self, vectors: Sequence[Tensor]) -> list[Tensor]:
        """H·v for each v of shape (n)."""

    def point(self) -> tuple[float, Tensor, list[bool]]:
        """The sum of the terms, its gradient (n), and for each variable whether the gradient depends on some variable through
        it, so that its rows of H may not be zero."""

    def spectrum(self, options: Options, progress: Callable[[int, int, str], object] | None) -> dict[str, Any]:
        """The arguments of `plumb.Spectrum` that are measured."""

    def block_spectra(self, blocks: Sequence[Sequence[int]], options: Options,
                      progress: Callable[[int, int, str], object] | None) -> list[dict[str, Any]]:
        """The same for diagonal blocks, each given by the places of its variables, in common passes over the graph."""

    @property
    def kept(self) -> int:
        """How many terms' graphs are kept between products."""

class FunctionGaussNewton:
    """The Gauss–Newton matrix of the sum of the terms with respect to the variables, flattened: (n, n)."""

    def __init__(self, variables: Sequence[Tensor], terms: Sequence[tuple[Callable[[], Tensor], Callable[[Tensor], Tensor]]],
                 graph_memory: int) -> None:
        """terms: outputs of any shape with their graph, and a single number that is computed from them."""

    def multiply(self, vectors: Sequence[Tensor]) -> list[Tensor]:
        """G·v for each v of shape (n)."""

    def point(self) -> tuple[float, Tensor, list[bool]]:
        """The sum of the terms, its gradient (n), and for each variable whether some output depends on it."""

    def spectrum(self, options: Options, progress: Callable[[int, int, str], object] | None) -> dict[str, Any]:
        """The arguments of `plumb.Spectrum` that are measured."""

    def block_spectra(self, blocks: Sequence[Sequence[int]], options: Options,
                      progress: Callable[[int, int, str], object] | None) -> list[dict[str, Any]]:
        """The same for diagonal blocks, each given by the places of its variables, in common passes over the graph."""

    @property
    def kept(self) -> int:
        """How many terms' graphs are kept between products."""

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

def largest_eigenvalue(multiply: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> tuple[float, float]:
    """The largest eigenvalue of a symmetric operator, and how far one may lie from it; start: (n)."""

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
