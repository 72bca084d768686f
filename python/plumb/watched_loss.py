"""What a model's loss is computed from: the labels and scores of its cross-entropy, and the tokens and states behind them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


@dataclass(frozen=True)
class Lookup:
    """Tokens that an embedding has read; weight: (rows, width)."""

    weight: Tensor
    tokens: Tensor


@dataclass(frozen=True)
class WatchedLoss:
    """A cross-entropy of classes. scores: (rows, classes); labels: (rows), of which `counted` are not `ignored`. `mean`: whether
    it is the plain mean over these. states: what the last linear layer, `head`, has read to compute the scores, if it is one."""

    scores: Tensor
    labels: Tensor
    ignored: int
    value: float
    mean: bool
    head: str
    states: Tensor | None

    @property
    def counted(self) -> Tensor:
        return self.labels != self.ignored

    def ahead(self, tokens: Tensor) -> int | None:
        """By how many places labels are ahead of the tokens (sequences, length) that the model reads; None: they are others."""
        if tokens.dim() != 2 or tokens.shape[1] < 3 or self.labels.numel() % len(tokens):
            return None
        labels, counted = (rows.view(len(tokens), -1) for rows in (self.labels, self.counted))
        for ahead in (1, 0, 2) if labels.shape == tokens.shape else (1,):
            length = min(labels.shape[1], tokens.shape[1] - ahead)
            same = labels[:, :length] == tokens[:, ahead:ahead + length].to(labels.device)
            same = same[counted[:, :length]]
            if length > 1 and same.numel() and float(same.float().mean()) > 0.99:
                return ahead
        return None


class LossWatch(TorchFunctionMode):
    """Remembers the cross-entropies that are computed within it with a model, and the lookups before them. `changed`: a lookup that
    reads another last token of each sequence."""

    def __init__(self, model: nn.Module, changed: Lookup | None = None) -> None:
        super().__init__()
        self.losses: list[WatchedLoss] = []
        self.lookups: list[Lookup] = []
        self._changed = changed
        self._last: tuple[str, Tensor, Tensor] | None = None  # the last linear layer, with what it read and returned
        self._layers = [(name, module) for name, module in model.named_modules() if isinstance(module, nn.Linear)]
        self._hooks: list[Any] = []

    def __enter__(self) -> "LossWatch":
        for name, layer in self._layers:
            def keep(_: Any, inputs: Any, result: Tensor, name: str = name) -> None:
                self._last = (name, inputs[0].detach(), result) if inputs else None
            self._hooks.append(layer.register_forward_hook(keep))
        super().__enter__()  # type: ignore[no-untyped-call, unused-ignore]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call, unused-ignore]
        while self._hooks:
            self._hooks.pop().remove()

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if function is nn.functional.embedding:
            given |= zip(("input", "weight"), args)
            tokens = given["input"]
            if self._changed is not None and self._changed.weight is given["weight"] and tokens.dim() == 2:
                given["input"] = tokens = tokens.clone()
                tokens[:, -1] = (tokens[:, -1] + 1) % len(given["weight"])
                args, kwargs = (tokens, *args[1:]) if args else (), given if not args else kwargs
            self.lookups.append(Lookup(given["weight"], tokens))
        value = function(*args, **(kwargs or {}))
        if function is nn.functional.cross_entropy:
            given |= zip(("input", "target", "weight"), args)
            self._add(value, **given)
        return value

    def _add(self, value: Tensor, input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
             ignore_index: int = -100, label_smoothing: float = 0.0, **_: Any) -> None:
        if target.is_floating_point() or target.dim() != input.dim() - 1:
            return
        scores = input.detach().movedim(1, -1).flatten(0, -2) if input.dim() > 1 else input.detach()[None]
        name, read, result = self._last or ("", None, None)
        self.losses.append(WatchedLoss(
            scores, target.detach().flatten(), ignore_index, float(value.detach()) if value.numel() == 1 else math.nan,
            reduction == "mean" and weight is None and not label_smoothing, name,
            read if result is not None and result.shape[-1] == scores.shape[-1] else None))


def watch_loss(model: nn.Module, compute: Callable[[], object], changed: Lookup | None = None
               ) -> tuple[WatchedLoss, list[Lookup]] | None:
    """The only cross-entropy of classes that `compute` computes with the model, and the lookups."""
    with LossWatch(model, changed) as watch:
        compute()
    return (watch.losses[0], watch.lookups) if len(watch.losses) == 1 else None
