"""The Hessian of a loss and its Gauss–Newton matrix: products with vectors, and spectra. The solver is Plumb's."""

import contextlib
import functools
import itertools
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias, TypedDict, Unpack, overload

import torch
from torch import Tensor

from ._plumb import Error
from .arguments import losses_of, require_several
from .leaving import eager
from .products import GaussNewtonGraph, HessianGraph, Products
from .results import Spectra, Spectrum, some
from .solver import Progress, dense_spectrum, spectra

Loss: TypeAlias = Callable[..., Tensor] | Iterable[Callable[[], Tensor]]
Outputs: TypeAlias = Callable[..., Tensor]
Parameters: TypeAlias = torch.nn.Module | Tensor | Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Mapping[str, Tensor]
By: TypeAlias = str | Mapping[str, str | Tensor | Iterable[str | Tensor]]
Vector: TypeAlias = Tensor | Sequence[Tensor] | Mapping[str, Tensor]


class _Options(TypedDict, total=False):
    steps: int
    probes: int
    seed: int
    tolerance: float
    dense: bool
    sigma: float
    basis_directory: str | PathLike[str]
    progress: Progress | None


_GRAPH_MEMORY = 6 << 30
_TABLE = 1 << 16  # from so many elements on, a parameter is summed without a copy

_ONCE_DIFFERENTIABLE = "write the function's backward with operations of PyTorch, without @once_differentiable"
# What PyTorch says of a loss that it cannot differentiate twice, and what to do about it.
_ONCE = (
    (
        r"derivative for '?aten::_(scaled_dot_product|flash|efficient|cudnn)\w*attention\w*'? is not implemented",
        "fused attention has no second derivative: compute the loss, or call plumb, within\n"
        "`with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):`",
    ),
    (
        r"does not currently support double backward|donated buffer",
        "compiled functions have none: measure the model before torch.compile, which is ._orig_mod of the compiled one",
    ),
    (r"backward through the graph a second time", "return the loss, computed anew at each call, without calling backward()"),
    (r"once_differentiable", _ONCE_DIFFERENTIABLE),
    (r"derivative for .* is not implemented", "replace this operation by others of PyTorch"),
)


@overload
def spectrum(loss: Loss, parameters: Parameters, *, outputs: Outputs | None = None, batches: Iterable[Any] | None = None,
             graph_memory: int = _GRAPH_MEMORY, by: None = None, **options: Unpack[_Options]) -> Spectrum: ...
@overload
def spectrum(loss: Loss, parameters: Parameters, *, outputs: Outputs | None = None, batches: Iterable[Any] | None = None,
             graph_memory: int = _GRAPH_MEMORY, by: By, **options: Unpack[_Options]) -> Spectra: ...
def spectrum(loss: Loss, parameters: Parameters, *, outputs: Outputs | None = None, batches: Iterable[Any] | None = None,
             graph_memory: int = _GRAPH_MEMORY, **options: Any) -> Any:
    """The spectrum of a loss's Hessian: `Hessian(loss, parameters, …).spectrum(…)`, which explain the arguments; with `outputs`
    that of its Gauss–Newton matrix: `GaussNewton(loss, parameters, outputs=outputs, …).spectrum(…)`."""
    if outputs is not None:
        return GaussNewton(loss, parameters, outputs=outputs, batches=batches, graph_memory=graph_memory).spectrum(**options)
    return Hessian(loss, parameters, batches=batches, graph_memory=graph_memory).spectrum(**options)


@overload
def hvp(loss: Loss, parameters: Parameters, vector: Tensor, *, batches: Iterable[Any] | None = None) -> Tensor: ...
@overload
def hvp(loss: Loss, parameters: Parameters, vector: Sequence[Tensor], *,
        batches: Iterable[Any] | None = None) -> list[Tensor]: ...
@overload
def hvp(loss: Loss, parameters: Parameters, vector: Mapping[str, Tensor], *,
        batches: Iterable[Any] | None = None) -> dict[str, Tensor]: ...
def hvp(loss: Loss, parameters: Parameters, vector: Vector, *, batches: Iterable[Any] | None = None) -> Any:
    """The product of a loss's Hessian with a vector. For several products keep a `Hessian`, which keeps the graph."""
    return Hessian(loss, parameters, batches=batches) @ vector


