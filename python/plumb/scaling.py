"""The coordinate check: how the sizes of activations, and of their changes in training, scale with a model's width and depth
(Yang et al. 2022, arXiv 2203.03466, appendix D.1). Rules and words are those of src/plumb/analysis/coordinate_check.h."""

import copy
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from . import _plumb
from ._plumb import Error
from .arguments import Optimizers, number_with_graph, optimizers_of, require_loss, require_several
from .leaving import hooked, random_state
from .probing import first_tensor
from .results import Array, Measured, as_table, data_frame
from .showing import section

Loss: TypeAlias = Callable[[Any, Any], Tensor]
Rename: TypeAlias = Callable[[str], str | None]
_Inputs: TypeAlias = dict[str, tuple[Any, Any]]  # by module: the arguments, and those with names

_OUTPUT, _CHANGE, _UPDATE, _DECAY = "output at the start", "change of the output", "change by its update", "decay per step"


@dataclass(frozen=True)
class ScalingExponent:
    """size ~ scale^exponent, the slope of log(size) over log(scale), with the half width of its 95% interval over the seeds
    (Student's t).

    of: "output at the start" and "change of the output", of a module; "change by its update", of its module's output by
        this parameter's first update alone, on the same input; "decay per step", the share that decoupled weight decay takes.
    trend: "constant" if the interval lies within ±margin, "grows" or "shrinks" if beyond, "undecided" if neither, "zero" if
        all sizes are, "diverged" if some size is 0 or not finite.
    verdict: "yes", "no", "undecided"; None where nothing is asked of it.
    sizes: (seeds, scales), root mean squares. `at_the_end`: the slope between the two largest scales, mean over seeds.
    """

    axis: str
    name: str
    of: str
    exponent: Measured
    at_the_end: float
    trend: str
    verdict: str | None
    sizes: Array


@dataclass(frozen=True, repr=False)
class CoordinateCheck:
    """`verdict`: "no" if it is in any row, else "undecided" if in any, else "yes". `faults`: what is scaled wrongly, and by how
    much, in sentences. `scales`: a dict from axes to their scales. True if the verdict is "yes"."""

    rows: list[ScalingExponent]
    verdict: str
    faults: list[str]
    scales: dict[str, list[int]]
    seeds: int
    steps: int
    margin: float

    def __bool__(self) -> bool:
        return self.verdict == "yes"

    def __getitem__(self, name: str) -> list[ScalingExponent]:
        """All rows of a module or parameter."""
        if found := [row for row in self.rows if row.name == name]:
            return found
        raise KeyError(name)

    def to_pandas(self) -> Any:
        """The rows as a data frame."""
        return data_frame([{"axis": row.axis, "name": row.name, "of": row.of, "exponent": row.exponent.value,
                            "exponent_error": row.exponent.error, "at_the_end": row.at_the_end, "trend": row.trend,
                            "verdict": row.verdict} for row in self.rows])

    def _title(self) -> str:
        over = " and ".join(f"{axis} {', '.join(map(str, scales))}" for axis, scales in self.scales.items())
        return (f"Coordinate check over {over}: {self.verdict} ({self.seeds} seeds, {self.steps} steps, ± half the 95% "
                f"interval, margin {self.margin:g})")

    def _table(self) -> list[tuple[str, ...]]:
        return [("over", "name", "of", "exponent", "trend", "right"),
                *((row.axis, row.name, row.of, "–" if math.isnan(row.exponent.value) else repr(row.exponent), row.trend,
                   row.verdict or "–") for row in self.rows)]

    def __repr__(self) -> str:
        return "\n".join([self._title(), *self.faults, *as_table(self._table())])

    def _repr_html_(self) -> str:
        return section(self._title(), self._table(), notes=self.faults)


