#!/usr/bin/env python3
"""Reference values of torch.nn.TransformerEncoder and TransformerDecoder for tests/model/golden_test.cpp and
tests/analysis/probe_test.cpp, in float64: pre_deep and post_deep.

`--check` also computes the losses and gradients of pre_tiny and post_tiny, whose files have eigenvalues of the Hessian
besides, and are kept. Each pair runs separately, so nothing is padded.

    pip install torch safetensors
    scripts/golden/encoder_decoder.py            # writes tests/golden
    scripts/golden/encoder_decoder.py --check    # computes anew and compares with the files
"""
import argparse
import json
import math
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

FOLDER = pathlib.Path(__file__).resolve().parents[2] / 'tests' / 'golden'
SIZES = {'d_model': 8, 'ffn': 12, 'heads': 4, 'layers': 6, 'vocab': 17, 'eps': 1e-05, 'bos': 1, 'eos': 2, 'pad': 0}
NOTE = 'ids without specials; source gets EOS appended, target input is BOS+target, target output is target+EOS'


class EncoderDecoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config, first = config, config['scheme'] == 'pre'
        d_model = config['d_model']
        options = {'d_model': d_model, 'nhead': config['heads'], 'dim_feedforward': config['ffn'], 'dropout': 0,
                   'layer_norm_eps': config['eps'], 'batch_first': True, 'norm_first': first}

        def norm():
            return nn.LayerNorm(d_model, config['eps']) if first else None

        self.src_embed, self.tgt_embed = (nn.Embedding(config['vocab'], d_model) for _ in range(2))
        self.output = nn.Linear(d_model, config['vocab'], bias=False)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**options), config['layers'], norm(),
                                             enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**options), config['layers'], norm())
        self.double()

    def embedded(self, table, words):
        d_model = self.config['d_model']
        pairs = torch.arange(0, d_model, 2, dtype=torch.float64)
        angles = torch.arange(len(words), dtype=torch.float64)[:, None] / 10000**(pairs / d_model)
        positions = torch.stack((angles.sin(), angles.cos()), 2).flatten(1)
        return (math.sqrt(d_model) * table(torch.tensor(words)) + positions)[None]

    def loss(self, batch, label_smoothing=0.0):
        """The mean over all labels."""
        config, total, labels = self.config, 0, 0
        for source, target in zip(batch['source'], batch['target']):
            memory = self.encoder(self.embedded(self.src_embed, source + [config['eos']]))
            words = [config['bos']] + target
            mask = torch.triu(torch.ones(len(words), len(words), dtype=torch.bool), 1)
            logits = self.output(self.decoder(self.embedded(self.tgt_embed, words), memory, tgt_mask=mask))[0]
            total = total + functional.cross_entropy(logits, torch.tensor(target + [config['eos']]), reduction='sum',
                                                     label_smoothing=label_smoothing)
            labels += len(words)
        return total / labels


def measured(model, batch):
    model.zero_grad()
    loss = model.loss(batch)
    loss.backward()
    norms = {name: parameter.grad.norm().item() for name, parameter in model.named_parameters()}
    return {'parameters': sum(parameter.numel() for parameter in model.parameters()), 'loss': loss.item(),
            'loss_label_smoothing_0_1': model.loss(batch, 0.1).item(), 'gradient_norm': norms,
            'gradient_norm_total': math.hypot(*norms.values())}


def check(name):
    golden = json.loads((FOLDER / f'{name}.json').read_text())
    model = EncoderDecoder(golden['config'])
    model.load_state_dict(load_file(FOLDER / f'{name}.safetensors'))
    found = measured(model, golden['batch'])
    assert found['gradient_norm'].keys() == golden['gradient_norm'].keys()
    pairs = [(found[key], golden[key]) for key in found if key != 'gradient_norm']
    pairs += [(norm, golden['gradient_norm'][key]) for key, norm in found['gradient_norm'].items()]
    worst = max(abs(one - other) / abs(other) for one, other in pairs)
    print(f'{name}: the largest relative difference is {worst:.1e}')
    return worst < 1e-11


def write(scheme):
    torch.manual_seed(1)
    model = EncoderDecoder({'scheme': scheme, **SIZES})
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if 'norm' in name and name.endswith('weight'):
                parameter.copy_(1 + 0.1 * torch.randn_like(parameter))
            elif parameter.dim() == 1:
                parameter.copy_(0.1 * torch.randn_like(parameter))
            else:
                parameter.copy_(torch.randn_like(parameter) / math.sqrt(SIZES['d_model']))
    draw = torch.Generator().manual_seed(2)

    def sentences():
        lengths = torch.randint(3, 8, (5,), generator=draw).tolist()
        return [torch.randint(4, SIZES['vocab'], (length,), generator=draw).tolist() for length in lengths]

    batch = {'source': sentences(), 'target': sentences(), 'note': NOTE}
    weights = FOLDER / f'{scheme}_deep.safetensors'
    save_file(model.state_dict(), weights)
    weights.chmod(0o644)
    document = {'config': model.config, 'batch': batch, **measured(model, batch)}
    lines = ',\n'.join(f' {json.dumps(key)}: {json.dumps(value)}' for key, value in document.items())
    (FOLDER / f'{scheme}_deep.json').write_text('{\n' + lines + '\n}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true')
    if parser.parse_args().check:
        sys.exit(not all([check(f'{scheme}_{size}') for scheme in ('pre', 'post') for size in ('tiny', 'deep')]))
    for scheme in ('pre', 'post'):
        write(scheme)


if __name__ == '__main__':
    main()
