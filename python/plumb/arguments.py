"""Arguments that several functions have."""

from typing import Any

import torch

from ._plumb import Error


def require_loss(loss: Any, form: str = "lambda model, batch: criterion(model(batch[0]), batch[1])") -> None:
    """Throws Error if a loss is a tensor, or a criterion such as nn.CrossEntropyLoss() alone, and says in which form to pass it."""
    if isinstance(loss, (torch.Tensor, torch.nn.modules.loss._Loss)):
        what = "tensor" if isinstance(loss, torch.Tensor) else f"{type(loss).__name__} alone"
        raise Error(f"the loss is a {what}\npass a function that computes it: {form}")