def coordinate_check(make_model: Callable[..., Module], loss: Loss, batches: Iterable[Any], widths: Iterable[int], *,
                     optimizer: Callable[[Any], Optimizers] | None = None, steps: int = 3, seeds: int = 5, margin: float = 0.1,
                     depths: Iterable[int] | None = None, modules: str | None = None) -> CoordinateCheck:
    """Trains models of several widths for a few steps, and says whether activations and their changes keep their size.

    make_model: make_model(width), or with `depths` make_model(width, depth); PyTorch's seed is set before. Parts of the same
        role have the same name in all. With `depths`, both axes are measured, each at the smallest value of the other; of
        lists of layers whose length varies, the first and last are compared.
    loss: loss(model, batch), a number with its graph. `batches`: one for each step, and again from the first on, whose
        activations are measured. Modules of dropout are switched off.
    optimizer: optimizer(model), or a list of several, so that learning rates may depend on the width. Default: Adam at 1e-3.
    modules: a regular expression, for the modules in whose names it is found. Default: all leaves.

    Right is: every change of an output and by an update is constant, as is every output at the start, except that of the last
    module may shrink, or any be zero; decay per step is constant. Random numbers go on as if nothing had been measured.
    """
    require_loss(loss)
    require_several(batches)
    batches = list(batches)
    axes = {"width": sorted(set(widths))} | ({} if depths is None else {"depth": sorted(set(depths))})
    if not batches or seeds < 1 or steps < 1 or min(map(len, axes.values())) < 2 or min(map(min, axes.values())) < 1:
        raise Error("an exponent needs two scales, a batch, a step and a seed, and for an interval two seeds")
    optimizer = optimizer or (lambda model: torch.optim.Adam(model.parameters(), lr=1e-3))
    rows, faults = [], []
    for axis, scales in axes.items():
        runs = []  # [seed][scale]
        with torch.random.fork_rng(), random_state(Module()):
            for seed in range(seeds):
                models = []
                for scale in scales:
                    torch.manual_seed(seed)
                    sizes = {name: values[0] for name, values in axes.items()} | {axis: scale}
                    models.append(make_model(*sizes.values()))
                runs.append([_measure(model, loss, batches, optimizers_of(optimizer(model)), steps, seed, modules, rename)
                             for model, rename in zip(models, _by_place(models))])
        found = _rows(axis, scales, runs, margin)
        rows += found
        faults += _faults(axis, found, runs[0][0].owners)
    verdicts = [row.verdict for row in rows]
    verdict = next((one for one in ("no", "undecided") if one in verdicts), "yes")
    return CoordinateCheck(rows, verdict, faults, axes, seeds, steps, margin)


@dataclass
class _Run:
    sizes: dict[tuple[str, str], float]  # (name, of): root mean square or share, in the order of the forward pass
    owners: dict[str, str | None]  # parameter: the module whose output it changes


def _by_place(models: list[Module]) -> list[Rename]:
    """For each model a function from names to names that all models have: in lists whose lengths differ, the members are
    `first` and `last`, and the name of those between is None."""
    kinds = (torch.nn.ModuleList, torch.nn.Sequential)
    lengths = [{name: len(module) for name, module in model.named_modules() if isinstance(module, kinds)} for model in models]
    varied = [name + "." if name else "" for name in lengths[0] if len({one.get(name) for one in lengths}) > 1]

    def renamer(model: Module) -> Rename:
        def rename(name: str) -> str | None:
            for start in varied:
                if match := re.match(re.escape(start) + r"(\d+)(?=\.|$)", name):
                    place, length = int(match[1]), len(model.get_submodule(start.rstrip("."))._modules)
                    if 0 < place < length - 1:
                        return None
                    name = start + ("first" if place == 0 else "last") + name[match.end():]
            return name
        return rename

    return [renamer(model) for model in models]


def _measure(model: Module, loss: Loss, batches: list[Any], optimizers: list[Optimizer], steps: int, seed: int, pattern: str | None,
             rename: Rename) -> _Run:
    for module in model.modules():
        if isinstance(module, torch.nn.modules.dropout._DropoutNd):
            module.eval()
    initial = copy.deepcopy(model)
    inputs: _Inputs = {}
    unused: _Inputs = {}
    before = _outputs(initial, loss, batches[0], seed, inputs)
    # Of each parameter, in its first step that has a gradient: later ones answer to those of the others, too.
    updates: dict[Tensor, Tensor] = {}
    for step in range(steps):
        for one in optimizers:
            one.zero_grad()
        with torch.enable_grad():
            torch.autograd.backward(number_with_graph(loss(model, batches[step % len(batches)])))
        begun = {parameter: parameter.detach().clone() for parameter in model.parameters()
                 if parameter not in updates and parameter.grad is not None and parameter.grad.any()}
        for one in optimizers:
            one.step()
        updates |= {parameter: parameter.detach() - value for parameter, value in begun.items()}
    after = _outputs(model, loss, batches[0], seed, unused)
    sizes: dict[tuple[str, str], float] = {}
    owners: dict[str, str | None] = {}
    for name, output in before.items():
        leaf = next(model.get_submodule(name).children(), None) is None
        label = rename(name)
        if (leaf if pattern is None else re.search(pattern, name)) and label is not None and name in after:
            sizes[label, _OUTPUT] = _size(output)
            sizes[label, _CHANGE] = _size(after[name] - output)
    shares = _decays(optimizers)
    old, new = (dict(one.named_parameters(remove_duplicate=False)) for one in (initial, model))
    for name, tensor in new.items():
        label, owner = rename(name), name.rpartition(".")[0]
        while owner and owner not in inputs:  # a part that its parent does not call, as in nn.MultiheadAttention
            owner = owner.rpartition(".")[0]
        if not tensor.requires_grad or label is None:
            continue
        if shares.get(id(tensor)):
            sizes[label, _DECAY] = shares[id(tensor)]
        if owner in inputs:
            module, value = initial.get_submodule(owner), old[name].detach().clone()
            arguments, named = inputs[owner]
            with torch.no_grad(), torch.random.fork_rng():
                first = first_tensor(module(*arguments, **named))
                old[name].add_(updates.get(tensor, 0))
                second = first_tensor(module(*arguments, **named))
                old[name].copy_(value)
            if first is not None and second is not None:
                sizes[label, _UPDATE], owners[label] = _size(second.double() - first.double()), rename(owner)
    return _Run(sizes, owners)


