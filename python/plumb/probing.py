"""What a model's modules compute, and which gradients reach them: at its weights, or over re-initializations."""

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import Module

from . import _plumb
from ._plumb import Error
from .arguments import number_with_graph, require_loss, require_several
from .leaving import as_found, hooked, reset_of
from .results import Measured, as_table, data_frame, some
from .showing import section

_Sums: TypeAlias = dict[str, float]
_COLUMNS = ("output", "gradient", "parameter_gradient", "backward_gain")


@dataclass(frozen=True)
class ModuleProbe:
    """One module, in the order of the forward pass. `output`: root mean square of its output's elements. `gradient`:
    norm of the loss's gradient with respect to its output, ‖∂L/∂y‖. `parameter_gradient`: norm of that of its own parameters.
    `backward_gain`: ‖∂L/∂x through the module‖ / ‖∂L/∂y‖, how much it amplifies what flows back. Means over batches, and over
    seeds with the half width of their 95% interval (Student's t). None where there is no such tensor.

    x and y are the first tensors that it reads and returns, in tuples and dicts, too; if x is passed several times, as to
    self-attention, through all of them. Of a module that is called several times in a pass, all calls together."""

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

    def to_pandas(self) -> Any:
        """The rows as a data frame: numbers, with a column `…_error` for each if there are several seeds."""
        rows = []
        for row in self.rows:
            cells: dict[str, Any] = {"module": row.module, "kind": row.kind}
            for name in _COLUMNS:
                value = getattr(row, name)
                cells[name] = math.nan if value is None else value.value
                if self.seeds > 1:
                    cells[name + "_error"] = math.nan if value is None else value.error
            rows.append(cells)
        return data_frame(rows)

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
    """Measures every leaf module of `model`, and those with parameters of their own, in passes of
    `loss(model, batch)`, which returns a number with its graph.

    batches: a list, all of which are measured; of a loader, take some: itertools.islice(loader, 4).
    seeds: 1 measures the model at its weights; more re-initialize it so often.
    reset: initializes the model anew, reset(model, seed). Without it, PyTorch's seed is set and `reset_parameters()` of every
        module is called, or `init_weights()` of a model of transformers, or `_init_weights` applied to every module, where the
        model has one; an Error if some weights then have a size that is more than twice or less than half of what they have.
    modules: a regular expression, to measure the modules in whose names it is found instead, such as r"layers\\.\\d+$".

    The model is left as it was found: weights, buffers, gradients, mode, and PyTorch's random state.
    """
    require_loss(loss)
    require_several(batches)
    batches = list(batches)
    if not batches:
        raise Error("there is nothing to measure on\npass at least one batch")
    chosen = _chosen(model, modules)
    anew = (reset or reset_of(model)) if seeds > 1 else None
    runs = []
    with as_found(model, weights=anew is not None):
        sizes = {name: float(tensor.detach().double().norm()) for name, tensor in model.named_parameters()} if anew else {}
        for seed in range(seeds):
            if anew is not None:
                anew(model, seed)
                if reset is None:
                    _require_sizes(model, sizes)
            runs.append(_measure(model, loss, batches, chosen))
    names = list(dict.fromkeys(name for run in runs for name in run.values))
    rows = []
    for name in names:
        cells = [_over_seeds([run.values[name][column] for run in runs if name in run.values]) for column in range(4)]
        rows.append(ModuleProbe(name, type(chosen[name]).__name__, *cells))
    return Probed(rows, _mean([run.loss for run in runs]), seeds, _notes(rows, runs))


def _require_sizes(model: Module, sizes: dict[str, float]) -> None:
    """That those of the weights are not others by a factor of two, as if the model had been initialized otherwise."""
    for name, tensor in model.named_parameters():
        size, before = float(tensor.detach().double().norm()), sizes[name]
        if tensor.numel() >= 16 and max(size, before) > 2 * min(size, before):
            scale = math.sqrt(tensor.numel())
            raise Error(f"the modules' own initialization gives {name} a root mean square of {size / scale:.2g}, and it has "
                        f"{before / scale:.2g}: the model was initialized otherwise, or has been trained\n"
                        "pass reset=, a function of model and seed that initializes it")


def _chosen(model: Module, pattern: str | None) -> dict[str, Module]:
    """The modules by name: those in whose names the pattern is found, or without one all leaves, and the parts with parameters
    of their own, such as nn.MultiheadAttention, which does not call what it contains."""
    if pattern is None:
        return {name: module for name, module in model.named_modules()
                if next(module.children(), None) is None or name and next(module.parameters(recurse=False), None) is not None}
    found = {name: module for name, module in model.named_modules() if name and re.search(pattern, name)}
    if not found:
        first = ", ".join([name for name, _ in model.named_modules() if name][:5])
        raise Error(f"no name of a module matches {pattern!r}\nthe first names are {first}")
    return found


@dataclass
class _Run:
    loss: float
    # By module: output, gradient, parameter gradient, backward gain. A quantity that a module lacks is None.
    values: dict[str, list[float | None]]
    unreached: set[str]  # parameters without a gradient


