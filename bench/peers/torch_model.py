"""Plumb's encoder-decoder (Pre-LN, ReLU, sinusoidal positions) and its language model (GPT-2's: Pre-LN, GELU, learned
positions, tied output matrix) in PyTorch, with Plumb's parameter names.

The same work as in Plumb, in PyTorch's fastest form: query, key and value in one product, fused attention, dropout on the
embeddings and on the output of each sub-layer, and nowhere else. Sequences have equal length, so nothing is padded.
"""
import math
import pathlib
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    """x + dropout(attention(norm(x)))"""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * width))
        self.out_proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        packed = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        query, key, value = packed.view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        out: Tensor = self.out_proj(mixed.transpose(1, 2).reshape(rows, length, width))
        return out


class CrossAttention(nn.Module):
    """Cross-attention from x to the memory."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * width))
        self.out_proj = nn.Linear(width, width)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        rows, length, width = x.shape
        query = F.linear(x, self.in_proj_weight[:width], self.in_proj_bias[:width])
        packed = F.linear(memory, self.in_proj_weight[width:], self.in_proj_bias[width:])
        key, value = packed.view(rows, memory.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query.view(rows, length, self.heads, -1).transpose(1, 2), key, value)
        out: Tensor = self.out_proj(mixed.transpose(1, 2).reshape(rows, length, width))
        return out


class Layer(nn.Module):
    """An encoder layer; with `causal`, a decoder layer; with `cross`, it also attends to a memory."""

    def __init__(self, sizes: dict[str, Any], dropout: float, causal: bool = False, cross: bool = False,
                 activation: Callable[[Tensor], Tensor] = F.relu) -> None:
        super().__init__()
        width, heads, eps = sizes['d_model'], sizes['heads'], sizes['norm_eps']
        self.activation = activation
        self.self_attn = SelfAttention(width, heads, causal)
        self.multihead_attn = CrossAttention(width, heads) if cross else None
        self.linear1 = nn.Linear(width, sizes['feed_forward'])
        self.linear2 = nn.Linear(sizes['feed_forward'], width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.norm3 = nn.LayerNorm(width, eps) if cross else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, memory: Tensor | None = None) -> Tensor:
        x = x + self.dropout(self.self_attn(self.norm1(x)))
        last = self.norm2
        if self.multihead_attn is not None and self.norm3 is not None:
            x = x + self.dropout(self.multihead_attn(self.norm2(x), memory))
            last = self.norm3
        return x + self.dropout(self.linear2(self.activation(self.linear1(last(x)))))


class Stack(nn.Module):
    def __init__(self, sizes: dict[str, Any], dropout: float, **kind: Any) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(sizes, dropout, **kind) for _ in range(sizes['layers']))
        self.norm = nn.LayerNorm(sizes['d_model'], sizes['norm_eps'])

    def forward(self, x: Tensor, memory: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, memory)
        out: Tensor = self.norm(x)
        return out


def waves(length: int, width: int) -> Tensor:
    """(length, width): sines in the even features, cosines in the odd ones (Vaswani et al. 2017)."""
    rates = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1).float()


class Model(nn.Module):
    """Token ids to logits: (rows, source length), (rows, target length) -> (rows, target length, vocabulary)."""

    def __init__(self, sizes: dict[str, Any], dropout: float) -> None:
        super().__init__()
        width = sizes['d_model']
        self.scale = math.sqrt(width)
        self.src_embed = nn.Embedding(sizes['vocabulary'], width)
        self.tgt_embed = nn.Embedding(sizes['vocabulary'], width)  # also the output matrix
        self.encoder = Stack(sizes, dropout)
        self.decoder = Stack(sizes, dropout, causal=True, cross=True)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer('waves', waves(sizes['length'] + 1, width), persistent=False)
        self.waves: Tensor

    def embed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        out: Tensor = self.dropout(table(ids) * self.scale + self.waves[:ids.shape[1]])
        return out

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory = self.encoder(self.embed(self.src_embed, source))
        hidden = self.decoder(self.embed(self.tgt_embed, target), memory)
        return F.linear(hidden, self.tgt_embed.weight)


class LanguageModel(nn.Module):
    """Token ids to logits: (rows, length) -> (rows, length, vocabulary). Without dropout."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width = sizes['d_model']
        self.tgt_embed = nn.Embedding(sizes['vocabulary'], width)  # also the output matrix
        self.tgt_position = nn.Embedding(sizes['positions'], width)
        self.decoder = Stack(sizes, 0.0, causal=True, activation=partial(F.gelu, approximate='tanh'))

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.decoder(self.tgt_embed(ids) + self.tgt_position.weight[:ids.shape[1]])
        return F.linear(hidden, self.tgt_embed.weight)


def load(directory: pathlib.Path, sizes: dict[str, Any], dropout: float) -> Model:
    """Loads the model with Plumb's weights."""
    model = Model(sizes, dropout)
    model.load_state_dict(load_file(directory / 'model.safetensors'))
    return model


def load_language_model(directory: pathlib.Path, sizes: dict[str, Any]) -> LanguageModel:
    model = LanguageModel(sizes)
    model.load_state_dict(load_file(directory / 'model.safetensors'))
    return model


def tensors(batch: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    """Source, target input and labels, each (rows, length)."""
    return torch.tensor(batch['source']), torch.tensor(batch['target_input']), torch.tensor(batch['labels'])


def check(name: str, mine: float, plumbs: float, tolerance: float) -> None:
    if not math.isclose(mine, plumbs, rel_tol=tolerance):
        raise ValueError(f'{name} is {mine} here and {plumbs} in Plumb: this is not the same work')
