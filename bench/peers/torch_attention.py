"""Causal self-attention at increasing lengths in PyTorch, eager and compiled, without projections. The counterpart of
`plumb bench attention`."""
from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from exported import arguments, read_work
from turns import Figures, median_seconds, take_turns


def prepare() -> tuple[Mapping[str, Callable[[], Figures]], Figures]:
    options = arguments(__doc__)
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    work = read_work(options.export)
    sizes, heads = work['sizes'], work['sizes']['heads']

    def attend(packed: Tensor) -> Tensor:
        """(length, 3 · d_model) -> (length, d_model)"""
        query, key, value = packed.view(1, packed.shape[0], 3, heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return mixed.transpose(1, 2).reshape(packed.shape[0], -1)

    inputs = [torch.randn(length, 3 * sizes['d_model'], requires_grad=True) for length in work['lengths']]

    def figures(function: Callable[[Tensor], Tensor]) -> Figures:
        entries = []
        for packed in inputs:
            cotangent = torch.ones(packed.shape[0], sizes['d_model'])

            def forward() -> None:
                with torch.no_grad():
                    function(packed)

            runs = options.runs if packed.shape[0] > 1000 else 10 * options.runs
            entries.append({
                'length': packed.shape[0],
                'forward_seconds': median_seconds(forward, runs),
                'gradient_seconds': median_seconds(
                    lambda: torch.autograd.grad(function(packed), packed, cotangent), runs)})
        return {'lengths': entries}

    compiled = torch.compile(attend, dynamic=True)
    for packed in inputs:  # warm-up: compiles for all lengths
        compiled(packed).sum().backward()
    return ({'eager': lambda: figures(attend), 'compiled': lambda: figures(compiled)},
            {'versions': {'PyTorch': torch.__version__}})


if __name__ == '__main__':
    take_turns(prepare)
