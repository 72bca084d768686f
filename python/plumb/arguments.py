"""Arguments that several functions have."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch.optim import Optimizer
from torch.utils import _pytree as tree

from ._plumb import Error

Optimizers: TypeAlias = Optimizer | Sequence[Optimizer]


# Of a loss, by the number of its arguments.
_FORMS = ("lambda: criterion(model(x), y)", "lambda batch: criterion(model(batch[0]), batch[1])",
          "lambda model, batch: criterion(model(batch[0]), batch[1])")


def require_loss(loss: Any, arguments: int = 2) -> None:
    """Throws Error, with the form to pass it in, if a loss is a tensor or a criterion such as nn.CrossEntropyLoss() alone, or
    cannot be called with this number of arguments."""
    what = ""
    if isinstance(loss, (torch.Tensor, torch.nn.modules.loss._Loss)):
        what = "is a tensor" if isinstance(loss, torch.Tensor) else f"is a {type(loss).__name__} alone"
    else:
        try:
            inspect.signature(loss).bind(*[None] * arguments)
        except TypeError as error:
            what = f"cannot be called with {('no arguments', 'a batch alone', 'model and batch')[arguments]}: {error}"
        except ValueError:  # a built-in function without a signature
            return
    if what:
        raise Error(f"the loss {what}\npass a function that computes it: {_FORMS[arguments]}")


def number_with_graph(value: Any) -> torch.Tensor:
    """What a loss has returned; throws Error unless that is one number with its graph."""
    if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.requires_grad:
        raise Error("the loss is no single number with a graph\nreturn a mean or a sum, computed without torch.no_grad()")
    return value


def losses_of(loss: Any, arguments: int) -> list[Callable[..., torch.Tensor]]:
    """A loss, or several, as a list. Throws as `require_loss`."""
    several = isinstance(loss, Iterable) and not callable(loss) and not isinstance(loss, torch.Tensor)
    losses = list(loss) if several else [loss]
    for one in losses:
        require_loss(one, arguments)
    return losses


def require_several(batches: Any) -> None:
    """Throws Error if batches are a single one: a tensor, a dict, or a tuple of tensors that are not alike."""
    of_tensors = isinstance(batches, tuple) and all(isinstance(one, torch.Tensor) for one in batches)
    if isinstance(batches, (torch.Tensor, Mapping)) or of_tensors and len({(one.dtype, one.dim()) for one in batches}) > 1:
        raise Error("the batches are a single batch\npass a list, [batch], or a loader")


def as_tree(batch: Any) -> Any:
    """A mapping, such as a BatchEncoding of transformers, as a dict, which PyTorch's trees know."""
    return dict(batch) if isinstance(batch, Mapping) else batch


def tensors_of(batch: Any) -> list[torch.Tensor]:
    """The tensors of a batch, in order, however it is nested."""
    return [leaf for leaf in tree.tree_leaves(as_tree(batch)) if isinstance(leaf, torch.Tensor)]


def optimizers_of(optimizer: Optimizers) -> list[Optimizer]:
    """The optimizers of a loop, one or several, without the wrappers of accelerate and Lightning, which call no hooks."""
    found: list[Optimizer] = []
    several: list[Any] = [*optimizer] if isinstance(optimizer, (list, tuple)) else [optimizer]
    for one in several:
        while not hasattr(one, "_optimizer_step_pre_hooks"):
            wrapper, one = one, getattr(one, "optimizer", getattr(one, "_optimizer", None))
            if one is None:
                raise Error(f"{type(wrapper).__name__} is no optimizer of PyTorch\n"
                            "pass a torch.optim.Optimizer, or a list of several")
        found.append(one)
    if not found:
        raise Error("there is no optimizer\npass one, or a list of several")
    return found
