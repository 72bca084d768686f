"""Plumb for PyTorch: the curvature of any loss that autograd can differentiate twice, with error bounds."""

# PyTorch first: it loads the libraries that the extension module shares with it.
try:
    import torch as _torch
except ImportError as error:
    raise ImportError("plumb needs PyTorch: run `pip install torch`, then install plumb again") from error

from . import _build

if _torch.__version__ != _build.torch:
    raise ImportError(
        f"plumb was built for PyTorch {_build.torch}, and this environment has {_torch.__version__}: in Plumb's sources, run "
        "`pip install --no-build-isolation --force-reinstall --no-deps .`"
    )

from ._plumb import Error
from .curvature import Hessian, hvp, spectrum
from .results import Density, Measured, Probe, Spectra, Spectrum
from .runs import Run, runs

__version__ = _build.version
__all__ = ["Density", "Error", "Hessian", "Measured", "Probe", "Run", "Spectra", "Spectrum", "hvp", "runs", "spectrum"]
