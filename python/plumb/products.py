"""Products with the Hessian and the Gauss–Newton matrix of functions that PyTorch can differentiate twice."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from . import _plumb
from ._plumb import Error

Term = TypeVar("Term")
Kept = TypeVar("Kept")


class Products(Generic[Term, Kept]):
    """The matrix of the sum of the terms with respect to the variables, flattened: (n, n). The variables must not change.

    graph_memory: bytes for graphs kept between products, those of the first terms. One that is not kept is computed again for
        each call, once for all of its vectors.
    """

    def __init__(self, variables: list[Tensor], terms: Sequence[Term], graph_memory: int) -> None:
        self._variables, self._terms = variables, terms
        self._kept = _keep_graphs(len(terms), graph_memory, variables[0].device, lambda place: self._graph(terms[place]))

    def _graph(self, term: Term) -> Kept:
        raise NotImplementedError

    def _each(self) -> Iterator[tuple[Kept, bool]]:
        """The terms' graphs, and whether each will be used again."""
        for place, term in enumerate(self._terms):
            kept = place < len(self._kept)
            yield self._kept[place] if kept else self._graph(term), kept

    @property
    def kept(self) -> int:
        """How many terms' graphs are kept between products."""
        return len(self._kept)

    def size_of(self, block: Sequence[int]) -> int:
        """Elements of the variables at these places."""
        return sum(self._variables[place].numel() for place in block)

    def _pieces(self, vector: Tensor, block: Sequence[int]) -> list[Tensor]:
        """Of a flat vector, those of the variables at these places, of their shapes."""
        dtype = self._variables[0].dtype
        if vector.dtype != dtype:
            raise Error(f"the matrix is of type {dtype}, and the vector of type {vector.dtype}\nconvert it with vector.to({dtype})")
        values = [self._variables[place] for place in block]
        return [piece.view_as(value) for value, piece in zip(values, torch.split(vector, [value.numel() for value in values]))]

    def multiply(self, vectors: Sequence[Tensor], blocks: Sequence[Sequence[int]] | None = None) -> list[Tensor]:
        """A·v for each v (n). With blocks, the places of some variables for each v, ascending: its product with the diagonal
        block of these, which needs only the part of the graph between them and the function."""
        blocks = [range(len(self._variables))] * len(vectors) if blocks is None else blocks
        pieces = [self._pieces(vector, block) for vector, block in zip(vectors, blocks)]
        products = [torch.zeros(0)] * len(vectors)
        for begun, (graph, kept) in enumerate(self._each()):
            for j, block in enumerate(blocks):
                found = self._product(graph, pieces[j], block, kept or j + 1 < len(blocks))
                if begun:
                    _add(products[j], found)
                else:
                    products[j] = _joined(found)
        return products

    def _product(self, graph: Kept, pieces: list[Tensor], block: Sequence[int], again: bool) -> list[Tensor]:
        """`again`: the graph will be used again."""
        raise NotImplementedError

    def point(self) -> tuple[float, Tensor, list[bool]]:
        """The sum of the terms, its gradient (n), and for each variable whether some graph reaches it: the gradient's with respect
        to it for a Hessian, which a variable has not that affects the terms only linearly; else that of some outputs."""
        total, sums, reached = 0.0, torch.zeros(0), [False] * len(self._variables)
        for begun, (graph, _) in enumerate(self._each()):
            value, gradient, reaches = self._point(graph)
            total += value
            reached = [known or new for known, new in zip(reached, reaches)]
            if begun:
                _add(sums, gradient)
            else:
                sums = _joined(gradient)
        return total, sums, reached

    def _point(self, graph: Kept) -> tuple[float, list[Tensor], list[bool]]:
        raise NotImplementedError


class HessianProducts(Products[Callable[[], Tensor], tuple[float, list[Tensor]]]):
    """The Hessian, by reverse over reverse (Pearlmutter 1994). Terms: functions that return a single number with its graph, which
    costs two gradients per product if it is kept, and three if not."""

    def _graph(self, term: Callable[[], Tensor]) -> tuple[float, list[Tensor]]:
        value = term()
        return value.item(), _gradients([value.reshape(())], self._variables, None, create_graph=True)

    def _product(self, graph: tuple[float, list[Tensor]], pieces: list[Tensor], block: Sequence[int],
                 again: bool) -> list[Tensor]:
        # A constant part of the gradient has no graph and adds nothing.
        curved = [(graph[1][place], piece) for place, piece in zip(block, pieces) if graph[1][place].requires_grad]
        if not curved:
            return [torch.zeros_like(piece) for piece in pieces]
        outputs, weights = zip(*curved)
        return _gradients(outputs, [self._variables[place] for place in block], weights, retain_graph=again)

    def _point(self, graph: tuple[float, list[Tensor]]) -> tuple[float, list[Tensor], list[bool]]:
        return *graph, [piece.requires_grad for piece in graph[1]]


