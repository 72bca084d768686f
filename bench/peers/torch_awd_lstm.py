"""The recipe wikitext-2-awd-lstm.toml (Merity et al. 2018, arXiv 1708.02182) in PyTorch, for some steps: perplexities and
times to compare with those of `plumb train`.

    torch_awd_lstm.py --train wikitext-2/train.txt --valid wikitext-2/valid.txt --steps 380 --threads 2
"""

import argparse
import math
import random
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout


def stream_of(path: str, vocabulary: dict[str, int]) -> torch.Tensor:
    """The ids of the words of all nonblank lines, each line followed by its end token."""
    ids = []
    for line in open(path, encoding='utf-8'):
        if line.strip():
            ids += [vocabulary.setdefault(word, len(vocabulary)) for word in [*line.split(), '</s>']]
    return torch.tensor(ids)


def in_rows(stream: torch.Tensor, rows: int) -> torch.Tensor:
    """(positions, rows): consecutive parts of the stream side by side."""
    positions = stream.numel() // rows
    return stream[: positions * rows].view(rows, positions).t().contiguous()


def locked(x: torch.Tensor, rate: float) -> torch.Tensor:
    """Dropout with one mask for all positions."""
    mask = torch.empty(1, *x.shape[1:]).bernoulli_(1 - rate) / (1 - rate)
    return x * mask


States = list[tuple[torch.Tensor, torch.Tensor]]


class Model(nn.Module):
    def __init__(self, words: int, embedding: int = 400, hidden: int = 1150) -> None:
        super().__init__()
        sizes = [embedding, hidden, hidden, embedding]
        self.embedding = nn.Parameter(torch.empty(words, embedding).uniform_(-0.1, 0.1))
        self.bias = nn.Parameter(torch.zeros(words))
        self.layers = nn.ModuleList(nn.LSTM(inputs, outputs) for inputs, outputs in zip(sizes, sizes[1:]))

    def forward(self, ids: torch.Tensor, states: States | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, States]:
        """Logits, the last layer's output with and without dropout, and the states after the last position."""
        table = self.embedding
        if self.training:
            table = table * (torch.empty(len(table), 1).bernoulli_(0.9) / 0.9)
        x = table[ids]
        x = locked(x, 0.65) if self.training else x
        after = []
        for index, layer in enumerate(self.layers):
            weight = dropout(layer.weight_hh_l0, 0.5, self.training)
            state = None if states is None else states[index]
            output, state = torch.func.functional_call(layer, {'weight_hh_l0': weight}, (x, state))
            after.append(tuple(part.detach() for part in state))
            last = index + 1 == len(self.layers)
            x = locked(output, 0.4 if last else 0.3) if self.training else output
        return x @ self.embedding.t() + self.bias, x, output, after


def validation_loss(model: Model, rows: torch.Tensor, length: int = 70) -> float:
    model.eval()
    total, states = 0.0, None
    with torch.no_grad():
        for begin in range(0, len(rows) - 1, length):
            end = min(begin + length, len(rows) - 1)
            logits, _, _, states = model(rows[begin:end], states)
            total += cross_entropy(logits.flatten(0, 1), rows[begin + 1 : end + 1].flatten(), reduction='sum').item()
    model.train()
    return total / ((len(rows) - 1) * rows.shape[1])


def train(model: Model, rows: torch.Tensor, steps: int, rate: float = 30.0) -> None:
    draw = random.Random(1)
    parameters = list(model.parameters())
    at, states, begin_time = 0, None, time.perf_counter()
    for step in range(1, steps + 1):
        if at >= len(rows) - 2:
            at, states = 0, None
        length = max(5, int(draw.gauss(70 if draw.random() < 0.95 else 35, 5)))
        end = min(at + length, len(rows) - 1)
        logits, dropped, output, states = model(rows[at:end], states)
        loss = cross_entropy(logits.flatten(0, 1), rows[at + 1 : end + 1].flatten())
        total = loss + 2 * dropped.square().mean() + (output[1:] - output[:-1]).square().mean()
        for parameter in parameters:
            parameter.grad = None
        total.backward()
        nn.utils.clip_grad_norm_(parameters, 0.25)
        with torch.no_grad():
            for parameter in parameters:
                parameter.sub_(parameter.grad + 1.2e-6 * parameter, alpha=rate * (end - at) / 70)
        at = end
        if step % 20 == 0 or step == steps:
            print(f'step {step}  loss {loss.item():.3f}  {time.perf_counter() - begin_time:.0f} s', flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--train', required=True)
    parser.add_argument('--valid', required=True)
    parser.add_argument('--steps', type=int, required=True)
    parser.add_argument('--threads', type=int, default=2)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    vocabulary = {}
    text = in_rows(stream_of(arguments.train, vocabulary), 80)
    valid = in_rows(stream_of(arguments.valid, vocabulary), 10)
    model = Model(len(vocabulary))
    train(model, text, arguments.steps)
    loss = validation_loss(model, valid)
    print(f'{len(vocabulary)} words, validation {loss:.4f} nats per word (perplexity {math.exp(loss):.1f})')


if __name__ == '__main__':
    main()
