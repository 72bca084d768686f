#!/usr/bin/env python3
"""Reference values of the PyPI package `transformers` for tests/model/transformers_test.cpp.

Tiny models with random weights, computed in float64, of classes that Plumb does not import; imported_models.py has the
others. For each case NAME three files are written:
  NAME.toml         the model's configuration for Plumb
  NAME.safetensors  its weights, F64, under Plumb's names
  NAME.json         a batch of sequences of different lengths; hidden states and logits of every token; the mean loss;
                    the norm of the loss's gradient with respect to every tensor of the weights

Each sequence runs through the model separately, without padding or a padding mask. No token is reserved for padding,
since PyTorch would give its embedding no gradient. The loss is the mean over all targets of the batch, where position i
of a sequence predicts i + 1.

    pip install torch transformers safetensors
    scripts/golden/transformers_models.py            # writes tests/golden
    scripts/golden/transformers_models.py --check    # computes anew and compares with the files
"""
import argparse
import contextlib
import dataclasses
import json
import math
import pathlib
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.nn import functional

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCABULARY = 29
LENGTHS = (11, 2, 6)  # of the sequences of the batch


@contextlib.contextmanager
def in_float64():
    """transformers converts to float32 inside some models: RMSNorm, the softmax of attention, rotary angles. Here the
    names of that type mean float64, so every intermediate value is float64."""
    single, to_single = torch.float32, torch.Tensor.float
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float32 = torch.float = single
        torch.Tensor.float = to_single
        torch.set_default_dtype(default)


@dataclasses.dataclass
class Case:
    name: str
    seed: int
    make: type             # the class in transformers
    config: object         # its configuration
    plumb: dict            # the keys of [model]; a dict among the values is a section
    rename: callable       # tensors by transformers' names → {Plumb's name: tensor}
    gain_offset: float = 0  # added by the class to the gains of its norms


# Names. Each function maps weights, or their gradients, to the same under Plumb's names. Stacking
# and transposing commute with differentiation, so one function serves both.

def llama_names(config, tensors):
    result = {'tgt_embed.weight': tensors['model.embed_tokens.weight']}
    for layer in range(config.num_hidden_layers):
        theirs, ours = f'model.layers.{layer}', f'decoder.layers.{layer}'
        for kind in ('weight', 'bias'):
            if f'{theirs}.self_attn.q_proj.{kind}' in tensors:
                result[f'{ours}.self_attn.in_proj_{kind}'] = torch.cat(
                    [tensors[f'{theirs}.self_attn.{part}_proj.{kind}'] for part in 'qkv'])
        pairs = {'self_attn.o_proj': 'self_attn.out_proj', 'self_attn.q_norm': 'self_attn.q_norm',
                 'self_attn.k_norm': 'self_attn.k_norm', 'mlp.gate_proj': 'linear1', 'mlp.up_proj': 'linear3',
                 'mlp.down_proj': 'linear2', 'input_layernorm': 'norm1', 'post_attention_layernorm': 'norm2'}
        for their_part, our_part in pairs.items():
            for kind in ('weight', 'bias'):
                if f'{theirs}.{their_part}.{kind}' in tensors:
                    result[f'{ours}.{our_part}.{kind}'] = tensors[f'{theirs}.{their_part}.{kind}']
    result['decoder.norm.weight'] = tensors['model.norm.weight']
    if not config.tie_word_embeddings:
        result['output.weight'] = tensors['lm_head.weight']
    return result


def gptj_names(config, tensors):
    result = {'tgt_embed.weight': tensors['transformer.wte.weight']}
    for layer in range(config.n_layer):
        theirs, ours = f'transformer.h.{layer}', f'decoder.layers.{layer}'
        result[f'{ours}.self_attn.in_proj_weight'] = torch.cat(
            [tensors[f'{theirs}.attn.{part}_proj.weight'] for part in 'qkv'])
        result[f'{ours}.self_attn.out_proj.weight'] = tensors[f'{theirs}.attn.out_proj.weight']
        for their_part, our_part in {'mlp.fc_in': 'linear1', 'mlp.fc_out': 'linear2', 'ln_1': 'norm1'}.items():
            for kind in ('weight', 'bias'):
                result[f'{ours}.{our_part}.{kind}'] = tensors[f'{theirs}.{their_part}.{kind}']
    for kind in ('weight', 'bias'):
        result[f'decoder.norm.{kind}'] = tensors[f'transformer.ln_f.{kind}']
        result[f'output.{kind}'] = tensors[f'lm_head.{kind}']
    return result