class _Composed:
    """The graph of a loss of outputs: of J = ∂outputs/∂variables, and of the loss's slope at the outputs.

    Products with J need no forward-mode differentiation: Jᵀu is linear in u, so a second backward pass, through vᵀ(Jᵀu) to u,
    gives J·v.
    """

    def __init__(self, outputs: Tensor, loss: Callable[[Tensor], Tensor], variables: list[Tensor]) -> None:
        self.outputs = outputs
        self._u = torch.zeros_like(outputs.detach()).requires_grad_()  # any value: the derivative does not depend on it
        self.pulled = _gradients([outputs], variables, [self._u], create_graph=True)
        self._z = outputs.detach().requires_grad_()
        value = loss(self._z)
        self.value = value.item()
        [self.slope] = _gradients([value.reshape(())], [self._z], None, create_graph=True)
        if not self.slope.requires_grad:
            raise Error("the loss is linear in the outputs, so that its Gauss-Newton matrix is zero\n"
                        "end the outputs before the loss becomes curved: logits instead of log-probabilities")

    def curved(self, block: Sequence[int], pieces: list[Tensor]) -> Tensor:
        """(∂²loss/∂z²)·J·v, of the outputs' shape."""
        reached = [(self.pulled[place], piece) for place, piece in zip(block, pieces) if self.pulled[place].requires_grad]
        if not reached:
            return torch.zeros_like(self._z)
        pulled, weights = zip(*reached)
        moved = _gradients(pulled, [self._u], weights, retain_graph=True)
        return _gradients([self.slope], [self._z], moved, retain_graph=True)[0]


class GaussNewtonProducts(Products[tuple[Callable[[], Tensor], Callable[[Tensor], Tensor]], _Composed]):
    """The Gauss–Newton matrix Jᵀ·(∂²loss/∂z²)·J (Schraudolph 2002): the Hessian without the curvature of the outputs. Terms:
    outputs z of any shape with their graph, and a single number that is computed from them."""

    def _graph(self, term: tuple[Callable[[], Tensor], Callable[[Tensor], Tensor]]) -> _Composed:
        return _Composed(term[0](), term[1], self._variables)

    def _product(self, graph: _Composed, pieces: list[Tensor], block: Sequence[int], again: bool) -> list[Tensor]:
        values = [self._variables[place] for place in block]
        return _gradients([graph.outputs], values, [graph.curved(block, pieces)], retain_graph=True)

    def _point(self, graph: _Composed) -> tuple[float, list[Tensor], list[bool]]:
        gradient = _gradients([graph.outputs], self._variables, [graph.slope.detach()], retain_graph=True)
        return graph.value, gradient, [piece.requires_grad for piece in graph.pulled]


def _gradients(outputs: Sequence[Tensor], inputs: Sequence[Tensor], weights: Sequence[Tensor] | None, *,
               create_graph: bool = False, retain_graph: bool = False) -> list[Tensor]:
    """Those of Σ weight·output; zeros where it does not depend on an input."""
    found = torch.autograd.grad(outputs, inputs, weights, retain_graph=retain_graph or create_graph, create_graph=create_graph,
                                allow_unused=True)
    # Zeros without a graph, unlike those of materialize_grads.
    return [torch.zeros_like(value) if gradient is None else gradient for value, gradient in zip(inputs, found)]


def _joined(pieces: Sequence[Tensor]) -> Tensor:
    return torch.cat([piece.detach().reshape(-1) for piece in pieces])


def _add(total: Tensor, pieces: Sequence[Tensor]) -> None:
    """Adds to the flat sum of such pieces."""
    for place, piece in zip(torch.split(total, [piece.numel() for piece in pieces]), pieces):
        place.add_(piece.detach().reshape(-1))


def _keep_graphs(count: int, budget: int, device: torch.device, make: Callable[[int], Kept]) -> list[Kept]:
    """make(0), make(1), … up to make(count - 1), while they hold at most `budget` bytes of the device's memory. On the CPU they
    also leave room for the derivatives of one and, unless all are kept, for one that is computed again for each product."""
    kept: list[Kept] = []
    largest = 0  # memory growth caused by one, an estimate for the next
    held = _memory_in_use(device)
    at_first = held()

    def fit(graphs: int) -> bool:
        return device.type != "cpu" or largest == 0 or graphs * largest <= _plumb.available_memory()

    while len(kept) < count:
        last = len(kept) + 1 == count
        before = held() - at_first
        if budget <= 0 or before + largest > budget or not fit(2 if last else 3):
            break
        kept.append(make(len(kept)))
        after = held() - at_first
        largest = max(largest, after - before)
        if after > budget or not (last or fit(2)):
            kept.pop()
            break
    return kept


def _memory_in_use(device: torch.device) -> Callable[[], int]:
    if device.type == "cpu":
        return _plumb.allocated_memory
    allocated: Any = getattr(getattr(torch, device.type, None), "memory_allocated", lambda device: 0)
    return lambda: int(allocated(device))
