"""What the PyTorch counterparts of `plumb bench` share: sizes, model, data and the clock.

The model is torch.nn.Transformer as its documentation shows it, with token embeddings scaled by the root of d_model and
an output layer tied to the target embedding: the same matrices as Plumb's, so the same number of operations. Sentences are
of equal length, so that PyTorch loses nothing to padding.
"""
import argparse
import math
import resource
import statistics
import time

import torch
from torch import nn


def arguments(description, **sizes):
    """Command line with the sizes that `plumb bench` takes, under its names."""
    parser = argparse.ArgumentParser(description=description)
    for name, default in {**sizes, 'threads': 2, 'runs': 5, 'seed': 1}.items():
        parser.add_argument('--' + name.replace('_', '-'), type=int, default=default, metavar='N')
    parser.add_argument('--residual', choices=['pre-ln', 'post-ln'], default='pre-ln')
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    return options


class Model(nn.Module):
    """Encoder-decoder from token ids to logits, (sentences, length) -> (sentences, length, vocabulary)."""

    def __init__(self, options, dropout):
        super().__init__()
        self.scale = math.sqrt(options.d_model)
        self.source_embedding = nn.Embedding(options.vocabulary, options.d_model)
        self.target_embedding = nn.Embedding(options.vocabulary, options.d_model)
        self.body = nn.Transformer(
            d_model=options.d_model, nhead=options.heads, num_encoder_layers=options.layers,
            num_decoder_layers=options.layers, dim_feedforward=options.feed_forward, dropout=dropout,
            batch_first=True, norm_first=options.residual == 'pre-ln')
        for table in (self.source_embedding, self.target_embedding):
            nn.init.normal_(table.weight, std=1 / self.scale)

    def forward(self, source, target):
        future = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        hidden = self.body(self.source_embedding(source) * self.scale, self.target_embedding(target) * self.scale,
                           tgt_mask=future)
        return nn.functional.linear(hidden, self.target_embedding.weight)


def batch(options):
    """Source, target input and labels, each (sentences, length)."""
    shape = (options.sentences, options.length)
    return [torch.randint(4, options.vocabulary, shape) for _ in range(3)]


def median_seconds(work, runs):
    """The median over `runs` calls, after two that warm up."""
    work()
    work()
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def common_results(model, options):
    return {
        'parameters': sum(parameter.numel() for parameter in model.parameters()),
        'peak_memory_bytes': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        'threads': options.threads,
        'torch': torch.__version__,
    }
