"""Plumb for PyTorch: the curvature of any loss that autograd can differentiate twice, with error bounds; what the modules of a
model compute, and how that scales; whether a run will train; measurements along training; where two
models part; whether one arm of runs is better."""

import importlib
from typing import TYPE_CHECKING, Any

from ._plumb import VERSION, Error
from .gating import GateAnswer, gate
from .judging import ArmSummary, Verdict, Verdicts, judge
from .loading import Classified, Generated, Model, load
from .results import Density, Measured, Probe, Spectra, Spectrum
from .runs import Run, runs
from .showing import report

if TYPE_CHECKING:
    from .checking import CheckResult, check
    from .curvature import GaussNewton, Hessian, hvp, spectrum
    from .difference import Difference, FirstDifference, TensorDifference, diff
    from .preflighting import Finding, Preflight, preflight
    from .probing import ModuleProbe, Probed, probe
    from .scaling import CoordinateCheck, ScalingExponent, coordinate_check
    from .watching import Watch, lightning_callback, transformers_callback
else:
    def __getattr__(name: str) -> Any:
        """What measures modules, which imports PyTorch."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            for module in ("checking", "curvature", "difference", "preflighting", "probing", "scaling", "watching"):
                found = vars(importlib.import_module(f".{module}", __name__))
                globals().update({one: found[one] for one in __all__ if one in found})
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise ImportError(f"plumb.{name} needs PyTorch: pip install torch", name="torch") from error
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

__version__ = VERSION
__all__ = [
    "ArmSummary", "CheckResult", "Classified", "CoordinateCheck", "Density", "Difference", "Error", "Finding",
    "FirstDifference", "GateAnswer", "GaussNewton", "Generated", "Hessian", "Measured", "Model", "ModuleProbe", "Preflight",
    "Probe", "Probed", "Run", "ScalingExponent", "Spectra", "Spectrum", "TensorDifference", "Verdict", "Verdicts", "Watch",
    "check", "coordinate_check", "diff", "gate", "hvp", "judge", "lightning_callback", "load", "preflight", "probe", "report",
    "runs", "spectrum", "transformers_callback",
]
