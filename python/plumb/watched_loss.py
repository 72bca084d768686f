"""What a model's loss is computed from: the labels and logits of its cross-entropy, and the tokens and states behind them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


@dataclass(frozen=True)
class Lookup:
    """Tokens (sequences, length) that an embedding has read."""

    embedding: nn.Embedding
    tokens: Tensor


@dataclass(frozen=True)
class WatchedLoss:
    """The cross-entropy of a loss. logits: (rows, classes); labels: (rows), of which `counted` are not ignored. `mean`: whether it
    is the plain mean over these. states: what the last linear layer, `head`, has read to compute the logits, if it is one."""

    logits: Tensor
    labels: Tensor
    counted: Tensor
    value: float
    mean: bool
    head: str
    states: Tensor | None
    lookups: tuple[Lookup, ...]

    def next_tokens(self) -> Lookup | None:
        """The tokens of which each label is the next one, if there are such."""
        for lookup in self.lookups:
            count, length = lookup.tokens.shape
            if self.labels.numel() not in (count * length, count * (length - 1)):
                continue
            labels, counted = (rows.view(count, -1)[:, :length - 1] for rows in (self.labels, self.counted))
            same = (labels == lookup.tokens[:, 1:].to(labels.device))[counted]
            if same.numel() and float(same.float().mean()) > 0.99:
                return lookup
        return None


class _Watching(TorchFunctionMode):
    def __init__(self, changed: Lookup | None) -> None:
        super().__init__()
        self.changed = changed
        self.lookups: list[Lookup] = []
        self.last: tuple[str, Tensor, Tensor] | None = None  # the last linear layer, with what it read and returned
        self.found: list[WatchedLoss] = []

    def read(self, embedding: Any, inputs: Any) -> Any:
        tokens = inputs[0] if inputs else None
        if not isinstance(tokens, Tensor) or tokens.dim() != 2 or tokens.shape[1] < 3 or tokens.is_floating_point():
            return None
        if self.changed is not None and self.changed.embedding is embedding:
            tokens = tokens.clone()
            tokens[:, -1] = (tokens[:, -1] + 1) % embedding.num_embeddings
        self.lookups.append(Lookup(embedding, tokens))
        return (tokens, *inputs[1:])

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        value = func(*args, **kwargs)
        if func is nn.functional.cross_entropy and len(args) > 1 and args[1].dim() == args[0].dim() - 1 > 0:
            logits = args[0].detach().movedim(1, -1).flatten(0, -2)
            labels = args[1].detach().flatten()
            name, read, result = self.last or ("", None, None)
            plain = kwargs.get("reduction", "mean") == "mean" and kwargs.get("weight") is None
            self.found.append(WatchedLoss(
                logits, labels, labels != kwargs.get("ignore_index", -100), float(value.detach()) if value.numel() == 1 else math.nan,
                plain and not kwargs.get("label_smoothing"), name,
                read if result is not None and result.shape[-1] == logits.shape[-1] else None, tuple(self.lookups)))
        return value


def watch_loss(model: nn.Module, compute: Callable[[], object], changed: Lookup | None = None) -> WatchedLoss | None:
    """The only cross-entropy of classes that `compute` computes with the model. `changed`: an embedding that reads another last
    token of each sequence."""
    watching = _Watching(changed)
    hooks: list[Any] = []
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding):
            hooks.append(module.register_forward_pre_hook(watching.read))
        elif isinstance(module, nn.Linear):
            def keep(_: Any, inputs: Any, result: Tensor, name: str = name) -> None:
                watching.last = (name, inputs[0].detach(), result) if inputs else None
            hooks.append(module.register_forward_hook(keep))
    try:
        with watching:
            compute()
    finally:
        for hook in hooks:
            hook.remove()
    return watching.found[0] if len(watching.found) == 1 else None
