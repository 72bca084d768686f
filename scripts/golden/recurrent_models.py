#!/usr/bin/env python3
"""Reference values of torch.nn.LSTM for tests/ops/lstm_test.cpp and tests/model/awd_lstm_test.cpp, in float64.

  lstm.json                          one layer over sequences that begin with given states: outputs, last states, and
                                     the gradients of Σ weights∘outputs + Σ weights∘last states
  awd_lstm_tiny.{toml,safetensors,json}  a language model without dropout and with a tied output matrix: loss,
                                     regularization terms, last states, the norm of each gradient

Each sequence runs separately.

    pip install torch safetensors
    scripts/golden/recurrent_models.py            # writes tests/golden
    scripts/golden/recurrent_models.py --check    # computes anew and compares with the files
"""
import argparse
import json
import math
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

ROOT = pathlib.Path(__file__).resolve().parents[2]
MADE_BY = {'script': 'scripts/golden/recurrent_models.py', 'torch': torch.__version__.split('+')[0]}
LENGTHS = (3, 1, 0, 5)  # of the single layer's sequences; one is empty
IN, SIZE = 4, 3
VOCABULARY, EMBEDDING, HIDDEN, LAYERS = 17, 5, 7, 2
TOKENS = ((3, 9, 16, 1, 9, 2), (5, 5), (12, 0, 7, 8))


def draw(generator, *shape, scale=1.0):
    return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)


def load(layer, weights):
    """Copies tensors into the parameters of a torch.nn.LSTM."""
    with torch.no_grad():
        for name, tensor in weights.items():
            getattr(layer, name).copy_(tensor)


def lstm_weights(generator, size_in, size):
    return {'weight_ih_l0': draw(generator, 4 * size, size_in, scale=0.6),
            'weight_hh_l0': draw(generator, 4 * size, size, scale=0.6),
            'bias_ih_l0': draw(generator, 4 * size, scale=0.3), 'bias_hh_l0': draw(generator, 4 * size, scale=0.3)}


def single_layer():
    generator = torch.Generator().manual_seed(1)
    weights = lstm_weights(generator, IN, SIZE)
    layer = torch.nn.LSTM(IN, SIZE, dtype=torch.float64)
    load(layer, weights)
    tokens, rows = sum(LENGTHS), len(LENGTHS)
    x = draw(generator, tokens, IN).requires_grad_()
    h0, c0 = draw(generator, rows, SIZE).requires_grad_(), draw(generator, rows, SIZE).requires_grad_()
    of_output, of_h, of_c = (draw(generator, count, SIZE) for count in (tokens, rows, rows))
    outputs, last_h, last_c = [], [], []
    begin = 0
    for row, length in enumerate(LENGTHS):
        h, c = h0[row:row + 1], c0[row:row + 1]
        if length > 0:
            output, (h, c) = layer(x[begin:begin + length], (h, c))
            outputs.append(output)
        last_h.append(h)
        last_c.append(c)
        begin += length
    output, last_h, last_c = torch.cat(outputs), torch.cat(last_h), torch.cat(last_c)
    ((of_output * output).sum() + (of_h * last_h).sum() + (of_c * last_c).sum()).backward()
    inputs = {'x': x, 'hidden': h0, 'cell': c0, **dict(layer.named_parameters())}
    return {'made_by': MADE_BY, 'lengths': list(LENGTHS),
            **{name: tensor.tolist() for name, tensor in inputs.items()},
            'weights': {'output': of_output.tolist(), 'last_hidden': of_h.tolist(), 'last_cell': of_c.tolist()},
            'output': output.tolist(), 'last_hidden': last_h.tolist(), 'last_cell': last_c.tolist(),
            'gradient': {name: tensor.grad.tolist() for name, tensor in inputs.items()}}


