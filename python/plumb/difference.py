"""Where two modules begin to compute something else."""

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from ._plumb import Error

# Relative differences up to this are rounding: float64 keeps 1e-16, and a deep model multiplies it.
ROUNDING = 1e-10


@dataclass(frozen=True)
class TensorDifference:
    """A tensor that both have: the Frobenius norm of the difference over the larger of the two norms; or why it has none:
    "only in the first", "shapes (2, 3) and (3, 2)"."""

    name: str
    difference: float | None
    why: str = ""

    def differs(self) -> bool:
        return self.difference is None or not self.difference <= ROUNDING


@dataclass(frozen=True)
class FirstDifference:
    """The module that computes something else, although it reads the same; "" is the model itself. `parameters`: those of
    the module, and buffers, that differ; `attributes`: plain ones that do, as texts; neither: its code does. `where`: the
    first output that differs."""

    module: str
    where: str
    difference: float | None
    parameters: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)


@dataclass(frozen=True, repr=False)
class Difference:
    """`first`: a FirstDifference, None if the two compute the same. `parameters`: of both, buffers too. `outputs`: of every
    module, in the order in which the first model finishes them. `gradients`: of the parameters, if there is a loss."""

    first: FirstDifference | None
    parameters: list[TensorDifference]
    outputs: list[TensorDifference]
    gradients: list[TensorDifference]

    def __bool__(self) -> bool:
        return self.first is not None or any(one.differs() for one in self.gradients)

    def __repr__(self) -> str:
        lines = []
        for heading, tensors in (("parameter", self.parameters), ("output of", self.outputs), ("gradient of", self.gradients)):
            apart = [one for one in tensors if one.differs()]
            if apart:
                width = max(len(heading), *(len(one.name) for one in apart[:20]))
                lines.append(f"{heading:<{width}}  relative difference")
                lines += [f"{one.name:<{width}}  {one.why or format(one.difference, '.2g')}" for one in apart[:20]]
                lines += [f"and {len(apart) - 20} more"] if len(apart) > 20 else []
                lines.append("")
        if self.first is None:
            largest = max((one.difference for one in self.outputs if one.difference is not None), default=0.0)
            if self:
                return "\n".join([*lines, "Their outputs agree, but not their gradients."])
            return "\n".join([*lines, f"They compute the same: no output differs by more than {largest:.1g} of its size."])
        name = self.first.module or "the model itself"
        size = "" if self.first.difference is None else f", by {self.first.difference:.2g} of its size"
        lines.append(f"They part in {name} (seen first in {self.first.where}{size}).")
        if self.first.parameters:
            lines.append(f"There, these parameters differ: {', '.join(self.first.parameters)}.")
        if self.first.attributes:
            lines.append(f"There, these attributes differ: {'; '.join(self.first.attributes)}.")
        if not self.first.parameters and not self.first.attributes:
            lines.append("No parameter or attribute differs there: its code does.")
        return "\n".join(lines)


def diff(first: Module, second: Module, batch: Any, loss: Callable[[Any, Any], Tensor] | None = None, *,
         call: Callable[[Any, Any], object] | None = None,
         map: Mapping[str, str] | Callable[[str], str] | None = None) -> Difference:
    """Computes two modules on the same batch, in float64 on the CPU and in evaluation mode, and compares them.

    loss: loss(model, batch), a number with its graph, for gradients as well.
    call: call(model, batch); without it, model(batch), or model(**batch) for a dict.
    map: from names of the first (of parameters and modules) to those of the second, where they differ: a dict or a function.

    The models are left alone: copies are compared.
    """
    names = map or {}
    rename = names if callable(names) else lambda name: names.get(name, name)
    call = call or (lambda model, inputs: model(**inputs) if isinstance(inputs, dict) else model(inputs))
    batch = _converted(batch)
    traces = [_trace(model, batch, call, loss) for model in (first, second)]
    one, other = traces
    parameters = _compare(one.tensors, other.tensors, rename)
    outputs = _compare(one.outputs, other.outputs, lambda key: (rename(key[0]), key[1]))
    gradients = _compare(one.gradients, other.gradients, rename)
    return Difference(_first(one, other, parameters, rename), parameters, outputs, gradients)


@dataclass
class _Trace:
    model: Module
    tensors: dict[str, Tensor]  # parameters and buffers
    events: list[tuple[str, int, list[Tensor]]]  # (module, call, inputs), in the order in which modules finish
    outputs: dict[tuple[str, int], Tensor]  # (module, call): tensor
    gradients: dict[str, Tensor]


