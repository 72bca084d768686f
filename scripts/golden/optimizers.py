#!/usr/bin/env python3
"""Reference values of PyTorch's optimizers, and of the PyPI packages lion-pytorch and schedulefree, for
tests/optim/golden_test.cpp.

Writes tests/golden/optimizers.json: a few weights, their gradients in ten steps, the learning rate of each step, and
for each optimizer, with its options as Plumb's configuration, the weights after every step; all in float64.

    pip install torch lion-pytorch schedulefree
    scripts/golden/optimizers.py
"""
import argparse
import contextlib
import importlib.metadata
import json
import pathlib

import torch
from lion_pytorch import Lion
from schedulefree import AdamWScheduleFree

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = {'wide': (3, 5), 'tall': (6, 4), 'vector': (7,)}
RATES = (0.01, 0.03, 0.05, 0.02, 0.04, 0.01, 0.03, 0.02, 0.01, 0.05)
COMPARED = (1, 5, 10)  # steps; what goes wrong in one of them shows in all later ones
BETAS, EPS = (0.8, 0.95), 1e-6
LION_BETAS = (0.9, 0.97)
MOMENTUM, DECAY = 0.9, 0.1
SCALE = 0.5  # of the gradients, as from clipping
# Muon divides a matrix by its norm: PyTorch by max(norm, 1e-7), Jordan's own code by norm + 1e-7. The scale makes the
# difference less than 1e-12.
MUON_SCALE = 1e6


@contextlib.contextmanager
def in_float64():
    """torch.optim.Muon rounds its matrices to bfloat16; here that type's name means float64."""
    half = torch.bfloat16
    torch.bfloat16 = torch.float64
    try:
        yield
    finally:
        torch.bfloat16 = half


def matrices(parameters):
    return [parameter for parameter in parameters if parameter.dim() == 2]


def rest(parameters):
    return [parameter for parameter in parameters if parameter.dim() != 2]


def section(name, **options):
    return f'[train.{name}]\n' + ''.join(f'{key} = {json.dumps(value)}\n' for key, value in options.items())


BETA_KEYS = {'beta1': BETAS[0], 'beta2': BETAS[1], 'eps': EPS}
LION_KEYS = {'beta1': LION_BETAS[0], 'beta2': LION_BETAS[1]}


def muon(adjust):
    """Muon for matrices, AdamW for the rest."""
    def make(parameters):
        return [torch.optim.Muon(matrices(parameters), lr=1, momentum=MOMENTUM, weight_decay=DECAY,
                                 adjust_lr_fn=adjust),
                torch.optim.AdamW(rest(parameters), lr=1, betas=BETAS, eps=EPS, weight_decay=DECAY)]
    return make


def muon_section(scale):
    return section('muon', momentum=MOMENTUM, scale=scale) + section('muon.adam', **BETA_KEYS)


def training(optimizer):
    """Switches to the weights at which gradients are taken; those are compared."""
    optimizer.train()
    return optimizer