def _outputs(model: Module, loss: Loss, batch: Any, seed: int, inputs: _Inputs) -> dict[str, Tensor]:
    """The output of each module in its first call, and into `inputs` what those with parameters of their own read."""
    found: dict[str, Tensor] = {}

    def kept(value: Any) -> Any:
        return value.detach().clone() if isinstance(value, torch.Tensor) else value

    def begun(name: str, arguments: Any, named: Any) -> None:
        if model.get_submodule(name)._parameters:
            inputs.setdefault(name, torch.utils._pytree.tree_map(kept, (arguments, named)))

    def finished(name: str, output: Any) -> None:
        output = first_tensor(output)
        if output is not None and name not in found:
            found[name] = output.detach().double()

    with hooked(model.named_modules(), begun, finished), torch.random.fork_rng(), torch.enable_grad():
        torch.manual_seed(seed)
        loss(model, batch)
    return found


def _size(tensor: Tensor) -> float:
    return float(tensor.square().mean().sqrt())


def _decays(optimizers: list[Optimizer]) -> dict[int, float]:
    """The share of each parameter that a step's decoupled weight decay takes: learning rate · weight decay."""
    shares: dict[int, float] = {}
    for optimizer, group in ((one, group) for one in optimizers for group in one.param_groups):
        if isinstance(optimizer, torch.optim.AdamW) or group.get("decoupled_weight_decay"):
            shares |= {id(tensor): float(group["lr"]) * group["weight_decay"] for tensor in group["params"]}
    return shares


def _rows(axis: str, scales: list[int], runs: list[list[_Run]], margin: float) -> list[ScalingExponent]:
    keys = list(runs[0][0].sizes)
    for run in (run for of_seed in runs for run in of_seed):
        if different := set(keys) ^ set(run.sizes):
            raise Error(f"not every model has {sorted(different)[0][0]}\nmake modules of the same role have the same name")
    last = [name for name, of in keys if of == _CHANGE][-1:]
    rows = []
    for name, of in keys:
        sizes = np.array([[run.sizes[name, of] for run in of_seed] for of_seed in runs])
        exponent, end, trend = scaling_exponent(scales, sizes, margin)
        verdict = {"constant": "yes", "undecided": "undecided", "zero": None}.get(trend, "no")
        if of == _OUTPUT and trend == "shrinks" and [name] == last:
            verdict = "yes"
        rows.append(ScalingExponent(axis, name, of, exponent, end, trend, verdict, sizes))
    return rows


def scaling_exponent(scales: Sequence[int], sizes: Array, margin: float) -> tuple[Measured, float, str]:
    """Exponent, slope at the end, and trend; sizes: (seeds, scales)."""
    if not sizes.any():
        return Measured(math.nan, math.nan), math.nan, "zero"
    mean, half, end, trend = _plumb.scaling_exponent([float(scale) for scale in scales], sizes.tolist(), margin)
    # To four decimals: what is exactly 0, as after a norm, differs from it by rounding.
    return Measured(mean, None) if half is None else Measured(round(mean, 4) + 0.0, round(half, 4)), end, trend


def _faults(axis: str, rows: list[ScalingExponent], owners: dict[str, str | None]) -> list[str]:
    """Sentences on what is wrong by itself: an output follows what is wrong before it."""
    def power(row: ScalingExponent, sign: int = 1) -> str:
        return f"{axis}^{sign * row.exponent.value:.2f}"

    wrong = {of: [row for row in rows if row.of == of and row.verdict == "no"] for of in (_UPDATE, _DECAY, _OUTPUT, _CHANGE)}
    faults = []
    for row in wrong[_UPDATE]:
        faults.append(f"{row.name}: its updates change the output of {owners[row.name]} as {power(row)}: "
                      f"scale its learning rate by {power(row, -1)}")
    for row in wrong[_DECAY]:
        faults.append(f"{row.name}: weight decay takes a share of it per step that goes as {power(row)}: "
                      f"scale its weight_decay by {power(row, -1)}")
    for row in wrong[_OUTPUT][:1]:
        faults.append(f"{_initial(row.name, owners)}: the output of {row.name} goes as {power(row)} at the start: "
                      f"scale its initialization by {power(row, -1)}")
    if not faults and wrong[_CHANGE]:
        row = wrong[_CHANGE][0]
        larger = "smaller" if row.exponent.value > 0 else "larger"
        faults.append(f"{_initial(row.name, owners)}: the output of {row.name} changes as {power(row)}, although the first "
                      f"update of each parameter is right: changes before it pass through its weights, which should be "
                      f"initialized {larger} as the {axis} grows")
    return [re.sub(r"\^nan", " to no power (a size is 0 or not finite)", fault) for fault in faults]


def _initial(module: str, owners: dict[str, str | None]) -> str:
    return next((name for name, owner in owners.items() if owner == module), module)
