"""Arguments that several functions have."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch.optim import Optimizer

from ._plumb import Error

Optimizers: TypeAlias = Optimizer | Sequence[Optimizer]


def require_loss(loss: Any, form: str = "lambda model, batch: criterion(model(batch[0]), batch[1])") -> None:
    """Throws Error if a loss is a tensor, or a criterion such as nn.CrossEntropyLoss() alone, and says in which form to pass it."""
    if isinstance(loss, (torch.Tensor, torch.nn.modules.loss._Loss)):
        what = "tensor" if isinstance(loss, torch.Tensor) else f"{type(loss).__name__} alone"
        raise Error(f"the loss is a {what}\npass a function that computes it: {form}")


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
