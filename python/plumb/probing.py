"""What a model's modules compute, and which gradients reach them: at its weights, or over re-initializations."""

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import Module

from . import _plumb
from ._plumb import Error
from .leaving import as_found, reset_of
from .results import Measured, as_table
from .showing import section

if TYPE_CHECKING:
    import pandas

_Seen: TypeAlias = dict[str, dict[str, float]]  # by module
_COLUMNS = ("output", "gradient", "parameter_gradient", "backward_gain")


@dataclass(frozen=True)
class ModuleProbe:
    """One module, in the order of the forward pass. `output`: root mean square of its output's elements. `gradient`:
    norm of the loss's gradient with respect to its output, ‖∂L/∂y‖. `parameter_gradient`: norm of that of its own parameters.
    `backward_gain`: ‖∂L/∂x through the module‖ / ‖∂L/∂y‖, how much it amplifies what flows back. Means over batches, and over
    seeds with the half width of their 95% interval (Student's t). None where there is no such tensor."""

    module: str
    kind: str
    output: Measured | None
    gradient: Measured | None
    parameter_gradient: Measured | None
    backward_gain: Measured | None


@dataclass(frozen=True, repr=False)
class Probed:
    """`rows`: a ModuleProbe each. `loss`: mean over batches and seeds. `notes`: what looks wrong, in sentences."""

    rows: list[ModuleProbe]
    loss: Measured
    seeds: int
    notes: list[str] = field(default_factory=list)

    def __getitem__(self, module: str) -> ModuleProbe:
        for row in self.rows:
            if row.module == module:
                return row
        raise KeyError(module)

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows as a data frame: numbers, with a column `…_error` for each if there are several seeds."""
        import pandas

        rows = []
        for row in self.rows:
            cells: dict[str, Any] = {"module": row.module, "kind": row.kind}
            for name in _COLUMNS:
                value = getattr(row, name)
                cells[name] = math.nan if value is None else value.value
                if self.seeds > 1:
                    cells[name + "_error"] = math.nan if value is None else value.error
            rows.append(cells)
        return pandas.DataFrame(rows)

    def _title(self) -> str:
        over = f"{self.seeds} initializations, ± half the 95% interval" if self.seeds > 1 else "the model as it stands"
        return f"loss {self.loss!r} ({over})"

    def _table(self) -> list[tuple[str, ...]]:
        lines: list[tuple[str, ...]] = [("module", "kind", "output RMS", "‖∂L/∂output‖", "‖∂L/∂parameters‖", "backward gain")]
        for row in self.rows:
            values = [getattr(row, name) for name in _COLUMNS]
            lines.append((row.module, row.kind, *("–" if value is None else repr(value) for value in values)))
        return lines

    def __repr__(self) -> str:
        return "\n".join([self._title(), *as_table(self._table()), *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        return section(f"Modules: {self._title()}", self._table(), notes=self.notes)


def probe(model: Module, loss: Callable[[Any, Any], Tensor], batches: Iterable[Any], *, seeds: int = 1,
          reset: Callable[[Any, int], object] | None = None, modules: str | None = None) -> Probed:
    """Measures every leaf module of `model` in passes of `loss(model, batch)`, which returns a number with its graph.

    seeds: 1 measures the model at its weights; more re-initialize it so often.
    reset: initializes the model anew, reset(model, seed). Without it, PyTorch's seed is set and `reset_parameters()` of every
        module is called, or `init_weights()` of a model of transformers.
    modules: a regular expression, to measure the modules in whose names it is found instead, such as r"layers\\.\\d+$".

    The model is left as it was found: weights, buffers, gradients, mode, and PyTorch's random state.
    """
    batches = list(batches)
    if not batches:
        raise Error("there is nothing to measure on\npass at least one batch")
    chosen = _chosen(model, modules)
    if seeds > 1 and reset is None:
        reset = reset_of(model)
    runs = []
    with as_found(model, weights=seeds > 1):
        for seed in range(seeds):
            if seeds > 1:
                reset(model, seed)
            runs.append(_measure(model, loss, batches, chosen))
    names = list(dict.fromkeys(name for run in runs for name in run.values))
    rows = []
    for name in names:
        cells = [_over_seeds([run.values[name][column] for run in runs if name in run.values]) for column in range(4)]
        rows.append(ModuleProbe(name, type(chosen[name]).__name__, *cells))
    return Probed(rows, _over_seeds([run.loss for run in runs]), seeds, _notes(rows, runs))


def _chosen(model: Module, pattern: str | None) -> dict[str, Module]:
    """The modules by name: those in whose names the pattern is found, or without one all leaves."""
    if pattern is None:
        return {name: module for name, module in model.named_modules() if next(module.children(), None) is None}
    found = {name: module for name, module in model.named_modules() if name and re.search(pattern, name)}
    if not found:
        some = ", ".join([name for name, _ in model.named_modules() if name][:5])
        raise Error(f"no name of a module matches {pattern!r}\nthe first names are {some}")
    return found


@dataclass
class _Run:
    loss: float
    # By module: output, gradient, parameter gradient, backward gain. A quantity that a module lacks is None.
    values: dict[str, list[float | None]]
    unreached: set[str]  # parameters without a gradient


def _measure(model: Module, loss: Callable[[Any, Any], Tensor], batches: list[Any], chosen: dict[str, Module]) -> _Run:
    sums: dict[tuple[str, int], float] = {}
    counts: dict[tuple[str, int], int] = {}
    total = 0.0
    unreached: set[str] | None = None
    parameters = dict(model.named_parameters())
    trained = {name: tensor for name, tensor in parameters.items() if tensor.requires_grad}
    for batch in batches:
        seen: _Seen = {}
        with torch.enable_grad(), _hooks(chosen, seen):
            value = loss(model, batch)
            if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.requires_grad:
                raise Error("the loss is no single number with a graph\n"
                            "return a mean or a sum, computed without torch.no_grad()")
            gradients = torch.autograd.grad(value, list(trained.values()), allow_unused=True)
        total += float(value.detach()) / len(batches)
        without = {name for name, gradient in zip(trained, gradients) if gradient is None}
        unreached = without if unreached is None else unreached & without
        squares: dict[int, float] = {}
        for parameter, gradient in zip(trained.values(), gradients):
            if gradient is not None:
                squares[id(parameter)] = float(gradient.double().square().sum())
        for name, found in seen.items():
            inside, outside = found.get("inside"), found.get("gradient")
            gain = inside / outside if inside is not None and outside else None
            reached = [squares[id(p)] for p in chosen[name].parameters() if id(p) in squares]
            own = math.sqrt(sum(reached)) if reached else None
            for column, number in enumerate((found.get("output"), outside, own, gain)):
                if number is not None:
                    key = (name, column)
                    sums[key], counts[key] = sums.get(key, 0.0) + number, counts.get(key, 0) + 1
            sums.setdefault((name, 0), math.nan), counts.setdefault((name, 0), 1)
    values: dict[str, list[float | None]] = {}
    for (name, column), number in sums.items():
        values.setdefault(name, [None] * 4)[column] = number / counts[name, column]
    return _Run(total, values, unreached or set())


@contextlib.contextmanager
def _hooks(chosen: dict[str, Module], seen: _Seen) -> Iterator[None]:
    """Fills seen[module] in a pass: "output", and once the graph is differentiated "gradient" and "inside", the gradient with
    respect to the input through the module alone: what it reads is a view that nothing else does. Of a module that is called
    several times, the squares are added."""
    handles = []

    def norm_into(found: dict[str, float], key: str) -> Callable[[Tensor], None]:
        def take(gradient: Tensor) -> None:
            found[key] = math.hypot(found.get(key, 0.0), float(gradient.detach().double().norm()))
        return take

    def before(module: Module, inputs: tuple[Any, ...], named: dict[str, Any], name: str) -> Any:
        read = inputs[0] if inputs else next(iter(named.values()), None)
        if not isinstance(read, torch.Tensor) or not read.requires_grad:
            return None
        view = read.view_as(read)
        view.register_hook(norm_into(seen.setdefault(name, {}), "inside"))
        return ((view, *inputs[1:]), named) if inputs else (inputs, named | {next(iter(named)): view})

    def after(module: Module, inputs: Any, output: Any, name: str) -> None:
        if isinstance(output, (tuple, list)) and output:
            output = output[0]
        if not isinstance(output, torch.Tensor) or not output.is_floating_point():
            return
        found = seen.setdefault(name, {})
        values = output.detach().double()
        found["output"] = float(values.square().mean().sqrt()) if values.numel() else 0.0
        if output.requires_grad:
            output.register_hook(norm_into(found, "gradient"))

    for name, module in chosen.items():
        handles.append(module.register_forward_pre_hook(lambda m, i, k, n=name: before(m, i, k, n), with_kwargs=True))
        handles.append(module.register_forward_hook(lambda m, i, o, n=name: after(m, i, o, n)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _over_seeds(values: Iterable[float | None]) -> Measured | None:
    """The mean, and half the 95% interval if there are several values."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    mean = sum(values) / len(values)
    if len(values) < 2:
        return Measured(mean, None)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return Measured(mean, _plumb.student_t_quantile(0.975, len(values) - 1) * math.sqrt(variance / len(values)))


def _notes(rows: list[ModuleProbe], runs: list[_Run]) -> list[str]:
    notes = []
    broken = [row.module for row in rows if row.output is not None and not math.isfinite(row.output.value)]
    if broken:
        notes.append(f"the output of {broken[0]} is the first that is not finite")
    dead = [row.module for row in rows if row.output is not None and row.output.value == 0]
    if dead:
        notes.append(f"the output of {', '.join(dead)} is 0")
    unreached = sorted(set.intersection(*(run.unreached for run in runs)))
    if unreached:
        some = ", ".join(unreached[:3]) + (f" and {len(unreached) - 3} more" if len(unreached) > 3 else "")
        notes.append(f"no gradient reaches {some}")
    return notes
