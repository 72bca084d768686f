"""Plumb for PyTorch: the curvature of any loss that autograd can differentiate twice, with error bounds; what the modules of a
model compute, and how that scales; whether a run will train; measurements along training; where two
models part; whether one arm of runs is better."""

# PyTorch first: it loads the libraries that the extension module shares with it.
try:
    import torch as _torch
except ImportError as error:
    raise ImportError("plumb needs PyTorch: run `pip install torch`, then install plumb again") from error

from . import _build

if _torch.__version__ != _build.torch:
    raise ImportError(
        f"plumb was built for PyTorch {_build.torch}, and this environment has {_torch.__version__}: install a wheel "
        "that was made with it, or run `pip install --no-build-isolation --force-reinstall --no-deps .` in Plumb's sources"
    )

from ._plumb import Error
from .checking import CheckResult, check
from .curvature import GaussNewton, Hessian, hvp, spectrum
from .difference import Difference, FirstDifference, TensorDifference, diff
from .gating import GateAnswer, gate
from .judging import ArmSummary, Verdict, Verdicts, judge
from .loading import Classified, Generated, Model, load
from .preflight import Finding, Preflight, preflight
from .probing import ModuleProbe, Probed, probe
from .results import Density, Measured, Probe, Spectra, Spectrum
from .runs import Run, runs
from .scaling import CoordinateCheck, ScalingExponent, coordinate_check
from .showing import report
from .watching import Watch, lightning_callback, transformers_callback

__version__ = _build.version
__all__ = [
    "ArmSummary", "CheckResult", "Classified", "CoordinateCheck", "Density", "Difference", "Error", "Finding",
    "FirstDifference", "GateAnswer", "GaussNewton", "Generated", "Hessian", "Measured", "Model", "ModuleProbe", "Preflight",
    "Probe", "Probed", "Run", "ScalingExponent", "Spectra", "Spectrum", "TensorDifference", "Verdict", "Verdicts", "Watch",
    "check", "coordinate_check", "diff", "gate", "hvp", "judge", "lightning_callback", "load", "preflight", "probe", "report",
    "runs", "spectrum", "transformers_callback",
]