def cases():
    """Yields name, Plumb's optimizer and its options, weight decay, gradient scale, PyTorch's optimizers."""
    yield ('sgd', 'sgd', section('sgd', momentum=MOMENTUM), DECAY, SCALE,
           lambda p: [torch.optim.SGD(p, lr=1, momentum=MOMENTUM, weight_decay=DECAY)])
    yield ('sgd_nesterov', 'sgd', section('sgd', momentum=MOMENTUM, nesterov=True), DECAY, SCALE,
           lambda p: [torch.optim.SGD(p, lr=1, momentum=MOMENTUM, nesterov=True, weight_decay=DECAY)])
    yield ('adam', 'adam', section('adam', **BETA_KEYS), 0.0, SCALE,
           lambda p: [torch.optim.Adam(p, lr=1, betas=BETAS, eps=EPS)])
    yield ('adamw', 'adamw', section('adamw', **BETA_KEYS), DECAY, SCALE,
           lambda p: [torch.optim.AdamW(p, lr=1, betas=BETAS, eps=EPS, weight_decay=DECAY)])
    yield ('adamw_defaults', 'adamw', '', DECAY, SCALE,
           lambda p: [torch.optim.AdamW(p, lr=1, weight_decay=DECAY)])
    yield ('radam', 'radam', section('radam', **BETA_KEYS), DECAY, SCALE,
           lambda p: [torch.optim.RAdam(p, lr=1, betas=BETAS, eps=EPS, weight_decay=DECAY,
                                        decoupled_weight_decay=True)])
    # PyTorch limits the rate to 1/√t, which is larger here, and bounds v from below where it would vanish.
    yield ('adafactor', 'adafactor', '', DECAY, SCALE,
           lambda p: [torch.optim.Adafactor(p, lr=1, weight_decay=DECAY)])
    yield ('adafactor_options', 'adafactor', section('adafactor', decay=0.7, smallest_scale=1.5), DECAY, SCALE,
           lambda p: [torch.optim.Adafactor(p, lr=1, beta2_decay=-0.7, eps=(None, 1.5), weight_decay=DECAY)])
    yield ('lion', 'lion', section('lion', **LION_KEYS), DECAY, SCALE,
           lambda p: [Lion(p, lr=1, betas=LION_BETAS, weight_decay=DECAY)])
    yield ('schedule_free', 'schedule-free-adamw', section('schedule-free-adamw', **BETA_KEYS), DECAY, SCALE,
           lambda p: [training(AdamWScheduleFree(p, lr=1, betas=BETAS, eps=EPS, weight_decay=DECAY))])
    yield 'muon_jordan', 'muon', muon_section('jordan'), DECAY, MUON_SCALE, muon('original')
    yield 'muon_moonlight', 'muon', muon_section('moonlight'), DECAY, MUON_SCALE, muon('match_rms_adamw')


def trajectory(make, weights, gradients, scale):
    parameters = {name: torch.nn.Parameter(tensor.clone()) for name, tensor in weights.items()}
    optimizers = make(list(parameters.values()))
    after = []
    for step, (rate, gradient) in enumerate(zip(RATES, gradients), start=1):
        for name, parameter in parameters.items():
            parameter.grad = scale * gradient[name]
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group['lr'] = rate
            with in_float64():
                optimizer.step()
        if step in COMPARED:
            after.append(flat(parameters))
    return after


def flat(tensors):
    return {name: tensor.detach().reshape(-1).tolist() for name, tensor in tensors.items()}


def json_text(value, indent=''):
    """JSON with each list of numbers on a separate line."""
    deeper = indent + ' '
    if isinstance(value, dict):
        return '{\n' + ',\n'.join(f'{deeper}"{key}": {json_text(item, deeper)}' for key, item in value.items()) + \
            f'\n{indent}}}'
    if isinstance(value, (list, tuple)) and isinstance(value[0], dict):
        return '[\n' + ',\n'.join(deeper + json_text(item, deeper) for item in value) + f'\n{indent}]'
    return json.dumps(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', type=pathlib.Path, default=ROOT / 'tests' / 'golden' / 'optimizers.json')
    arguments = parser.parse_args()

    generator = torch.Generator().manual_seed(1)

    def draw():
        return {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in SHAPES.items()}

    weights, gradients = draw(), [draw() for _ in RATES]
    golden = {
        'made_by': {'script': 'scripts/golden/optimizers.py', 'torch': torch.__version__.split('+')[0],
                    'lion-pytorch': importlib.metadata.version('lion-pytorch'),
                    'schedulefree': importlib.metadata.version('schedulefree')},
        'shapes': SHAPES, 'rates': RATES, 'compared': COMPARED, 'weights': flat(weights),
        'gradients': [flat(gradient) for gradient in gradients],
        'cases': [{'name': name, 'optimizer': optimizer, 'config': config, 'weight_decay': decay,
                   'gradient_scale': scale, 'after': trajectory(make, weights, gradients, scale)}
                  for name, optimizer, config, decay, scale, make in cases()],
    }
    arguments.output.write_text(json_text(golden) + '\n')


if __name__ == '__main__':
    main()
