"""Products with the Hessian and the Gauss–Newton matrix of functions that PyTorch can differentiate twice."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from . import _plumb
from ._plumb import Error


class HessianGraph:
    """The graph of a term's gradient, for products by reverse over reverse (Pearlmutter 1994): two gradients for each, and three if
    the graph is made for it. term: returns a single number with its graph."""

    def __init__(self, variables: list[Tensor], term: Callable[[], Tensor]) -> None:
        value = term()
        self._variables, self.value = variables, value.item()
        self._slopes = _gradients([value.reshape(())], variables, None, create_graph=True)
        # Whether the gradient with respect to a variable has a graph; else the term does not depend on it, or only linearly.
        self.reached = [slope.requires_grad for slope in self._slopes]

    def gradient(self) -> list[Tensor]:
        """By variable."""
        return self._slopes

    def product(self, block: Sequence[int], pieces: list[Tensor], again: bool) -> list[Tensor]:
        """With a vector, of pieces by variable, over the variables at these places. again: the graph will be used again."""
        curved = [(self._slopes[place], piece) for place, piece in zip(block, pieces) if self.reached[place]]
        if not curved:
            return [torch.zeros_like(piece) for piece in pieces]
        slopes, weights = zip(*curved)
        return _gradients(slopes, [self._variables[place] for place in block], weights, retain_graph=again)


class GaussNewtonGraph:
    """The graphs of Jᵀ·(∂²loss/∂z²)·J (Schraudolph 2002), with J the derivative of the outputs z. J·v needs no forward-mode
    differentiation: Jᵀu is linear in u, so a second backward pass, through vᵀ(Jᵀu) to u, gives it. outputs: returns a tensor of any
    shape with its graph; loss: a single number of them."""

    def __init__(self, variables: list[Tensor], outputs: Callable[[], Tensor], loss: Callable[[Tensor], Tensor]) -> None:
        self._variables, self._outputs = variables, outputs()
        self._u = torch.zeros_like(self._outputs.detach()).requires_grad_()  # any value: the derivative does not depend on it
        self._pulled = _gradients([self._outputs], variables, [self._u], create_graph=True)
        self.reached = [pulled.requires_grad for pulled in self._pulled]  # whether the outputs depend on a variable
        self._z = self._outputs.detach().requires_grad_()
        value = loss(self._z)
        self.value = value.item()
        [self._slope] = _gradients([value.reshape(())], [self._z], None, create_graph=True)
        if not self._slope.requires_grad:
            raise Error("the loss is linear in the outputs, so that its Gauss-Newton matrix is zero\n"
                        "end the outputs before the loss becomes curved: logits instead of log-probabilities")

    def gradient(self) -> list[Tensor]:
        """By variable."""
        return _gradients([self._outputs], self._variables, [self._slope.detach()], retain_graph=True)

    def product(self, block: Sequence[int], pieces: list[Tensor], again: bool) -> list[Tensor]:
        """As of a Hessian."""
        reached = [(self._pulled[place], piece) for place, piece in zip(block, pieces) if self.reached[place]]
        if not reached:
            return [torch.zeros_like(piece) for piece in pieces]
        pulled, weights = zip(*reached)
        moved = _gradients(pulled, [self._u], weights, retain_graph=True)
        curved = _gradients([self._slope], [self._z], moved, retain_graph=True)
        return _gradients([self._outputs], [self._variables[place] for place in block], curved, retain_graph=True)


Graph: TypeAlias = HessianGraph | GaussNewtonGraph


class Products:
    """The sum of such matrices, (n, n) with n the elements of all variables, which must not change.

    makers: make a term's graph. graph_memory: bytes for graphs kept between products, those of the first terms. One that is not
    kept is made again for each call, once for all of its vectors.
    """

    def __init__(self, variables: list[Tensor], makers: Sequence[Callable[[], Graph]], graph_memory: int) -> None:
        self._variables, self._makers = variables, makers
        self._kept = _keep(makers, graph_memory, variables[0].device)

    def _graph(self, place: int) -> Graph:
        return self._kept[place] if place < len(self._kept) else self._makers[place]()

    def multiply(self, vectors: Sequence[Tensor], blocks: Sequence[Sequence[int]] | None = None) -> list[Tensor]:
        """A·v for each v (n). With blocks, the places of some variables for each v, ascending: its product with the diagonal
        block of these, which needs only the part of the graph between them and the function."""
        blocks = [range(len(self._variables))] * len(vectors) if blocks is None else blocks
        pieces = [self._pieces(vector, block) for vector, block in zip(vectors, blocks)]
        products: list[Tensor | None] = [None] * len(vectors)
        for place in range(len(self._makers)):
            graph = self._graph(place)
            for j, block in enumerate(blocks):
                again = place < len(self._kept) or j + 1 < len(blocks)
                products[j] = _sum(products[j], graph.product(block, pieces[j], again))
            del graph  # before the next is made
        return [product for product in products if product is not None]

    def _pieces(self, vector: Tensor, block: Sequence[int]) -> list[Tensor]:
        """Of a flat vector, those of the variables at these places, of their shapes."""
        values = [self._variables[place] for place in block]
        if vector.dtype != values[0].dtype:
            raise Error(f"the matrix is of type {values[0].dtype}, and the vector of type {vector.dtype}\n"
                        f"convert it with vector.to({values[0].dtype})")
        return [piece.view_as(value) for value, piece in zip(values, torch.split(vector, [value.numel() for value in values]))]

    def point(self) -> tuple[float, Tensor, list[bool]]:
        """The sum of the terms, its gradient (n), and for each variable whether some graph reaches it."""
        total, gradient, reached = 0.0, torch.zeros(0), [False] * len(self._variables)
        for place in range(len(self._makers)):
            graph = self._graph(place)
            total += graph.value
            gradient = _sum(gradient if place else None, graph.gradient())
            reached = [known or new for known, new in zip(reached, graph.reached)]
            del graph
        return total, gradient, reached


def _gradients(outputs: Sequence[Tensor], inputs: Sequence[Tensor], weights: Sequence[Tensor] | None, *,
               create_graph: bool = False, retain_graph: bool = False) -> list[Tensor]:
    """Those of Σ weight·output; zeros where it does not depend on an input."""
    found = torch.autograd.grad(outputs, inputs, weights, retain_graph=retain_graph or create_graph, create_graph=create_graph,
                                allow_unused=True)
    # Zeros without a graph, unlike those of materialize_grads.
    return [torch.zeros_like(value) if gradient is None else gradient for value, gradient in zip(inputs, found)]


def _sum(total: Tensor | None, pieces: Sequence[Tensor]) -> Tensor:
    """Adds to a flat sum of such pieces, in place; without one, joins them."""
    if total is None:
        return torch.cat([piece.detach().reshape(-1) for piece in pieces])
    for part, piece in zip(torch.split(total, [piece.numel() for piece in pieces]), pieces):
        part.add_(piece.detach().reshape(-1))
    return total


def _keep(makers: Sequence[Callable[[], Graph]], budget: int, device: torch.device) -> list[Graph]:
    """The graphs of the first makers, while they hold at most `budget` bytes of the device's memory. On the CPU they also leave
    room for the derivatives of one and, unless all are kept, for one that is made again for each product."""
    kept: list[Graph] = []
    largest = 0  # memory growth caused by one, an estimate for the next
    at_first = _memory_in_use(device)

    def fit(graphs: int) -> bool:
        return device.type != "cpu" or largest == 0 or graphs * largest <= _plumb.available_memory()

    while len(kept) < len(makers):
        last = len(kept) + 1 == len(makers)
        before = _memory_in_use(device) - at_first
        if budget <= 0 or before + largest > budget or not fit(2 if last else 3):
            break
        kept.append(makers[len(kept)]())
        after = _memory_in_use(device) - at_first
        largest = max(largest, after - before)
        if after > budget or not (last or fit(2)):
            kept.pop()
            break
    return kept


def _memory_in_use(device: torch.device) -> int:
    if device.type == "cpu":
        return _plumb.allocated_memory()
    allocated: Any = getattr(getattr(torch, device.type, None), "memory_allocated", lambda device: 0)
    return int(allocated(device))