# Cases.

def decoder(**keys):
    return {'kind': 'decoder', 'residual': 'pre-ln', 'target_vocabulary': VOCABULARY, 'dropout': 0.0, **keys}


def cases():
    # With exact GELU: `gelu_python`, since this class takes the name `gelu` for the tanh approximation.
    yield Case(
        'gemma_tiny', 5, transformers.GemmaForCausalLM,
        transformers.GemmaConfig(vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
                                 num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, head_dim=6,
                                 rms_norm_eps=1e-6, hidden_act='gelu_python', pad_token_id=None,
                                 rope_parameters={'rope_type': 'default', 'rope_theta': 500.0},
                                 tie_word_embeddings=True, attn_implementation='eager'),
        decoder(norm='rmsnorm', norm_eps=1e-6, positions='rotary', activation='geglu', feed_forward_bias=False,
                attention_bias='none', d_model=16, feed_forward=24, heads=4, kv_heads=2, decoder_layers=2, head_size=6,
                embedding_factor=4.0, share_embeddings='target', rotary={'theta': 500.0, 'interleaved': False}),
        llama_names, gain_offset=1.0)

    yield Case(
        'gptj_tiny', 7, transformers.GPTJForCausalLM,
        transformers.GPTJConfig(vocab_size=VOCABULARY, n_positions=16, n_embd=24, n_layer=2, n_head=4, n_inner=32,
                                rotary_dim=4, activation_function='gelu_new', layer_norm_epsilon=1e-5,
                                tie_word_embeddings=False, bos_token_id=None, eos_token_id=None,
                                attn_implementation='eager'),
        decoder(parallel=True, norm='layernorm', norm_eps=1e-5, positions='rotary', activation='gelu-tanh',
                feed_forward_bias=True, attention_bias='none', d_model=24, feed_forward=32, heads=4, decoder_layers=2,
                embedding_factor=1.0, share_embeddings='none', output_bias=True,
                rotary={'theta': 10000.0, 'interleaved': True, 'features': 4}),
        gptj_names)


# Values.

def fill_randomly(model, gain_offset, generator):
    """Makes all weights random, even gains (around 1) and biases (around 0), so that a missing one is noticed."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            is_table = any(part in name for part in ('embed', 'wte', 'wpe'))
            mean, deviation = 0.0, 1.0 if is_table else 1.5 / math.sqrt(min(parameter.shape))
        elif name.endswith('bias'):
            mean, deviation = 0.0, 0.3
        else:
            mean, deviation = 1.0 - gain_offset, 0.3
        parameter.data = mean + deviation * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)


def build(case):
    generator = torch.Generator().manual_seed(case.seed)
    model = case.make(case.config).double().eval()
    fill_randomly(model, case.gain_offset, generator)
    rows = [torch.randint(VOCABULARY, (length,), generator=generator) for length in LENGTHS]
    return model, rows


def flat(tensor):
    return tensor.detach().reshape(-1, tensor.shape[-1]).tolist()


def language_model_loss(logits, rows):
    """The mean over all targets, from the logits of each sequence."""
    predictions = torch.cat([one[:-1] for one in logits])
    return functional.cross_entropy(predictions, torch.cat([row[1:] for row in rows]))


def evaluate(model, rows):
    outputs = [model(row[None], use_cache=False, output_hidden_states=True) for row in rows]
    states = {'hidden': flat(torch.cat([output.hidden_states[-1][0] for output in outputs])),
              'logits': flat(torch.cat([output.logits[0] for output in outputs]))}
    return states, language_model_loss([output.logits[0] for output in outputs], rows)


def gradient_norms(rename, config, gradients):
    return {name: gradient.norm().item() for name, gradient in rename(config, gradients).items()}


def values(case):
    with in_float64():
        model, rows = build(case)
        states, loss = evaluate(model, rows)
        loss.backward()
        weights, gradients = {}, {}
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None and parameter.dtype == torch.float64, name
            is_gain = parameter.dim() == 1 and name.endswith('weight')
            weights[name] = parameter.detach() + (case.gain_offset if is_gain else 0)
            gradients[name] = parameter.grad
    compare_with_unchanged_model(case, states['logits'])
    norms = gradient_norms(case.rename, case.config, gradients)
    golden = {
        'made_by': {'script': 'scripts/golden/transformers_models.py', 'class': case.make.__name__,
                    'torch': torch.__version__.split('+')[0], 'transformers': transformers.__version__,
                    'seed': case.seed},
        'batch': {'tokens': [row.tolist() for row in rows]}, 'loss': loss.item(), 'gradient_norm': norms,
        'gradient_norm_total': math.sqrt(sum(norm**2 for norm in norms.values())), **states}
    tensors = {name: tensor.contiguous() for name, tensor in case.rename(case.config, weights).items()}
    check_sizes(case, model, tensors)
    return golden, tensors


def compare_with_unchanged_model(case, logits):
    """Checks that in_float64 does not change the results: without it they agree to float32's precision."""
    model, rows = build(case)
    with torch.no_grad():
        unchanged = torch.tensor(evaluate(model, rows)[0]['logits'], dtype=torch.float64)
    difference = (unchanged - torch.tensor(logits, dtype=torch.float64)).abs().max().item()
    if difference > 1e-4:
        sys.exit(f'{case.name}: float64 throughout changes logits by {difference:.1e}')
    print(f'{case.name}: {case.make.__name__} as published differs by {difference:.1e}')


