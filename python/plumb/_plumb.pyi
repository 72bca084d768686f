"""The solver and the judge, in C++. Tensors have n elements in all, in the order of the variables."""

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

def judge(values: Sequence[tuple[str, Sequence[tuple[float, Sequence[float]]]]], metric: str, larger_is_better: bool,
          margin: float, by_seed: bool, planned_seeds: int) -> dict[str, Any]:
    """The arguments of `plumb.Verdicts`, of final values by arm and learning rate (0 if there is no sweep)."""

def student_t_quantile(probability: float, degrees: int) -> float:
    """t with P(T ≤ t) = probability, of Student's distribution."""