def language_model():
    generator = torch.Generator().manual_seed(2)
    widths = [EMBEDDING] + [HIDDEN] * (LAYERS - 1) + [EMBEDDING]
    tensors = {'embedding.weight': draw(generator, VOCABULARY, EMBEDDING, scale=0.7)}
    layers = []
    for i, (size_in, size) in enumerate(zip(widths, widths[1:])):
        weights = lstm_weights(generator, size_in, size)
        layers.append(torch.nn.LSTM(size_in, size, dtype=torch.float64))
        load(layers[-1], weights)
        tensors.update({f'lstm.{i}.{name}': tensor for name, tensor in weights.items()})
    tensors['output.bias'] = draw(generator, VOCABULARY, scale=0.3)
    parameters = {'embedding.weight': tensors['embedding.weight'].clone().requires_grad_(),
                  'output.bias': tensors['output.bias'].clone().requires_grad_()}
    for i, layer in enumerate(layers):
        parameters.update({f'lstm.{i}.{name}': parameter for name, parameter in layer.named_parameters()})

    losses, squares, changes, states = [], [], [], []
    for row in TOKENS:
        ids = torch.tensor(row)
        x = parameters['embedding.weight'][ids[:-1]]
        of_row = []
        for layer in layers:
            x, (h, c) = layer(x)
            of_row.append([h[0].tolist(), c[0].tolist()])
        states.append(of_row)
        logits = x @ parameters['embedding.weight'].T + parameters['output.bias']
        losses.append(functional.cross_entropy(logits, ids[1:], reduction='none'))
        squares.append(x.square().flatten())
        changes.append((x[1:] - x[:-1]).square().flatten())
    loss = torch.cat(losses).mean()
    loss.backward()
    ar, tar = torch.cat(squares).mean().item(), torch.cat(changes).mean().item()
    norms = {name: parameters[name].grad.norm().item() for name in tensors}
    golden = {'made_by': MADE_BY, 'batch': {'tokens': [list(row) for row in TOKENS]}, 'loss': loss.item(),
              'activation_regularization_mean_square': ar, 'temporal_regularization_mean_square': tar,
              'loss_with_ar_2_tar_1': loss.item() + 2 * ar + tar, 'final_states_h_c_by_row_and_layer': states,
              'gradient_norm': norms, 'gradient_norm_total': math.sqrt(sum(norm**2 for norm in norms.values()))}
    return golden, tensors


def toml_text():
    return (f'[model]\nkind = "awd-lstm"\nembedding_size = {EMBEDDING}\nhidden_size = {HIDDEN}\nlayers = {LAYERS}\n'
            f'target_vocabulary = {VOCABULARY}\n')


def json_text(golden):
    return '{\n' + ',\n'.join(f' {json.dumps(key)}: {json.dumps(value)}' for key, value in golden.items()) + '\n}\n'


def largest_difference(a, b):
    """The largest difference of two JSON values of the same shape; infinity if shapes or other values differ."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return max((largest_difference(a[key], b[key]) for key in a), default=0)
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return max((largest_difference(x, y) for x, y in zip(a, b)), default=0)
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b)
    return 0 if a == b else math.inf


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--directory', type=pathlib.Path, default=ROOT / 'tests' / 'golden',
                        help='where the files lie (default: %(default)s)')
    parser.add_argument('--check', action='store_true', help='write nothing, compare with the files')
    arguments = parser.parse_args()
    golden, tensors = language_model()
    documents = {'lstm': single_layer(), 'awd_lstm_tiny': golden}
    base = arguments.directory / 'awd_lstm_tiny'
    if not arguments.check:
        for name, document in documents.items():
            (arguments.directory / f'{name}.json').write_text(json_text(document))
        base.with_suffix('.toml').write_text(toml_text())
        save_file(tensors, base.with_suffix('.safetensors'))
        base.with_suffix('.safetensors').chmod(0o644)
        return
    stored = load_file(base.with_suffix('.safetensors'))
    same = (base.with_suffix('.toml').read_text() == toml_text() and stored.keys() == tensors.keys()
            and all(torch.equal(stored[name], tensors[name]) for name in stored))
    for name, document in documents.items():
        written = json.loads((arguments.directory / f'{name}.json').read_text())
        del written['made_by'], document['made_by']
        difference = largest_difference(document, written)
        print(f'{name}: values differ by {difference:.1e}')
        same = same and difference < 1e-12
    sys.exit(0 if same else 1)


if __name__ == '__main__':
    main()
