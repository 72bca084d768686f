"""Causal self-attention at increasing lengths in PyTorch, eager and compiled, without projections. The counterpart of
`self_attention` in build/bench/kernels."""
from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from exported import kernel_arguments
from turns import Figures, median_seconds, take_turns

SIZE, HEADS = 256, 4


def attend(packed: Tensor) -> Tensor:
    """(length, 3 · size) -> (length, size)"""
    query, key, value = packed.view(1, packed.shape[0], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return mixed.transpose(1, 2).reshape(packed.shape[0], -1)


def prepare() -> tuple[Mapping[str, Callable[[], Figures]], Figures]:
    options = kernel_arguments(__doc__)
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    # "self_attention/softmax/LENGTH", "self_attention_gradient/softmax/LENGTH"
    inputs = {name: torch.randn(int(name.split('/')[2]), 3 * SIZE, requires_grad=True) for name in options.names}

    def seconds(function: Callable[[Tensor], Tensor], name: str) -> float:
        packed = inputs[name]
        cotangent = torch.ones(packed.shape[0], SIZE)

        def forward() -> None:
            with torch.no_grad():
                function(packed)

        def gradient() -> object:
            return torch.autograd.grad(function(packed), packed, cotangent)

        runs = options.runs if packed.shape[0] > 1000 else 10 * options.runs
        return median_seconds(gradient if '_gradient/' in name else forward, runs)

    def figures(function: Callable[[Tensor], Tensor]) -> Figures:
        return {'seconds': {name: seconds(function, name) for name in options.names}}

    compiled = torch.compile(attend, dynamic=True)
    for packed in inputs.values():  # warm-up: compiles for all lengths
        compiled(packed).sum().backward()
    return ({'eager': lambda: figures(attend), 'compiled': lambda: figures(compiled)},
            {'versions': {'PyTorch': torch.__version__}})


if __name__ == '__main__':
    take_turns(prepare)