def _converted(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return value.double() if value.is_floating_point() else value
    if isinstance(value, dict) or hasattr(value, "items"):
        return {key: _converted(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_converted(one) for one in value)
    return value


def _tensors_in(value: Any) -> list[Tensor]:
    """The tensors of floating point in what a module reads or returns, in order."""
    if isinstance(value, torch.Tensor):
        return [value.detach().clone()] if value.is_floating_point() or value.dtype in (torch.bool, torch.int64) else []
    if isinstance(value, dict) or (hasattr(value, "items") and hasattr(value, "keys")):
        return [tensor for one in value.values() for tensor in _tensors_in(one)]
    if isinstance(value, (list, tuple)):
        return [tensor for one in value for tensor in _tensors_in(one)]
    return []


@contextlib.contextmanager
def _no_fast_path() -> Iterator[None]:
    """PyTorch's encoder computes whole layers at once in evaluation, without calling its modules, unless told otherwise."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


def _trace(model: Module, batch: Any, call: Callable[[Any, Any], object], loss: Callable[[Any, Any], Tensor] | None) -> _Trace:
    model = copy.deepcopy(model).cpu().double().eval()
    events: list[tuple[str, int, list[Tensor]]] = []
    outputs: dict[tuple[str, int], Tensor] = {}
    calls: dict[str, int] = {}
    read: dict[str, list[list[Tensor]]] = {}
    handles = []

    def begun(module: Module, inputs: Any, keywords: Any, name: str) -> None:  # before a module changes its input in place
        read.setdefault(name, []).append(_tensors_in(list(inputs)) + _tensors_in(keywords))

    def finished(module: Module, inputs: Any, output: Any, name: str) -> None:
        number = calls[name] = calls.get(name, 0) + 1
        before = read[name].pop()
        tensors = [tensor for tensor in _tensors_in(output) if tensor.is_floating_point()]
        if tensors:
            events.append((name, number, before))
            outputs[name, number] = tensors[0]

    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(lambda m, i, k, n=name: begun(m, i, k, n), with_kwargs=True))
        handles.append(module.register_forward_hook(lambda m, i, o, n=name: finished(m, i, o, n)))
    gradients = {}
    with _no_fast_path():
        with torch.no_grad():
            call(model, batch)
        for handle in handles:
            handle.remove()
        if loss is not None:
            parameters = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
            with torch.enable_grad():
                found = torch.autograd.grad(loss(model, batch), list(parameters.values()), allow_unused=True)
            gradients = {name: gradient for name, gradient in zip(parameters, found) if gradient is not None}
    if not events:
        raise Error("no module returned a tensor of floating point\npass call=, which computes the model on the batch")
    tensors = {name: tensor.detach() for name, tensor in [*model.named_parameters(), *model.named_buffers()]}
    return _Trace(model, tensors, events, outputs, gradients)


def _apart(first: Tensor, second: Tensor) -> float | None:
    """The relative difference of two tensors; None if their shapes differ."""
    if first.shape != second.shape:
        return None
    if torch.equal(first, second) or first.is_floating_point() and torch.allclose(first, second, 0, 0, equal_nan=True):
        return 0.0
    larger = max(float(first.double().norm()), float(second.double().norm()))
    return float((first.double() - second.double()).norm()) / larger if larger else 0.0


def _compare(first: dict[Any, Tensor], second: dict[Any, Tensor], rename: Callable[[Any], Any]) -> list[TensorDifference]:
    found, matched = [], set()
    for key, tensor in first.items():
        other = second.get(rename(key))
        name = key if isinstance(key, str) else key[0] + (f" (call {key[1]})" if key[1] > 1 else "")
        matched.add(rename(key))
        if other is None:
            found.append(TensorDifference(name, None, "only in the first"))
        else:
            apart = _apart(tensor, other)
            why = f"shapes {tuple(tensor.shape)} and {tuple(other.shape)}" if apart is None else ""
            found.append(TensorDifference(name, apart, why))
    for key in second:
        if key not in matched:
            name = key if isinstance(key, str) else key[0] + (f" (call {key[1]})" if key[1] > 1 else "")
            found.append(TensorDifference(name, None, "only in the second"))
    return found


def _first(one: _Trace, other: _Trace, parameters: list[TensorDifference],
           rename: Callable[[str], str]) -> FirstDifference | None:
    read_by = [{(name, number): inputs for name, number, inputs in trace.events} for trace in (one, other)]

    def reads_the_same(name: str, number: int) -> bool:
        mine, theirs = read_by[0].get((name, number)), read_by[1].get((rename(name), number))
        if mine is None or theirs is None:
            return False  # a list of modules, which its parent calls
        apart = [_apart(a, b) for a, b in zip(mine, theirs)]
        return len(mine) == len(theirs) and all(found is not None and found <= ROUNDING for found in apart)

    for name, number, _ in one.events:
        key = (rename(name), number)
        if key not in other.outputs:
            continue  # a module that the other model does not have is named with its parameters
        apart = _apart(one.outputs[name, number], other.outputs[key])
        if apart is not None and apart <= ROUNDING:
            continue
        # What a module reads comes from code of its parent, if all that was computed before agrees.
        module, inside = name, True
        while module and not reads_the_same(module, number):
            module, inside, number = module.rpartition(".")[0], False, 1
        prefix = module + "." if module else ""
        own = [found.name for found in parameters if found.differs() and found.name.startswith(prefix)]
        if not inside:
            own = [found for found in own if "." not in found[len(prefix):]]
        return FirstDifference(module, name or "the result", apart, own, _attributes(one.model, other.model, module, rename))
    return None


def _attributes(first: Module, second: Module, name: str, rename: Callable[[str], str]) -> list[str]:
    try:
        a, b = first.get_submodule(name), second.get_submodule(rename(name))
    except AttributeError:
        return []
    texts = [] if type(a) is type(b) else [f"{type(a).__name__} and {type(b).__name__}"]
    for key in sorted(vars(a).keys() | vars(b).keys()):
        values = [vars(module).get(key) for module in (a, b)]
        if key.startswith("_") or key == "training":
            continue
        plain = all(isinstance(value, (bool, int, float, str, tuple, type(None))) for value in values)
        if plain and values[0] != values[1]:
            texts.append(f"{key}: {values[0]} and {values[1]}")
        elif not plain and callable(values[0]) and callable(values[1]) and _named(values[0]) != _named(values[1]):
            texts.append(f"{key}: {_named(values[0])} and {_named(values[1])}")
    return texts


def _named(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__name__)
