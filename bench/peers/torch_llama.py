"""A decoder of Llama's shape in PyTorch, and what is timed of it beside Plumb: training steps, compiled, and products
of the Hessian with a vector, exact in float32 and by differences of gradients in bfloat16. The sizes are those of
[model] in a configuration of Plumb. Prints one line of JSON."""
import argparse
import json
import tomllib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from turns import Figures, median_seconds


def rotated(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotary positions: pairs are features m and m + size/2. (rows, heads, length, size)"""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1)


class Block(nn.Module):
    """Pre-LN: attention with rotary positions, then SwiGLU."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width, self.heads, eps = sizes['d_model'], sizes['heads'], sizes.get('norm_eps', 1e-5)
        self.kv_heads = sizes.get('kv_heads') or self.heads
        self.size = sizes.get('head_size') or width // self.heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps), nn.RMSNorm(width, eps)
        self.qkv = nn.Linear(width, (self.heads + 2 * self.kv_heads) * self.size, bias=False)
        self.out = nn.Linear(self.heads * self.size, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * sizes['feed_forward'], bias=False)
        self.down = nn.Linear(sizes['feed_forward'], width, bias=False)
        normed = sizes.get('qk_norm', 'none') != 'none'
        self.query_norm: nn.Module = nn.RMSNorm(self.size, eps) if normed else nn.Identity()
        self.key_norm: nn.Module = nn.RMSNorm(self.size, eps) if normed else nn.Identity()

    def forward(self, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        rows, length, _ = x.shape
        packed = self.qkv(self.norm1(x)).view(rows, length, -1, self.size).transpose(1, 2)
        query, key, value = packed.split([self.heads, self.kv_heads, self.kv_heads], dim=1)
        query = rotated(self.query_norm(query), cosines, sines).to(value.dtype)
        key = rotated(self.key_norm(key), cosines, sines).to(value.dtype)
        shared = self.heads != self.kv_heads
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=shared)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        out: Tensor = x + self.down(F.silu(gate) * up)
        return out


class Decoder(nn.Module):
    def __init__(self, sizes: dict[str, Any], length: int) -> None:
        super().__init__()
        width, vocabulary = sizes['d_model'], sizes['target_vocabulary']
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Block(sizes) for _ in range(sizes['decoder_layers']))
        self.blocks: list[Callable[..., Tensor]] = list(self.layers)  # or compiled ones
        self.norm = nn.RMSNorm(width, sizes.get('norm_eps', 1e-5))
        self.output = nn.Linear(width, vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
        if sizes.get('share_embeddings', 'target') != 'none':
            self.output.weight = self.embedding.weight
        size = sizes.get('head_size') or width // sizes['heads']
        rates = sizes.get('rotary', {}).get('theta', 10000.0) ** (-torch.arange(0, size, 2) / size)
        angles = torch.arange(length)[:, None] * rates
        self.waves = angles.cos(), angles.sin()

    def head(self, x: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(self.output(self.norm(x)).flatten(0, 1), labels.flatten())

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        x, (cosines, sines) = self.embedding(ids), (wave[:ids.shape[1]] for wave in self.waves)
        for block in self.blocks:
            x = block(x, cosines, sines)
        return self.head(x, labels)


def training(model: Decoder, ids: Tensor, options: argparse.Namespace) -> Figures:
    """Steps as of torchtitan and nanochat: every block compiled, or with --graph the whole, replayed as CUDA graphs."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    inputs, labels = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()

    def step_of(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[], None]:
        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == 'bf16'):
                value = loss(inputs, labels)
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

        return step

    blocks, head, compiled = model.blocks, model.head, 'whole' if options.graph else 'by block'
    try:
        if options.graph:
            step = step_of(torch.compile(model, mode='reduce-overhead', dynamic=False))
        else:
            model.blocks = [torch.compile(block, dynamic=False) for block in blocks]
            model.head = torch.compile(head, dynamic=False)  # type: ignore[method-assign]
            step = step_of(model)
        step()
    except Exception as error:  # whatever the compiler raises: the eager figure is better than none
        model.blocks, model.head = blocks, head  # type: ignore[method-assign]
        step, compiled = step_of(model), f'not, {type(error).__name__}'
    for _ in range(3):
        step()
    return {'seconds_per_step': median_seconds(step, options.runs), 'compiled': compiled}


def products(model: Decoder, ids: Tensor, options: argparse.Namespace) -> Figures:
    """Along a random unit vector. Errors are relative to the product in float32."""
    parameters = list(model.parameters())
    vector = [torch.randn_like(p) for p in parameters]
    length = torch.stack([v.square().sum() for v in vector]).sum().sqrt()
    vector = [v / length for v in vector]
    weights = float(torch.stack([p.detach().square().sum() for p in parameters]).sum().sqrt())

    def gradient(bf16: bool, graph: bool) -> tuple[Tensor, ...]:
        fused = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]  # without second derivatives
        with sdpa_kernel([SDPBackend.MATH] + ([] if graph else fused)), \
                torch.autocast(options.device, torch.bfloat16, enabled=bf16):
            loss = model(ids[:, :-1], ids[:, 1:])
        return torch.autograd.grad(loss, parameters, create_graph=graph)

    def error(found: Any, exact: Any) -> float:
        apart = sum(float((f - e).square().sum()) for f, e in zip(found, exact))
        return float((apart / sum(float(e.square().sum()) for e in exact)) ** 0.5)

    def kept(bf16: bool) -> tuple[float, tuple[Tensor, ...]]:
        slope = gradient(bf16, True)

        def product() -> tuple[Tensor, ...]:
            return torch.autograd.grad(slope, parameters, vector, retain_graph=True)

        return median_seconds(product, options.runs), product()

    @torch.no_grad()
    def moved(step: float) -> None:
        for parameter, direction in zip(parameters, vector):
            parameter.add_(direction, alpha=step)

    def differences(step: float) -> list[Tensor]:
        moved(step)
        ahead = gradient(True, False)
        moved(-2 * step)
        behind = gradient(True, False)
        moved(step)
        return [(a - b) / (2 * step) for a, b in zip(ahead, behind)]

    gradient_seconds = median_seconds(lambda: gradient(False, False), options.runs)
    seconds, exact = kept(False)
    rounded_seconds, rounded = kept(True)
    found: Figures = {'gradient_seconds': gradient_seconds, 'seconds': seconds,
                      'bf16_seconds': rounded_seconds, 'bf16_error': error(rounded, exact)}
    del rounded
    steps = [weights * share for share in (1e-4, 1e-3, 1e-2, 1e-1)]
    errors = {step: error(differences(step), exact) for step in steps}
    best = min(errors, key=lambda step: errors[step])
    return found | {'differences_seconds': median_seconds(lambda: differences(best), options.runs),
                    'differences_error': errors[best], 'differences_step': best / weights}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('work', choices=['training', 'products'])
    parser.add_argument('--config', required=True, metavar='FILE', help='a configuration of Plumb')
    parser.add_argument('--rows', type=int, default=8)
    parser.add_argument('--length', type=int, default=2048)
    parser.add_argument('--precision', default='bf16', choices=['float32', 'bf16'])
    parser.add_argument('--graph', action='store_true', help='compile the whole model, and replay it as CUDA graphs')
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--runs', type=int, default=10)
    options = parser.parse_args()
    with open(options.config, 'rb') as file:
        sizes = tomllib.load(file)['model']
    torch.manual_seed(1)
    with torch.device(options.device):
        model = Decoder(sizes, options.length)
        ids = torch.randint(4, sizes['target_vocabulary'], (options.rows, options.length + 1))
    work = training if options.work == 'training' else products
    if options.work == 'products':
        ids = ids[:, :-1]  # of N tokens, all but the first are predicted, as by `plumb spectrum --batch`
    figures = {'parameters': sum(p.numel() for p in model.parameters()), **work(model, ids, options)}
    if options.device != 'cpu':
        figures['memory_bytes'] = torch.cuda.max_memory_allocated()
    print(json.dumps(figures))


if __name__ == '__main__':
    main()
