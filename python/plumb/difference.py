"""Where two modules begin to compute something else."""

import copy
import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils import _pytree as tree
from torch.utils._python_dispatch import TorchDispatchMode

from ._plumb import Error
from .arguments import as_tree, number_with_graph, require_loss
from .leaving import hooked
from .results import as_table, some

# Relative differences up to this are rounding of float64, which keeps 1e-16; of a type that keeps less, eight of its ε.
ROUNDING = 1e-10
_EPSILONS = 8

_Key: TypeAlias = tuple[str, int]  # module, call


@dataclass(frozen=True)
class TensorDifference:
    """A tensor that both have: the Frobenius norm of the difference over the larger of the two norms; or why it has none:
    "only in the first", "shapes (2, 3) and (3, 2)". Up to `bound` it is rounding."""

    name: str
    difference: float | None
    why: str = ""
    bound: float = ROUNDING

    def differs(self) -> bool:
        return self.difference is None or not self.difference <= self.bound


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
    """`first`: a FirstDifference, None if the two compute the same. `also`: the modules that differ after it. `parameters`: of
    both, buffers too. `outputs`: of every module, in the order in which the first model finishes them. `gradients`: of the
    parameters, if there is a loss. `notes`: where rounding differs, in sentences."""

    first: FirstDifference | None
    parameters: list[TensorDifference]
    outputs: list[TensorDifference]
    gradients: list[TensorDifference]
    also: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.first is not None or any(one.differs() for one in self.gradients)

    def __repr__(self) -> str:
        lines = []
        outputs = self.outputs if self.first else []
        for heading, tensors in (("parameter", self.parameters), ("output of", outputs), ("gradient of", self.gradients)):
            apart = [one for one in tensors if one.differs()]
            if apart:
                lines += as_table([(heading, "relative difference"),
                                   *((one.name, one.why or format(one.difference, ".2g")) for one in apart[:20])])
                lines += [f"and {len(apart) - 20} more"] if len(apart) > 20 else []
                lines.append("")
        if self.first is None:
            largest = max((one.difference for one in self.outputs if one.difference is not None), default=0.0)
            same = f"They compute the same: no output differs by more than {largest:.1g} of its size."
            return "\n".join([*lines, "Their outputs agree, but not their gradients." if self else same, *self.notes])
        name = self.first.module or "the model itself"
        size = "" if self.first.difference is None else f", by {self.first.difference:.2g} of its size"
        lines.append(f"They part in {name} (seen first in {self.first.where}{size}).")
        if self.first.parameters:
            lines.append(f"There, these parameters differ: {', '.join(self.first.parameters)}.")
        if self.first.attributes:
            lines.append(f"There, these attributes differ: {'; '.join(self.first.attributes)}.")
        if self.parameters and not self.first.parameters and not self.first.attributes:
            lines.append("No parameter or attribute differs there: its code does.")
        lines += [f"After it, also: {', '.join(self.also)}."] if self.also else []
        return "\n".join([*lines, *self.notes])


