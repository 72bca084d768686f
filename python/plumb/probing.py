"""What a model's modules compute, and which gradients reach them: at its weights, or over re-initializations."""

import contextlib
import copy
import math
from dataclasses import dataclass, field

import torch

from . import _plumb
from ._plumb import Error
from .results import Measured

_COLUMNS = ("output", "gradient", "parameter_gradient", "backward_gain")


@dataclass(frozen=True)
class ModuleProbe:
    """One leaf module, in the order of the forward pass. `output`: root mean square of its output's elements. `gradient`:
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

    rows: list
    loss: Measured
    seeds: int
    notes: list = field(default_factory=list)

    def __getitem__(self, module):
        for row in self.rows:
            if row.module == module:
                return row
        raise KeyError(module)

    def to_pandas(self):
        """The rows as a data frame: numbers, with a column `…_error` for each if there are several seeds."""
        import pandas

        rows = []
        for row in self.rows:
            cells = {"module": row.module, "kind": row.kind}
            for name in _COLUMNS:
                value = getattr(row, name)
                cells[name] = math.nan if value is None else value.value
                if self.seeds > 1:
                    cells[name + "_error"] = math.nan if value is None else value.error
            rows.append(cells)
        return pandas.DataFrame(rows)

    def __repr__(self):
        lines = [("module", "kind", "output RMS", "‖∂L/∂output‖", "‖∂L/∂parameters‖", "backward gain")]
        for row in self.rows:
            values = [getattr(row, name) for name in _COLUMNS]
            lines.append((row.module, row.kind, *("–" if value is None else repr(value) for value in values)))
        widths = [max(map(len, column)) for column in zip(*lines)]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
        over = f"{self.seeds} initializations, ± half the 95% interval" if self.seeds > 1 else "the model as it stands"
        return "\n".join([f"loss {self.loss!r} ({over})", *table, *(f"note: {note}" for note in self.notes)])


def probe(model, loss, batches, *, seeds=1, reset=None):
    """Measures every leaf module of `model` in passes of `loss(model, batch)`, which returns a number with its graph.

    seeds: 1 measures the model at its weights; more re-initialize it so often.
    reset: initializes the model anew, reset(model, seed). Without it, PyTorch's seed is set and `reset_parameters()` of every
        module is called.

    The model is left as it was found: weights, buffers, gradients, mode, and PyTorch's random state.
    """
    batches = list(batches)
    if not batches:
        raise Error("there is nothing to measure on\npass at least one batch")
    if seeds > 1 and reset is None:
        reset = _reset_of(model)
    runs = []
    with _restored(model):
        for seed in range(seeds):
            if seeds > 1:
                reset(model, seed)
            runs.append(_measure(model, loss, batches))
    names = list(dict.fromkeys(name for run in runs for name in run.values))
    kinds = {name: type(module).__name__ for name, module in model.named_modules()}
    rows = []
    for name in names:
        cells = [_over_seeds([run.values[name][column] for run in runs if name in run.values]) for column in range(4)]
        rows.append(ModuleProbe(name, kinds[name], *cells))
    return Probed(rows, _over_seeds([run.loss for run in runs]), seeds, _notes(rows, runs))


@dataclass
class _Run:
    loss: float
    values: dict  # module: [output, gradient, parameter gradient, backward gain], None where there is none
    unreached: set  # parameters without a gradient


def _reset_of(model):
    modules = [module for module in model.modules() if callable(getattr(module, "reset_parameters", None))]
    if not modules:
        raise Error("no module has reset_parameters(), so the model cannot be initialized anew\n"
                    "pass reset=, a function of model and seed, or seeds=1 to measure the model as it stands")

    def reset(model, seed):
        torch.manual_seed(seed)
        for module in modules:
            module.reset_parameters()

    return reset


@contextlib.contextmanager
def _restored(model):
    state = copy.deepcopy(model.state_dict())
    try:
        with torch.random.fork_rng(devices=[], enabled=True):
            yield
    finally:
        with torch.no_grad():
            model.load_state_dict(state)


def _measure(model, loss, batches):
    sums, counts = {}, {}
    total, unreached = 0.0, None
    parameters = dict(model.named_parameters())
    trained = {name: tensor for name, tensor in parameters.items() if tensor.requires_grad}
    for batch in batches:
        seen = {}
        with torch.enable_grad(), _hooks(model, seen):
            value = loss(model, batch)
            if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.requires_grad:
                raise Error("the loss is no single number with a graph\n"
                            "return a mean or a sum, computed without torch.no_grad()")
            gradients = torch.autograd.grad(value, list(trained.values()), allow_unused=True)
        total += float(value.detach()) / len(batches)
        without = {name for name, gradient in zip(trained, gradients) if gradient is None}
        unreached = without if unreached is None else unreached & without
        squares = {}
        for name, gradient in zip(trained, gradients):
            if gradient is not None:
                owner = name.rpartition(".")[0]
                squares[owner] = squares.get(owner, 0.0) + float(gradient.double().square().sum())
        for name, found in seen.items():
            inside, outside = found.get("inside"), found.get("gradient")
            gain = inside / outside if inside is not None and outside else None
            own = math.sqrt(squares[name]) if name in squares else None
            for column, number in enumerate((found.get("output"), outside, own, gain)):
                if number is not None:
                    key = (name, column)
                    sums[key], counts[key] = sums.get(key, 0.0) + number, counts.get(key, 0) + 1
            sums.setdefault((name, 0), math.nan), counts.setdefault((name, 0), 1)
    values = {}
    for (name, column), number in sums.items():
        values.setdefault(name, [None] * 4)[column] = number / counts[name, column]
    return _Run(total, values, unreached)


@contextlib.contextmanager
def _hooks(model, seen):
    """Fills seen[module] in a pass: "output", and once the graph is differentiated "gradient" and "inside", the gradient with
    respect to the input through the module alone: what it reads is a view that nothing else does. Of a module that is called
    several times, the squares are added."""
    handles = []

    def norm_into(found, key):
        def take(gradient):
            found[key] = math.hypot(found.get(key, 0.0), float(gradient.detach().double().norm()))
        return take

    def before(module, inputs, name):
        if inputs and isinstance(inputs[0], torch.Tensor) and inputs[0].requires_grad:
            view = inputs[0].view_as(inputs[0])
            view.register_hook(norm_into(seen.setdefault(name, {}), "inside"))
            return (view, *inputs[1:])
        return None

    def after(module, inputs, output, name):
        if isinstance(output, (tuple, list)) and output:
            output = output[0]
        if not isinstance(output, torch.Tensor) or not output.is_floating_point():
            return
        found = seen.setdefault(name, {})
        values = output.detach().double()
        found["output"] = float(values.square().mean().sqrt()) if values.numel() else 0.0
        if output.requires_grad:
            output.register_hook(norm_into(found, "gradient"))

    for name, module in model.named_modules():
        if next(module.children(), None) is None:
            handles.append(module.register_forward_pre_hook(lambda m, i, n=name: before(m, i, n)))
            handles.append(module.register_forward_hook(lambda m, i, o, n=name: after(m, i, o, n)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _over_seeds(values):
    """The mean, and half the 95% interval if there are several values."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    mean = sum(values) / len(values)
    if len(values) < 2:
        return Measured(mean, None)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return Measured(mean, _plumb.student_t_quantile(0.975, len(values) - 1) * math.sqrt(variance / len(values)))


def _notes(rows, runs):
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
