"""What a measurement found: plain values that say in words what they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .showing import density_figure, section

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """A number and its error, which is None if a single probe cannot tell it."""

    value: float
    error: float | None

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        if self.error is None:
            return f"{self.value:.4g}"
        if not (isfinite(self.value) and isfinite(self.error)) or self.error == 0 or self.value == 0:
            return f"{self.value:.6g} ± {self.error:.2g}"
        # As many digits as the error lets stand, and one more.
        digits = floor(log10(abs(self.value))) - floor(log10(self.error)) + 2
        return f"{self.value:.{min(max(digits, 2), 10)}g} ± {self.error:.2g}"


@dataclass(frozen=True)
class Density:
    """The density y of the eigenvalues at x, smoothed by a Gaussian of standard deviation `sigma`. `low` and `high` are the
    ends of its 95% confidence interval over the probes (Student's t); None for a single probe."""

    x: Array
    y: Array
    low: Array | None
    high: Array | None
    sigma: float

    def __repr__(self) -> str:
        band = "no band: one probe" if self.low is None else "95% band"
        return f"Density of eigenvalues at {len(self.x)} points from {self.x[0]:.4g} to {self.x[-1]:.4g} ({band})"


@dataclass(frozen=True)
class Probe:
    """The result of Lanczos from one random start: Ritz values, their weights, which sum to 1, and residuals: an eigenvalue
    lies within this distance of the value. `exhausted`: the values are eigenvalues. `rounding` bounds what the rounding of
    products, or an operator that is not symmetric, adds to the error."""

    steps: int
    exhausted: bool
    rounding: float
    values: Array
    weights: Array
    residuals: Array


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues of a Hessian or Gauss–Newton matrix (`matrix`), or of a diagonal block.

    max, min: the extremes; there is an eigenvalue within the error. trace, frobenius: with standard errors over the probes,
    as are the shares of eigenvalues below −zero_band (`negative`) and above it (`positive`). `quantiles`: the eigenvalue by
    share. `eigenvalues`: all, ascending, if dense; else None.
    """

    matrix: str
    parameters: int
    dtype: str
    loss: float
    gradient_norm: float
    max: Measured
    min: Measured
    trace: Measured
    frobenius: Measured
    negative: Measured
    positive: Measured
    zero_band: float
    quantiles: dict[float, float]
    density: Density
    probes: list[Probe]
    eigenvalues: Array | None
    seed: int
    seconds: float

    @classmethod
    def _of(cls, found: dict[str, Any], **known: Any) -> Self:
        """From the extension module's description."""
        pairs = {name: Measured(*value) for name, value in found.items() if isinstance(value, tuple)}
        density, probes = Density(**_arrays(found["density"])), [Probe(**_arrays(probe)) for probe in found["probes"]]
        return cls(**(_arrays(found) | pairs | {"density": density, "probes": probes} | known))

    def __repr__(self) -> str:
        if self.eigenvalues is None:
            steps = max(probe.steps for probe in self.probes)
            method = f"Lanczos: {_count(len(self.probes), 'probe')} of {_count(steps, 'step')}, seed {self.seed}"
        else:
            method = "all eigenvalues"
        lines = [
            f"{self.matrix} of {self.parameters:,} parameters ({self.dtype}; {method}; {self.seconds:.1f} s)",
            f"  loss {self.loss:.6g}, gradient norm {self.gradient_norm:.4g}",
            f"  largest eigenvalue   {self.max!r}",
            f"  smallest eigenvalue  {self.min!r}",
            f"  trace                {self.trace!r}",
            f"  {100 * float(self.negative):.3g}% of the eigenvalues are below -{self.zero_band:.3g}, "
            f"{100 * float(self.positive):.3g}% above {self.zero_band:.3g}",
        ]
        if self.eigenvalues is None:
            lines.append("  ± after an extreme: numerical error; after the trace: standard error over the start vectors")
            if len(self.probes) == 1:
                lines.append("  one probe: the trace and the shares have no standard error")
            if max(self.max.error or 0.0, self.min.error or 0.0) > 0.1 * max(abs(float(self.max)), abs(float(self.min))):
                lines.append("  the extremes have not converged: take more steps")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title, *lines = repr(self).split("\n")
        return section(title, notes=lines, figure=density_figure({self.matrix: self.density}))


class Spectra(dict[str, Spectrum]):
    """The spectra of diagonal blocks, by the name of the group of parameters."""

    @property
    def _title(self) -> str:
        matrix = next(iter(self.values())).matrix if self else "Hessian"
        return f"Diagonal blocks of a {matrix}: extreme eigenvalues and trace"

    def _rows(self) -> list[tuple[str, ...]]:
        return [("group", "parameters", "largest", "smallest", "trace"),
                *((str(name), f"{one.parameters:,}", repr(one.max), repr(one.min), repr(one.trace))
                  for name, one in self.items())]

    def __repr__(self) -> str:
        return "\n".join([self._title, *as_table(self._rows())])

    def _repr_html_(self) -> str:
        return section(self._title, self._rows(), density_figure({name: one.density for name, one in self.items()}))


def as_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of aligned columns from rows of texts."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def some(names: Sequence[str]) -> str:
    """The first three names, and how many others there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def data_frame(columns: Any) -> Any:
    """That of pandas, which is imported only for it; columns: or rows, as there."""
    import pandas  # type: ignore[import-untyped, unused-ignore]

    return pandas.DataFrame(columns)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _arrays(found: dict[str, Any]) -> dict[str, Any]:
    """With an array for each list."""
    return {name: np.array(value) if isinstance(value, list) else value for name, value in found.items()}