def diff(first: Module, second: Module | Mapping[str, Tensor], batch: Any, loss: Callable[[Any, Any], Tensor] | None = None, *,
         call: Callable[[Any, Any], object] | None = None, map: Mapping[str, str] | Callable[[str], str] | None = None,
         dtype: torch.dtype | None = torch.float64, tolerance: float | None = None) -> Difference:
    """Computes two modules on the same batch, on the CPU and in evaluation mode, and compares them.

    Each module of the first reads and is followed by what the second's read and returned, so that differences do not grow
    through the layers, and one does not hide the next. What may differ is the rounding of the lowest precision in which the
    module computes, in either model, or in which one of them stores its weights.

    second: a module, or the outputs of modules by name, as tensors that were computed elsewhere.
    loss: loss(model, batch), a number with its graph, for gradients as well.
    call: call(model, batch); without it, model(batch), or model(**batch) for a dict.
    map: from names of the first (of parameters and modules) to those of the second, where they differ: a dict or a function.
        Names that it leaves unmatched are matched by shape and order.
    dtype: in which both compute; None: each in its own.
    tolerance: relative difference up to which outputs, weights and gradients count as the same, in place of rounding.

    The models are left alone: copies are compared.
    """
    if loss is not None:
        require_loss(loss)
    names = map or {}
    given = names if callable(names) else lambda name: names.get(name, name)
    call = call or (lambda model, inputs: model(**inputs) if isinstance(inputs, dict) else model(inputs))
    batch = _converted(batch, dtype)
    one = _trace(first, batch, call, loss, dtype)
    if isinstance(second, Module):
        other = _trace(second, batch, call, loss, dtype)
    else:
        other = _Trace(returned={(name, 1): [tensor.detach().cpu()] for name, tensor in second.items()})
    rename = _matched(one, other, given)
    parameters = _compare(one.tensors, other.tensors, rename) if other.tensors else []
    epsilons: dict[str, float] = {}  # of weights that one model has rounded, by module
    for place, found in enumerate(parameters):
        if found.difference and _stored(one.tensors[found.name], other.tensors[rename(found.name)]):
            owner = found.name.rpartition(".")[0]
            epsilons[owner] = max(found.difference, epsilons.get(owner, 0.0))
            parameters[place] = replace(found, bound=math.inf)
        elif tolerance is not None:
            parameters[place] = replace(found, bound=tolerance)
    apart: list[tuple[str, str, bool, float | None]] = []
    rounded: dict[str, float] = {}

    def judge(module: str, where: str, inside: bool, found: float | None, least: float) -> None:
        kept = max(one.epsilons.get(module, 0), other.epsilons.get(rename(module), 0), epsilons.get(module, 0), least)
        if found is None or not found <= (max(ROUNDING, _EPSILONS * kept) if tolerance is None else tolerance):
            apart.append((module, where, inside, found))
        elif found > ROUNDING and inside:
            rounded[module] = max(found, rounded.get(module, 0))

    _follow(one.model, other, batch, call, rename, judge)
    notes = [f"Rounding differs in {some(list(rounded))}, by up to {max(rounded.values()):.1g}."] if rounded else []
    outputs = _compare(one.outputs, other.outputs, lambda key: (rename(key[0]), key[1]))
    gradients = _compare(one.gradients, other.gradients, rename)
    if loss is not None and gradients and (rounded or tolerance is not None):
        moved = _compare(one.gradients, _gradients_of(one.model, batch, loss, rounded), lambda name: name)
        bounds = {found.name: max(ROUNDING, 16 * (found.difference or 0)) for found in moved}
        gradients = [replace(found, bound=tolerance or bounds.get(found.name, ROUNDING)) for found in gradients]
    found_first = None
    if apart:
        module, where, inside, difference = apart[0]
        prefix = module + "." if module else ""
        own = [found.name for found in parameters if found.differs() and found.name.startswith(prefix)
               and (inside or "." not in found.name[len(prefix):])]
        found_first = FirstDifference(module, where or "the result", difference, own,
                                      _attributes(one.model, other.model, module, rename))
    also = list(dict.fromkeys(module or "the model itself" for module, *_ in apart if module != apart[0][0]))
    return Difference(found_first, parameters, outputs, gradients, also[:10], notes)


@dataclass
class _Trace:
    """Of a run; of stored outputs, these alone."""

    model: Module = field(default_factory=Module)
    tensors: dict[str, Tensor] = field(default_factory=dict)  # parameters and buffers
    read: dict[_Key, list[Tensor]] = field(default_factory=dict)
    returned: dict[_Key, list[Tensor]] = field(default_factory=dict)  # in the order in which modules finish
    epsilons: dict[str, float] = field(default_factory=dict)  # by module, of the lowest precision in its own operations
    gradients: dict[str, Tensor] = field(default_factory=dict)

    @property
    def outputs(self) -> dict[_Key, Tensor]:
        return {key: tensors[0] for key, tensors in self.returned.items()}


class _Precision(TorchDispatchMode):  # type: ignore[no-untyped-call, unused-ignore]
    """Notes by module the ε of the lowest precision in its own operations."""

    def __init__(self, stack: list[str], epsilons: dict[str, float]) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self.stack, self.epsilons = stack, epsilons

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for one in tree.tree_leaves(result):
            if isinstance(one, Tensor) and one.is_floating_point() and one.numel() > 1:
                name = self.stack[-1] if self.stack else ""
                self.epsilons[name] = max(self.epsilons.get(name, 0), torch.finfo(one.dtype).eps)
        return result