def check_sizes(case, model, tensors):
    """Checks that every weight of the model is in the file exactly once."""
    theirs = sum(parameter.numel() for parameter in model.parameters())
    ours = sum(tensor.numel() for tensor in tensors.values())
    if theirs != ours:
        sys.exit(f'{case.name}: {theirs} weights, but {ours} under Plumb\'s names')


# Files.

def toml_text(keys, section='model'):
    def literal(value):
        return json.dumps(value)  # strings, integers and booleans as in JSON; so are these floats

    lines = [f'[{section}]']
    lines += [f'{key} = {literal(value)}' for key, value in keys.items() if not isinstance(value, dict)]
    for key, value in keys.items():
        if isinstance(value, dict):
            lines += ['', toml_text(value, f'{section}.{key}').rstrip('\n')]
    return '\n'.join(lines) + '\n'


def json_text(golden):
    """JSON with one row of numbers per line."""
    entries = []
    for key, value in golden.items():
        if isinstance(value, list):
            text = '[\n  ' + ',\n  '.join(json.dumps(row) for row in value) + '\n ]'
        elif isinstance(value, dict):
            text = '{\n  ' + ',\n  '.join(f'{json.dumps(k)}: {json.dumps(v)}' for k, v in value.items()) + '\n }'
        else:
            text = json.dumps(value)
        entries.append(f' {json.dumps(key)}: {text}')
    return '{\n' + ',\n'.join(entries) + '\n}\n'


def write(base, case, golden, tensors):
    base.with_suffix('.toml').write_text(toml_text(case.plumb))
    base.with_suffix('.json').write_text(json_text(golden))
    save_file(tensors, base.with_suffix('.safetensors'))
    base.with_suffix('.safetensors').chmod(0o644)


def largest_difference(a, b):
    """The largest difference of two JSON values of the same shape; infinity if shapes or other values differ."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return max((largest_difference(a[key], b[key]) for key in a), default=0)
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return max((largest_difference(x, y) for x, y in zip(a, b)), default=0)
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) / max(1, abs(b))
    return 0 if a == b else math.inf


def check(base, case, golden, tensors):
    written = json.loads(base.with_suffix('.json').read_text())
    del written['made_by'], golden['made_by']
    stored = load_file(base.with_suffix('.safetensors'))
    same = (base.with_suffix('.toml').read_text() == toml_text(case.plumb) and stored.keys() == tensors.keys()
            and all(torch.equal(stored[name], tensors[name]) for name in stored))
    difference = largest_difference(golden, written)
    print(f'{case.name}: {"the same weights" if same else "OTHER weights or configuration"}, '
          f'values differ by {difference:.1e}')
    return same and difference < 1e-12


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--directory', type=pathlib.Path, default=ROOT / 'tests' / 'golden',
                        help='where the files lie (default: %(default)s)')
    parser.add_argument('--only', nargs='+', metavar='NAME', help='cases (default: all)')
    parser.add_argument('--check', action='store_true', help='write nothing, compare with the files')
    arguments = parser.parse_args()

    good = True
    for case in cases():
        if arguments.only and case.name not in arguments.only:
            continue
        golden, tensors = values(case)
        base = arguments.directory / case.name
        if arguments.check:
            good = check(base, case, golden, tensors) and good
        else:
            write(base, case, golden, tensors)
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