def _measure(model: Module, loss: Callable[[Any, Any], Tensor], batches: list[Any], chosen: dict[str, Module]) -> _Run:
    found_of: dict[str, list[list[float]]] = {}  # by module and column, of the batches
    total = 0.0
    unreached: set[str] | None = None
    parameters = dict(model.named_parameters())
    trained = {name: tensor for name, tensor in parameters.items() if tensor.requires_grad}
    copied: set[str] = set()
    for batch in batches:
        with torch.enable_grad():
            value, seen = _forward(model, loss, batch, chosen, copied)
            gradients = torch.autograd.grad(number_with_graph(value), list(trained.values()), allow_unused=True)
        total += float(value.detach()) / len(batches)
        without = {name for name, gradient in zip(trained, gradients) if gradient is None}
        unreached = without if unreached is None else unreached & without
        squares: dict[int, float] = {}
        for parameter, gradient in zip(trained.values(), gradients):
            if gradient is not None:
                squares[id(parameter)] = float(gradient.double().square().sum())
        for name, found in seen.items():
            inside, outside = found.get("inside"), found.get("gradient")
            output = math.sqrt(found["square"] / found["elements"]) if found.get("elements") else None
            gain = inside / outside if inside is not None and outside else None
            reached = [squares[id(p)] for p in chosen[name].parameters() if id(p) in squares]
            own = math.sqrt(sum(reached)) if reached else None
            for numbers, number in zip(found_of.setdefault(name, [[], [], [], []]), (output, outside, own, gain)):
                if number is not None:
                    numbers.append(number)
    values = {name: [sum(numbers) / len(numbers) if numbers else None for numbers in columns]
              for name, columns in found_of.items()}
    return _Run(total, values, unreached or set())


def _forward(model: Module, loss: Callable[[Any, Any], Tensor], batch: Any, chosen: dict[str, Module],
             copied: set[str]) -> tuple[Tensor, dict[str, _Sums]]:
    """The loss, and what the hooks see. Again if a module has changed what it reads and does not get a copy of it yet."""
    while True:
        seen: dict[str, _Sums] = {}
        known = len(copied)
        with _hooks(chosen, seen, copied):
            value = loss(model, batch)
        if len(copied) == known:
            return value, seen


def first_tensor(value: Any) -> Tensor | None:
    """The first tensor of floating point in what a module reads or returns: tensors, tuples, lists and dicts of them."""
    if isinstance(value, torch.Tensor):
        return value if value.is_floating_point() else None
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return next((found for one in value if (found := first_tensor(one)) is not None), None)
    return None


def _replaced(value: Any, old: Tensor, new: Tensor) -> Any:
    """The same with another tensor in place of one, wherever it occurs among arguments."""
    if value is old:
        return new
    if type(value) in (tuple, list):
        return type(value)(_replaced(one, old, new) for one in value)
    if type(value) is dict:
        return {key: _replaced(one, old, new) for key, one in value.items()}
    return value


@contextlib.contextmanager
def _hooks(chosen: dict[str, Module], seen: dict[str, _Sums], copied: set[str]) -> Iterator[None]:
    """Fills seen[module] in a pass: of its outputs "square" and "elements", and once the graph is differentiated "gradient" and
    "inside", the gradient with respect to the input through the module alone: what it reads is a view that nothing else does.

    A module that works in place would cut the view off: it is noted in `copied`, and those noted get a copy, from which the
    original is changed as they would have done."""
    reading: dict[str, list[tuple[Tensor, Tensor, int]]] = {}  # by module, of calls that have begun: (original, read, version)

    def norm_into(found: _Sums, key: str) -> Callable[[Tensor], None]:
        def take(gradient: Tensor) -> None:
            found[key] = math.hypot(found.get(key, 0.0), float(gradient.detach().double().norm()))
        return take

    def on_gradient(tensor: Tensor, hook: Callable[[Tensor], None]) -> None:
        tensor.register_hook(hook)  # type: ignore[no-untyped-call, unused-ignore]

    def begun(name: str, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        original = first_tensor((inputs, named))
        if original is None or not original.requires_grad:
            reading.setdefault(name, []).append((torch.empty(0),) * 2 + (0,))
            return None
        read = original.clone() if name in copied else original.view_as(original)
        on_gradient(read, norm_into(seen.setdefault(name, {}), "inside"))
        reading.setdefault(name, []).append((original, read, read._version))
        return _replaced(inputs, original, read), _replaced(named, original, read)

    def finished(name: str, output: Any) -> Any:
        original, read, version = reading[name].pop()
        if read._version != version:
            output = _replaced(output, read, original.copy_(read) if name in copied else original)
            copied.add(name)
        found, returned = seen.setdefault(name, {}), first_tensor(output)
        if returned is not None:
            values = returned.detach().double()
            found["square"] = found.get("square", 0.0) + float(values.square().sum())
            found["elements"] = found.get("elements", 0.0) + values.numel()
            if returned.requires_grad:
                on_gradient(returned, norm_into(found, "gradient"))
        return output

    with hooked(chosen.items(), begun, finished):
        yield


def _over_seeds(found: Iterable[float | None]) -> Measured | None:
    """The mean of those that there are, and half the 95% interval if they are several."""
    values = [value for value in found if value is not None]
    return _mean(values) if values else None


def _mean(values: list[float]) -> Measured:
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
        notes.append(f"no gradient reaches {some(unreached)}")
    return notes