def _converted(batch: Any, dtype: torch.dtype | None) -> Any:
    def convert(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf.detach().cpu().to(dtype if dtype and leaf.is_floating_point() else leaf.dtype)

    return tree.tree_map(convert, as_tree(batch))


def _tensors_in(value: Any) -> list[Tensor]:
    """The tensors of floating point in what a module reads or returns, in order."""
    if isinstance(value, torch.Tensor):
        return [value.detach().clone()] if value.is_floating_point() or value.dtype in (torch.bool, torch.int64) else []
    if isinstance(value, dict) or (hasattr(value, "items") and hasattr(value, "keys")):
        return [tensor for one in value.values() for tensor in _tensors_in(one)]
    if isinstance(value, (list, tuple)):
        return [tensor for one in value for tensor in _tensors_in(one)]
    return []


def _trace(model: Module, batch: Any, call: Callable[[Any, Any], object], loss: Callable[[Any, Any], Tensor] | None,
           dtype: torch.dtype | None) -> _Trace:
    model = copy.deepcopy(model).cpu().eval()
    trace = _Trace(model.to(dtype) if dtype else model)
    stack: list[str] = []
    calls: dict[str, int] = {}
    reading: dict[str, list[list[Tensor]]] = {}

    def begun(name: str, inputs: Any, keywords: Any) -> None:  # before a module changes its input in place
        stack.append(name)
        reading.setdefault(name, []).append(_tensors_in(list(inputs)) + _tensors_in(keywords))

    def finished(name: str, output: Any) -> None:
        stack.pop()
        key = (name, calls.get(name, 0) + 1)
        calls[name], before = key[1], reading[name].pop()
        if tensors := [tensor for tensor in _tensors_in(output) if tensor.is_floating_point()]:
            trace.read[key], trace.returned[key] = before, tensors

    with hooked(model.named_modules(), begun, finished), torch.no_grad(), _Precision(stack, trace.epsilons):
        call(model, batch)
    if not trace.returned:
        raise Error("no module returned a tensor of floating point\npass call=, which computes the model on the batch")
    if loss is not None:
        trace.gradients = _gradients_of(model, batch, loss, {})
    trace.tensors = {name: tensor.detach() for name, tensor in [*model.named_parameters(), *model.named_buffers()]}
    return trace


def _gradients_of(model: Module, batch: Any, loss: Callable[[Any, Any], Tensor],
                  noise: Mapping[str, float]) -> dict[str, Tensor]:
    """With noise of these relative sizes in the outputs of modules, which shows how rounding grows on its way back."""
    def finished(name: str, output: Any) -> Any:
        if name in noise and isinstance(output, Tensor):
            random = torch.randn(output.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
            return output * (1 + noise[name] * random).to(output)
        return None

    parameters = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
    with hooked(model.named_modules(), lambda *_: None, finished), torch.enable_grad():
        found = torch.autograd.grad(number_with_graph(loss(model, batch)), list(parameters.values()), allow_unused=True)
    return {name: gradient for name, gradient in zip(parameters, found) if gradient is not None}


def _follow(model: Module, other: _Trace, batch: Any, call: Callable[[Any, Any], object], rename: Callable[[str], str],
            judge: Callable[[str, str, bool, float | None, float], None]) -> None:
    """Computes the model with what the other's modules read and returned in place of its own, and judges what it had itself:
    (module whose code it is, where it is seen, whether of its inside, relative difference, ε of the other's numbers)."""
    stack: list[_Key] = []
    calls: dict[str, int] = {}

    def put(value: Any, tensors: list[Tensor]) -> Any:
        """The value with other tensors; None if some of its tensors are where they cannot be replaced."""
        leaves, form = tree.tree_flatten(value)
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and _tensors_in(leaf)]
        if len(places) != len(tensors):
            return None
        for place, tensor in zip(places, tensors):
            leaves[place] = tensor.to(leaves[place].dtype, copy=True)
        return tree.tree_unflatten(leaves, form)

    def compare(module: str, where: str, inside: bool, mine: list[Tensor], theirs: list[Tensor]) -> bool:
        apart = [_apart(a, b) for a, b in zip(mine, theirs)]
        known = len(mine) == len(theirs) and None not in apart
        least = max((torch.finfo(one.dtype).eps for one in theirs if one.is_floating_point()), default=0.0)
        judge(module, where, inside, max((one or 0.0 for one in apart), default=0.0) if known else None, least)
        return known

    def begun(name: str, inputs: Any, keywords: Any) -> Any:
        parent = stack[-1][0] if stack else ""
        key = (name, calls.get(name, 0) + len([one for one, _ in stack if one == name]) + 1)
        stack.append(key)
        theirs = other.read.get((rename(name), key[1]))
        mine = _tensors_in(list(inputs)) + _tensors_in(keywords)
        if name and theirs is not None and compare(parent, name, False, mine, theirs):
            return put((inputs, keywords), theirs)
        return None

    def finished(name: str, output: Any) -> Any:
        key = stack.pop()
        calls[name] = calls.get(name, 0) + 1
        theirs = other.returned.get((rename(name), key[1]))
        mine = [tensor for tensor in _tensors_in(output) if tensor.is_floating_point()]
        if theirs is None or not mine:
            return None
        if not other.read:
            mine = mine[:1]  # of which outputs are stored
        return put(output, theirs) if compare(name, name, True, mine, theirs) else None

    with hooked(model.named_modules(), begun, finished), torch.no_grad():
        call(model, batch)


def _stored(first: Tensor, second: Tensor) -> bool:
    """Whether one is the other, rounded to another type."""
    return first.is_floating_point() and second.is_floating_point() and any(
        torch.equal(first.to(dtype).to(second.dtype), second) or torch.equal(second.to(dtype).to(first.dtype), first)
        for dtype in (torch.bfloat16, torch.float16, torch.float32))


def _matched(one: _Trace, other: _Trace, given: Callable[[str], str]) -> Callable[[str], str]:
    """Names of the first as those of the second: as given, and of modules that remain by the shapes of their outputs and
    weights and their order, and then of their tensors."""
    def described(trace: _Trace, taken: set[str]) -> list[tuple[str, Any]]:
        own: dict[str, list[Any]] = {}
        for name, tensor in trace.tensors.items():
            own.setdefault(name.rpartition(".")[0], []).append(sorted(tensor.shape))
        return [(name, (tuple(tensors[0].shape), str(sorted(own.get(name, [])) if one.tensors and other.tensors else "")))
                for (name, call), tensors in trace.returned.items() if call == 1 and name not in taken]

    there = {name for name, _ in other.returned}
    found = {name: given(name) for name, _ in one.returned if given(name) in there}
    mine, theirs = described(one, set(found)), described(other, set(found.values()))
    matcher = difflib.SequenceMatcher(None, [key for _, key in mine], [key for _, key in theirs], autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        found |= {mine[a + k][0]: theirs[b + k][0] for k in range(size)}
    left = [name for name in other.tensors if name not in set(map(given, one.tensors))] if other.tensors else []
    for name, tensor in one.tensors.items():
        owner, _, local = name.rpartition(".")
        if given(name) in other.tensors or owner not in found:
            continue
        theirs_of = [key for key in left if key.rpartition(".")[0] == found[owner]]
        best = next((key for key in theirs_of if key.rpartition(".")[2] == local),
                    next((key for key in theirs_of if other.tensors[key].shape == tensor.shape), None))
        if best is not None:
            found[name] = best
            left.remove(best)
    return lambda name: found.get(name, given(name))


def _apart(first: Tensor, second: Tensor) -> float | None:
    """The relative difference of two tensors; None if their shapes differ."""
    if first.shape != second.shape:
        return None
    first, second = first.double(), second.double()
    if torch.allclose(first, second, 0, 0, equal_nan=True):
        return 0.0
    larger = max(float(first.norm()), float(second.norm()))
    return float((first - second).norm()) / larger if larger else 0.0


def _compare(first: dict[Any, Tensor], second: dict[Any, Tensor], rename: Callable[[Any], Any]) -> list[TensorDifference]:
    def name(key: Any) -> str:
        return key if isinstance(key, str) else f"{key[0]} (call {key[1]})" if key[1] > 1 else str(key[0])

    found = []
    for key, tensor in first.items():
        if (other := second.get(rename(key))) is None:
            found.append(TensorDifference(name(key), None, "only in the first"))
        elif (apart := _apart(tensor, other)) is None:
            found.append(TensorDifference(name(key), None, f"shapes {tuple(tensor.shape)} and {tuple(other.shape)}"))
        else:
            found.append(TensorDifference(name(key), apart))
    matched = set(map(rename, first))
    return found + [TensorDifference(name(key), None, "only in the second") for key in second if key not in matched]


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
