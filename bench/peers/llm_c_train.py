"""Training steps of llm.c (its train_gpt2.c, for processors). The counterpart of `plumb bench decoder` in float32."""
import argparse
import math
import os
import pathlib
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from exported import parser, read_work
from turns import Figures, take_turns

HERE = pathlib.Path(__file__).resolve().parent


def write_checkpoint(export: pathlib.Path, sizes: dict[str, Any], path: pathlib.Path) -> None:
    """Writes Plumb's weights in llm.c's order: each kind of tensor for all layers together."""
    weights = load_file(export / 'model.safetensors')
    width, layers, vocabulary = sizes['d_model'], sizes['layers'], sizes['vocabulary']
    if sizes['feed_forward'] != 4 * width:
        raise ValueError('llm.c has feed-forward sub-layers four times as wide as the model')
    padded = -(-vocabulary // 128) * 128
    header = np.zeros(256, np.int32)
    header[:8] = 20240326, 3, sizes['positions'], vocabulary, layers, sizes['heads'], width, padded
    table = np.zeros((padded, width), np.float32)
    table[:vocabulary] = weights['tgt_embed.weight']
    with open(path, 'wb') as file:
        header.tofile(file)
        table.tofile(file)
        weights['tgt_position.weight'].tofile(file)
        for name in ('norm1.weight', 'norm1.bias', 'self_attn.in_proj_weight', 'self_attn.in_proj_bias',
                     'self_attn.out_proj.weight', 'self_attn.out_proj.bias', 'norm2.weight', 'norm2.bias',
                     'linear1.weight', 'linear1.bias', 'linear2.weight', 'linear2.bias'):
            for layer in range(layers):
                weights[f'decoder.layers.{layer}.{name}'].tofile(file)
        weights['decoder.norm.weight'].tofile(file)
        weights['decoder.norm.bias'].tofile(file)


def revision(directory: pathlib.Path) -> str:
    """The Git revision of the llm.c clone."""
    asked = subprocess.run(['git', '-C', directory, 'rev-parse', '--short', 'HEAD'], capture_output=True, text=True)
    return asked.stdout.strip() or 'of unknown revision'


class Training:
    """A running llm.c program."""

    def __init__(self, options: argparse.Namespace, work: dict[str, Any], directory: pathlib.Path) -> None:
        batch = work['batches'][0]
        write_checkpoint(options.export, work['sizes'], directory / 'checkpoint')
        tokens = np.array([batch['target_input'], batch['labels']], np.int32)
        tokens.tofile(directory / 'tokens')
        subprocess.run(['cc', '-Ofast', '-march=native', '-fopenmp', '-w', '-I', options.llm_c, HERE / 'llm_c_train.c',
                        '-o', directory / 'train', '-lm'], check=True)
        self.tokens, self.runs = tokens[0].size, options.runs
        self.process = subprocess.Popen(
            [directory / 'train', directory / 'checkpoint', directory / 'tokens', *map(str, tokens.shape[1:])],
            env={**os.environ, 'OMP_NUM_THREADS': str(options.threads)}, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        loss = self.steps(1)[0][0]  # warm-up
        if not math.isclose(loss, batch['loss'], rel_tol=1e-4):
            raise ValueError(f'the loss is {loss} here and {batch["loss"]} in Plumb: this is not the same work')

    def steps(self, count: int) -> list[tuple[float, float]]:
        """Takes `count` steps; returns the loss and the time in seconds of each."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f'{count}\n')
        self.process.stdin.flush()
        found: list[tuple[float, float]] = []
        for line in self.process.stdout:
            words = line.split()
            if words and words[0] == 'step':
                found.append((float(words[1]), float(words[2])))
            if len(found) == count:
                return found
        raise ValueError('llm.c ended early')

    def figures(self) -> Figures:
        seconds = statistics.median(seconds for _, seconds in self.steps(self.runs))
        return {'seconds_per_step': seconds, 'target_tokens_per_second': self.tokens / seconds}


def prepare() -> tuple[Mapping[str, Callable[[], Figures]], Figures]:
    options = parser(__doc__)
    options.add_argument('--llm-c', type=pathlib.Path, required=True, metavar='DIR', help='a clone of llm.c')
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        training = Training(chosen, read_work(chosen.export), pathlib.Path(directory))
    return {'llm.c': training.figures}, {'versions': {'llm.c': revision(chosen.llm_c)}}


if __name__ == '__main__':
    take_turns(prepare)
