"""What softmax attention does in a forward pass, whichever of PyTorch's operations compute it."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils._python_dispatch import TorchDispatchMode

from .leaving import hooked


class _Attention(TorchDispatchMode):  # type: ignore[no-untyped-call, unused-ignore]
    """Calls `see` with the scores of each attention, (…, queries, keys), −∞ where a key is masked."""

    def __init__(self, see: Callable[[Tensor], None], in_attention: Callable[[], bool]) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._see, self._in_attention = see, in_attention

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(zip((argument.name for argument in func._schema.arguments), args)) | (kwargs or {})
        name = func._schema.name
        if name.startswith("aten::_scaled_dot_product"):
            self._see(_scores(given))
        elif name in ("aten::_softmax", "aten::_safe_softmax"):
            scores = given["self"]
            over_keys = given["dim"] in (-1, scores.dim() - 1)
            if over_keys and (scores.dim() == 4 or (scores.dim() == 3 and self._in_attention())):
                self._see(scores.detach().float())
        return func(*args, **(kwargs or {}))


def _scores(given: dict[str, Any]) -> Tensor:
    """The argument of the softmax in a fused operation."""
    query, key = given["query"].detach().float(), given["key"].detach().float()
    key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)  # grouped heads
    scale = given.get("scale")
    scores: Tensor = query @ key.transpose(-1, -2) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    mask = given.get("attn_mask", given.get("attn_bias"))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask.float()
    if given.get("is_causal"):
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    return scores


def _entropies(scores: Tensor) -> tuple[float, int]:
    """The sum over queries that see several keys of the entropy divided by ln(keys), and their number."""
    seen = torch.isfinite(scores).sum(-1)
    several = seen > 1
    if not bool(several.any()):
        return 0.0, 0
    scores, seen = scores[several], seen[several]
    entropy = torch.special.entr(torch.softmax(scores, -1)).sum(-1)
    return float((entropy / seen.log()).double().sum()), int(several.sum())


def attention_statistics(model: Module, losses: list[Callable[[], Tensor]],
                         block_of: Callable[[str], str]) -> dict[str, float]:
    """"attention_entropy": the mean over queries, heads and examples of the entropy of the attention weights divided by
    ln(keys), 1 if all keys have the same weight, 0 if one has all of it; "attention_logit": the largest absolute score. Of
    all attention, and with "/BLOCK" of each block. Empty without attention."""
    stack: list[str] = []  # the names of the modules whose `forward` runs
    sums: dict[str, tuple[float, int, float]] = {}

    def see(scores: Tensor) -> None:
        finite = scores[torch.isfinite(scores)]
        if not finite.numel():
            return
        entropy, queries = _entropies(scores)
        logit = float(finite.abs().max())
        for key in {"", "/" + block_of(stack[-1]) if stack else ""}:
            before = sums.get(key, (0.0, 0, 0.0))
            sums[key] = (before[0] + entropy, before[1] + queries, max(before[2], logit))

    def in_attention() -> bool:
        return bool(stack) and isinstance(model.get_submodule(stack[-1]), torch.nn.MultiheadAttention)

    def finished(name: str, output: Any) -> None:
        stack.pop()

    with (hooked(model.named_modules(), lambda name, *_: stack.append(name), finished), torch.enable_grad(),
          _Attention(see, in_attention)):
        for loss in losses:
            loss()
    values: dict[str, float] = {}
    for key, (entropy, queries, logit) in sums.items():
        values["attention_entropy" + key] = entropy / queries if queries else math.nan
        values["attention_logit" + key] = logit
    return values