class _Matrix:
    """A symmetric matrix over all parameters in order, n elements."""

    _name: str
    _operator: Products

    def __init__(self, parameters: Parameters) -> None:
        self._module = parameters if isinstance(parameters, torch.nn.Module) else None
        self.parameters = _named(parameters)

    def _measure_point(self, compare_loss: Callable[[], object]) -> list[str]:
        """Loss and gradient at the parameters; the names of those without a row in the matrix."""
        self._compare_loss = compare_loss  # with what it was at its first call
        compare_loss()
        self.loss, self.gradient, curved = self._operator.point()
        self._require_finite(self.gradient, "gradient of the loss")
        self.shape = (self.gradient.numel(),) * 2
        self.dtype, self.device = self.gradient.dtype, self.gradient.device
        self._place, self._checksum = self._places(), self._sums()
        return [name for name, curves in zip(self.parameters, curved) if not curves]

    @overload
    def __matmul__(self, vector: Tensor) -> Tensor: ...
    @overload
    def __matmul__(self, vector: Sequence[Tensor]) -> list[Tensor]: ...
    @overload
    def __matmul__(self, vector: Mapping[str, Tensor]) -> dict[str, Tensor]: ...
    def __matmul__(self, vector: Vector) -> Any:
        """The product with v of shape (n), or V of shape (n, k), or for tensors with the parameters' shapes (a list or a dict),
        which then give the same."""
        if isinstance(vector, torch.Tensor):
            if len(vector) != self.shape[0]:
                raise _error(f"the vector has {len(vector):,} elements, and the {self._name} {self.shape[0]:,} rows")
            columns = vector.detach().to(self.device).reshape(len(vector), -1).unbind(1)
            products = self._multiply([column.contiguous() for column in columns])
            return torch.stack(products, 1).reshape(vector.shape)
        pieces = vector if isinstance(vector, Mapping) else dict(itertools.zip_longest(self.parameters, vector))
        shapes = {name: tensor.shape for name, tensor in self.parameters.items()}
        if {name: getattr(piece, "shape", None) for name, piece in pieces.items()} != shapes:
            raise _error("the vector's tensors do not have the names and shapes of the parameters",
                         f"pass a tensor of {self.shape[0]:,} elements, or tensors like the parameters")
        flat = torch.cat([pieces[name].detach().reshape(-1) for name in shapes])
        split = torch.split(self._multiply([flat.to(self.device)])[0], [shape.numel() for shape in shapes.values()])
        product = {name: piece.reshape(shapes[name]) for name, piece in zip(shapes, split)}
        return product if isinstance(vector, Mapping) else list(product.values())

    def _multiply(self, vectors: list[Tensor]) -> list[Tensor]:
        self._require_unchanged()
        if not all(vector.isfinite().all() for vector in vectors):
            raise _error("the vector has elements that are not finite")
        with _explained():
            products = self._operator.multiply(vectors)
        for product in products:
            self._require_finite(product, f"product of the {self._name}")
        return products

    def _require_finite(self, vector: Tensor, what: str) -> None:
        if vector.isfinite().all():
            return
        pieces = torch.split(vector, [tensor.numel() for tensor in self.parameters.values()])
        names = [name for name, piece in zip(self.parameters, pieces) if not piece.isfinite().all()]
        raise _error(f"the {what} is not finite in {some(names)}",
                     "a derivative overflows there, or is infinite, as those of a square root or a norm at 0")

    @overload
    def spectrum(self, *, by: None = None, **options: Unpack[_Options]) -> Spectrum: ...
    @overload
    def spectrum(self, *, by: By, **options: Unpack[_Options]) -> Spectra: ...
    def spectrum(self, *, by: By | None = None, steps: int = 80, probes: int = 3, seed: int = 0, tolerance: float = 0.0,
                 dense: bool = False, sigma: float = 0.0, basis_directory: str | PathLike[str] = "",
                 progress: Progress | None = None) -> Any:
        """Extreme eigenvalues, trace and density by the Lanczos process, from `probes` random starts of `steps` products.

        by: groups of parameters, for the spectra of all their diagonal blocks in one pass, as `Spectra`: a regular
            expression, of which what it finds in a name (or its first group) names the group, such as r"layers\\.\\d+"; or
            a dict of regular expressions or tensors. A parameter that none finds is in no block.
        tolerance: a probe ends early once both residuals are below this fraction of the largest magnitude; 0: never.
        dense: all eigenvalues instead, by one product per parameter (up to 16,384).
        sigma: width of the density's kernel; 0: a hundredth of the range.
        basis_directory: keeps the basis, n·steps elements, in a file there instead of in memory (CPU only).
        progress: called with (products done, planned, what is known so far).
        """
        if by is not None and dense:
            raise _error("blocks are measured by Lanczos", "for all eigenvalues of one block, pass its parameters alone")
        self._require_unchanged()
        begin = time.perf_counter()
        names = list(self.parameters)
        groups = {"": list(range(len(names)))} if by is None else _groups(by, self.parameters)
        blocks, sizes = list(groups.values()), [tensor.numel() for tensor in self.parameters.values()]
        with _explained():
            self._compare_loss()
            if dense:
                found = [dense_spectrum(lambda v: self._operator.multiply([v])[0], self.shape[0], self.gradient, sigma, progress)]
            else:
                found = spectra(lambda vectors, which: self._operator.multiply(vectors, [blocks[place] for place in which]),
                                [sum(sizes[place] for place in block) for block in blocks], self.gradient,
                                min(steps, self.shape[0]) if by is None else steps, steps=steps, probes=probes, seed=seed,
                                tolerance=tolerance, directory=str(basis_directory), sigma=sigma, progress=progress)
        seconds = time.perf_counter() - begin
        gradients = torch.split(self.gradient.double(), sizes)
        results = Spectra()
        for (label, places), one in zip(groups.items(), found):
            gradient = torch.cat([gradients[place] for place in places])
            results[label] = Spectrum._of(
                one, matrix=self._name, parameters=gradient.numel(), dtype=str(self.dtype).removeprefix("torch."), loss=self.loss,
                gradient_norm=gradient.norm().item(), seed=seed, seconds=seconds,
            )
        return results[""] if by is None else results

    def _require_unchanged(self) -> None:
        if self._places() != self._place or not torch.equal(self._sums(), self._checksum):
            raise _error(f"the parameters have changed since this {self._name} was made", "make a new one after each step")

    def _places(self) -> list[tuple[int, int, int]]:
        """Which tensors the parameters are, in which memory, and how often they were written."""
        tensors = self.parameters.values() if self._module is None else self._module.parameters()
        return [(id(tensor), tensor.data_ptr(), tensor._version) for tensor in tensors]

    def _sums(self) -> Tensor:
        """Sums of all bits over the rows and columns of tables, since writes through .data or NumPy count as none. Their width is
        odd, so that the same change of all does not cancel out."""
        flat = [tensor.detach().reshape(-1).view(torch.int32) for tensor in self.parameters.values()]
        small = torch.cat([flat[0][:0], *(bits for bits in flat if len(bits) < _TABLE)])
        sums = []
        for bits in (small, *(bits for bits in flat if len(bits) >= _TABLE)):
            width = math.isqrt(len(bits)) | 1
            table = bits[:len(bits) // width * width].view(len(bits) // width, width)
            sums += [table.sum(0, dtype=torch.int32), table.sum(1, dtype=torch.int32), bits[table.numel():]]
        return torch.cat(sums)

    def __repr__(self) -> str:
        return f"{self._name} of {self.shape[0]:,} parameters ({str(self.dtype).removeprefix('torch.')}, {self.device})"


class Hessian(_Matrix):
    """The Hessian of a loss as a linear operator over all parameters in order, n elements.

    loss: a function without arguments that returns one number with its graph, computed anew at each call; or several, whose
        mean is measured, because they do not fit in memory at once. With `batches`: a function of one batch.
    parameters: a module, tensors, pairs of names and tensors, or a dict of them; float32 or float64, on one device.
    graph_memory: bytes for graphs kept between products. Each loss whose graph does not fit is computed again for each
        product, at three gradients instead of two.

    The parameters must not change while the object is in use. `loss` and `gradient` (n) are those at the parameters.
    """

    _name = "Hessian"

    def __init__(self, loss: Loss, parameters: Parameters, *, batches: Iterable[Any] | None = None,
                 graph_memory: int = _GRAPH_MEMORY) -> None:
        super().__init__(parameters)
        terms = _terms(loss, batches)
        with _explained():
            variables = list(self.parameters.values())
            makers = [functools.partial(HessianGraph, variables, term) for term in terms]
            self._operator = Products(variables, makers, graph_memory)
            flat = self._measure_point(terms[0])
        if len(flat) == len(self.parameters):
            raise _error(
                "the gradient of the loss does not depend on the parameters, so that the Hessian is zero",
                "the loss is linear in them, or the backward pass of some function of your own is not differentiable",
            )
        if flat:
            raise _error(
                f"the loss does not depend on {some(flat)}, or only linearly",
                "pass only the other parameters; the rows and columns of the Hessian for these are zero",
            )


class GaussNewton(_Matrix):
    """The Gauss–Newton matrix of a loss, as a linear operator: G = Jᵀ·(∂²loss/∂z²)·J with z the outputs and J = ∂z/∂θ, which is
    the Hessian without the curvature of the outputs. For cross-entropy of logits it is the Fisher matrix, and positive
    semidefinite for any loss that is convex in the outputs.

    loss: a function of the outputs that returns one number. With `batches`: loss(outputs, batch), whose mean is measured.
    outputs: a function without arguments that returns a tensor of any shape with its graph, computed anew at each call; with
        `batches`, outputs(batch).

    The rest is as of `Hessian`. A kept graph costs a gradient and a product with J for each product.
    """

    _name = "Gauss–Newton matrix"

    def __init__(self, loss: Loss, parameters: Parameters, *, outputs: Outputs, batches: Iterable[Any] | None = None,
                 graph_memory: int = _GRAPH_MEMORY) -> None:
        super().__init__(parameters)
        if not callable(loss):
            raise _error("the loss is no function of the outputs", "for several, pass batches")
        require_several(batches)
        given: list[tuple[Any, ...]] = [()] if batches is None else [(batch,) for batch in batches]
        if not given:
            raise _error("there are no batches to compute a loss from")
        terms = []
        for rest in given:
            terms.append((_outputs(functools.partial(outputs, *rest)), _Term(_of_outputs(loss, rest), 1 / len(given))))
        with _explained():
            variables = list(self.parameters.values())
            makers = [functools.partial(GaussNewtonGraph, variables, *term) for term in terms]
            self._operator = Products(variables, makers, graph_memory)
            of_outputs, of_loss = terms[0]
            flat = self._measure_point(lambda: of_loss(of_outputs()))
        if flat:
            raise _error(f"the outputs do not depend on {some(flat)}",
                         "pass only the other parameters; the rows and columns of the matrix for these are zero")


class _Term:
    """A loss, checked at each call, as a share of the mean."""

    def __init__(self, closure: Callable[..., Tensor], share: float) -> None:
        self.closure, self.share = closure, share
        self.first: float | None = None

    def __call__(self, *outputs: Tensor) -> Tensor:
        loss = self.closure(*outputs)
        if not isinstance(loss, torch.Tensor):
            raise _error(f"the loss is of type {type(loss).__name__}",
                         "return a tensor with its graph, such as output.loss of a model of transformers, not loss.item()")
        if loss.numel() != 1:
            raise _error(f"the loss has shape {tuple(loss.shape)}", "return a single number, such as its mean")
        if not loss.requires_grad:
            raise _error("the loss has no graph", "compute it from the parameters, without torch.no_grad() and detach()")
        value = loss.item()
        if not math.isfinite(value):
            raise _error(f"the loss is {value}", "find out where it stops being finite, for example with "
                         "torch.autograd.detect_anomaly()")
        if self.first is None:
            self.first = value
            _require_twice(loss)
        rounding = 1e-10 if loss.dtype == torch.float64 else 1e-5
        if abs(value - self.first) > rounding * max(abs(value), abs(self.first)):
            raise _error(f"the loss changes from call to call: {self.first:.8g}, then {value:.8g}",
                         "call model.eval(), which switches dropout off, and compute it from the same batch each time")
        return loss * self.share


def _of_outputs(loss: Callable[..., Tensor], rest: tuple[Any, ...]) -> Callable[[Tensor], Tensor]:
    return lambda outputs: loss(outputs, *rest)


def _outputs(closure: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """The outputs, checked at each call."""

    def checked() -> Tensor:
        outputs = closure()
        if not isinstance(outputs, torch.Tensor):
            raise _error(f"the outputs are of type {type(outputs).__name__}", "return a tensor with its graph, such as the logits")
        if not outputs.requires_grad:
            raise _error("the outputs have no graph", "compute them from the parameters, without torch.no_grad() and detach()")
        return outputs
    return checked


def _terms(loss: Loss, batches: Iterable[Any] | None) -> list[_Term]:
    closures = losses_of(loss, 0 if batches is None else 1)
    if batches is not None:
        require_several(batches)
        if not callable(loss):
            raise _error("with batches, the loss is one function of a batch")
        closures = [functools.partial(loss, batch) for batch in batches]
    if not closures:
        raise _error("there are no batches to compute a loss from")
    return [_Term(closure, 1 / len(closures)) for closure in closures]


def _named(parameters: Any) -> dict[str, Tensor]:
    """The parameters by name, all fit to be differentiated."""
    if isinstance(parameters, torch.nn.Module):
        parameters = parameters.named_parameters()
    if isinstance(parameters, (torch.Tensor, str)):
        parameters = [parameters]
    entries = list(parameters.items() if isinstance(parameters, Mapping) else parameters)
    named: dict[str, Tensor] = dict(entry if isinstance(entry, tuple) else (str(i), entry) for i, entry in enumerate(entries))
    if not named:
        raise _error("there are no parameters", "pass the module, or list(model.parameters()): a generator is empty once used")
    for name, tensor in named.items():
        if not isinstance(tensor, torch.Tensor):
            raise _error(f"parameter {name} is of type {type(tensor).__name__}", "pass the module, or tensors")
        if tensor.is_inference():
            raise _error(f"{name} was made in torch.inference_mode(), where nothing can be differentiated",
                         "make or load the model outside of it")
    if len({id(tensor) for tensor in named.values()}) != len(entries):
        raise _error("a parameter occurs twice, or two have the same name")
    frozen = [name for name, tensor in named.items() if not tensor.requires_grad]
    if frozen:
        raise _error(f"no gradient is computed for {some(frozen)}",
                     "pass {n: p for n, p in model.named_parameters() if p.requires_grad}, or call requires_grad_(True)")
    first = next(iter(named.values()))
    for name, tensor in named.items():
        if tensor.dtype not in (torch.float32, torch.float64):
            raise _error(f"{name} is of type {tensor.dtype}", "convert the model with model.float() or model.double()")
        if (tensor.dtype, tensor.device) != (first.dtype, first.device):
            raise _error(f"{name} is of type {tensor.dtype} on {tensor.device}, and the first parameter of type {first.dtype} "
                         f"on {first.device}", "all must have one type, on one device")
    return named


def _groups(by: By, parameters: dict[str, Tensor]) -> dict[str, list[int]]:
    """The places of each group's parameters."""
    names = list(parameters)
    groups: dict[str, list[int]] = {}
    if isinstance(by, str):
        for place, name in enumerate(names):
            if match := re.search(by, name):
                groups.setdefault(match[1] if match.re.groups else match[0], []).append(place)
        if not groups:
            raise _error(f"no name of a parameter matches {by!r}", f"the names are {some(names)}")
        return groups
    for label, members in by.items():
        members = [members] if isinstance(members, (str, torch.Tensor)) else list(members)
        patterns = [member for member in members if isinstance(member, str)]
        chosen = {id(member) for member in members if isinstance(member, torch.Tensor)}
        groups[label] = [place for place, name in enumerate(names)
                         if id(parameters[name]) in chosen or any(re.search(pattern, name) for pattern in patterns)]
        if not groups[label] or len(chosen - {id(tensor) for tensor in parameters.values()}):
            raise _error(f"the group {label!r} has no parameters, or some that were not passed",
                         f"the names are {some(names)}")
    return groups


def _error(what: str, hint: str = "") -> Error:
    return Error(f"{what}\n{hint}" if hint else what)


def _require_twice(loss: Tensor) -> None:
    """A function marked as differentiable once gives no error, but wrong second derivatives, where the gradient that reaches
    it is a constant."""
    seen: set[Any] = set()
    nodes: list[Any] = [loss.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        nodes += [following for following, _ in node.next_functions]
        if node.name() == "CheckpointFunctionBackward":
            raise _error("the loss cannot be differentiated twice: it has a torch.utils.checkpoint(…, use_reentrant=True)",
                         "pass use_reentrant=False, or measure without checkpointing")
        function: Any = getattr(node, "_forward_cls", None)
        code = getattr(getattr(function, "backward", None), "__code__", None)
        if code is not None and code.co_qualname.startswith("once_differentiable."):
            raise _error(f"the loss cannot be differentiated twice: {function.__name__} is differentiable once",
                         _ONCE_DIFFERENTIABLE)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Computes graphs, also within torch.no_grad() and torch.inference_mode(), and says what to do if PyTorch cannot
    differentiate a loss twice."""
    try:
        with torch.inference_mode(False), torch.enable_grad(), eager():
            yield
    except Error:
        raise
    except RuntimeError as error:
        text = str(error)
        for pattern, hint in _ONCE:
            if re.search(pattern, text):
                raise _error(f"the loss cannot be differentiated twice: {text.splitlines()[0]}", hint) from error
        raise
