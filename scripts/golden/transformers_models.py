#!/usr/bin/env python3
"""Reference values of the PyPI package `transformers` for tests/model/transformers_test.cpp.

Tiny models with random weights, computed in float64. For each case NAME three files are written:
  NAME.toml         the model's configuration for Plumb
  NAME.safetensors  its weights, F64, under Plumb's names
  NAME.json         a batch of sequences of different lengths; hidden states and logits of every token; the mean loss;
                    the norm of the loss's gradient with respect to every tensor of the weights

Each sequence runs through the model separately, without padding or a padding mask. No token is reserved for padding,
since PyTorch would give its embedding no gradient. A language model's loss is the mean over all targets of the batch,
where position i of a sequence predicts i + 1; a classifier's is the mean over the sequences.

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
    make: type             # the class in transformers
    config: object         # its configuration
    plumb: dict            # the keys of [model]; a dict among the values is a section
    rename: callable       # tensors by transformers' names → {Plumb's name: tensor}
    gain_offset: float = 0  # added by the class to the gains of its norms


# Names. Each function maps a dictionary of weights, or of their gradients, to the same under Plumb's names. Stacking
# and transposing commute with differentiation, so one function serves both.

def llama_names(case, tensors):
    result = {'tgt_embed.weight': tensors['model.embed_tokens.weight']}
    for layer in range(case.config.num_hidden_layers):
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
    if not case.config.tie_word_embeddings:
        result['output.weight'] = tensors['lm_head.weight']
    return result


def gpt2_names(case, tensors):
    result = {'tgt_embed.weight': tensors['transformer.wte.weight'],
              'tgt_position.weight': tensors['transformer.wpe.weight']}
    for layer in range(case.config.n_layer):
        theirs, ours = f'transformer.h.{layer}', f'decoder.layers.{layer}'
        matrices = {'attn.c_attn': 'self_attn.in_proj_', 'attn.c_proj': 'self_attn.out_proj.',
                    'mlp.c_fc': 'linear1.', 'mlp.c_proj': 'linear2.'}
        for their_part, our_part in matrices.items():  # Conv1D stores (in, out)
            result[f'{ours}.{our_part}weight'] = tensors[f'{theirs}.{their_part}.weight'].T
            result[f'{ours}.{our_part}bias'] = tensors[f'{theirs}.{their_part}.bias']
        for their_part, our_part in {'ln_1': 'norm1', 'ln_2': 'norm2'}.items():
            for kind in ('weight', 'bias'):
                result[f'{ours}.{our_part}.{kind}'] = tensors[f'{theirs}.{their_part}.{kind}']
    for kind in ('weight', 'bias'):
        result[f'decoder.norm.{kind}'] = tensors[f'transformer.ln_f.{kind}']
    return result


def gptj_names(case, tensors):
    result = {'tgt_embed.weight': tensors['transformer.wte.weight']}
    for layer in range(case.config.n_layer):
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


def bert_names(case, tensors):
    embeddings = 'bert.embeddings'
    result = {'src_embed.weight': tensors[f'{embeddings}.word_embeddings.weight'],
              'src_position.weight': tensors[f'{embeddings}.position_embeddings.weight'],
              'src_segment.weight': tensors[f'{embeddings}.token_type_embeddings.weight']}
    for kind in ('weight', 'bias'):
        result[f'src_embed_norm.{kind}'] = tensors[f'{embeddings}.LayerNorm.{kind}']
        for layer in range(case.config.num_hidden_layers):
            theirs, ours = f'bert.encoder.layer.{layer}', f'encoder.layers.{layer}'
            result[f'{ours}.self_attn.in_proj_{kind}'] = torch.cat(
                [tensors[f'{theirs}.attention.self.{part}.{kind}'] for part in ('query', 'key', 'value')])
            pairs = {'attention.output.dense': 'self_attn.out_proj', 'attention.output.LayerNorm': 'norm1',
                     'intermediate.dense': 'linear1', 'output.dense': 'linear2', 'output.LayerNorm': 'norm2'}
            for their_part, our_part in pairs.items():
                result[f'{ours}.{our_part}.{kind}'] = tensors[f'{theirs}.{their_part}.{kind}']
        result[f'pooler.{kind}'] = tensors[f'bert.pooler.dense.{kind}']
        result[f'output.{kind}'] = tensors[f'classifier.{kind}']
    return result


# Cases.

def decoder(**keys):
    return {'kind': 'decoder', 'residual': 'pre-ln', 'target_vocabulary': VOCABULARY, 'dropout': 0.0, **keys}


def llama_like(norm_eps, rotary, **keys):
    return decoder(norm='rmsnorm', norm_eps=norm_eps, positions='rotary', **{'activation': 'swiglu', **keys},
                   rotary=rotary)


def cases():
    sizes = dict(vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
                 num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, attn_implementation='eager')
    our_sizes = dict(d_model=16, feed_forward=24, heads=4, kv_heads=2, decoder_layers=2)
    rope = {'rope_type': 'default', 'rope_theta': 500.0}
    rotary = {'theta': 500.0, 'interleaved': False}

    yield Case(
        'llama_tiny', transformers.LlamaForCausalLM,
        transformers.LlamaConfig(**sizes, rms_norm_eps=1e-5, rope_parameters=rope, tie_word_embeddings=False),
        llama_like(1e-5, rotary, feed_forward_bias=False, attention_bias='none', **our_sizes, embedding_factor=1.0,
                   share_embeddings='none'),
        llama_names)

    # Wavelengths of the three pairs of features: 6, 50 and 396 positions, one in each band of Llama 3's scaling.
    yield Case(
        'llama_wide', transformers.LlamaForCausalLM,
        transformers.LlamaConfig(
            **{**sizes, 'num_hidden_layers': 3, 'max_position_embeddings': 1024}, head_dim=6, rms_norm_eps=1e-6,
            attention_bias=True, mlp_bias=True,
            rope_parameters={'rope_type': 'llama3', 'rope_theta': 500.0, 'factor': 8.0, 'low_freq_factor': 1.0,
                             'high_freq_factor': 4.0, 'original_max_position_embeddings': 128},
            tie_word_embeddings=False),
        llama_like(1e-6, {**rotary, 'scaling': 'llama3', 'factor': 8.0, 'low_frequency_factor': 1.0,
                          'high_frequency_factor': 4.0, 'original_length': 128},
                   feed_forward_bias=True, attention_bias='all', **{**our_sizes, 'decoder_layers': 3}, head_size=6,
                   embedding_factor=1.0, share_embeddings='none'),
        llama_names)

    yield Case(
        'qwen2_tiny', transformers.Qwen2ForCausalLM,
        transformers.Qwen2Config(**sizes, rms_norm_eps=1e-6, tie_word_embeddings=True,
                                 rope_parameters={'rope_type': 'linear', 'rope_theta': 500.0, 'factor': 2.5}),
        llama_like(1e-6, {**rotary, 'scaling': 'linear', 'factor': 2.5}, feed_forward_bias=False,
                   attention_bias='qkv', **our_sizes, embedding_factor=1.0, share_embeddings='target'),
        llama_names)

    yield Case(
        'qwen3_tiny', transformers.Qwen3ForCausalLM,
        transformers.Qwen3Config(**sizes, head_dim=6, rms_norm_eps=1e-6, rope_parameters=rope,
                                 tie_word_embeddings=False),
        llama_like(1e-6, rotary, qk_norm='rmsnorm', feed_forward_bias=False, attention_bias='none', **our_sizes,
                   head_size=6, embedding_factor=1.0, share_embeddings='none'),
        llama_names)

    # With exact GELU: `gelu_python`, since this class takes the name `gelu` for the tanh approximation.
    yield Case(
        'gemma_tiny', transformers.GemmaForCausalLM,
        transformers.GemmaConfig(**sizes, head_dim=6, rms_norm_eps=1e-6, hidden_act='gelu_python', pad_token_id=None,
                                 rope_parameters=rope, tie_word_embeddings=True),
        llama_like(1e-6, rotary, activation='geglu', feed_forward_bias=False, attention_bias='none', **our_sizes,
                   head_size=6, embedding_factor=4.0, share_embeddings='target'),
        llama_names, gain_offset=1.0)

    yield Case(
        'gpt2_tiny', transformers.GPT2LMHeadModel,
        transformers.GPT2Config(vocab_size=VOCABULARY, n_positions=16, n_embd=16, n_layer=2, n_head=4, n_inner=24,
                                activation_function='gelu_new', layer_norm_epsilon=1e-5, tie_word_embeddings=True,
                                bos_token_id=None, eos_token_id=None, attn_implementation='eager'),
        decoder(norm='layernorm', norm_eps=1e-5, positions='learned', max_positions=16, activation='gelu-tanh',
                feed_forward_bias=True, attention_bias='all', d_model=16, feed_forward=24, heads=4, decoder_layers=2,
                embedding_factor=1.0, share_embeddings='target'),
        gpt2_names)

    yield Case(
        'gptj_tiny', transformers.GPTJForCausalLM,
        transformers.GPTJConfig(vocab_size=VOCABULARY, n_positions=16, n_embd=24, n_layer=2, n_head=4, n_inner=32,
                                rotary_dim=4, activation_function='gelu_new', layer_norm_epsilon=1e-5,
                                tie_word_embeddings=False, bos_token_id=None, eos_token_id=None,
                                attn_implementation='eager'),
        decoder(parallel=True, norm='layernorm', norm_eps=1e-5, positions='rotary', activation='gelu-tanh',
                feed_forward_bias=True, attention_bias='none', d_model=24, feed_forward=32, heads=4, decoder_layers=2,
                embedding_factor=1.0, share_embeddings='none', output_bias=True,
                rotary={'theta': 10000.0, 'interleaved': True, 'features': 4}),
        gptj_names)

    yield Case(
        'bert_tiny', transformers.BertForSequenceClassification,
        transformers.BertConfig(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
                                intermediate_size=24, hidden_act='gelu', max_position_embeddings=16, type_vocab_size=2,
                                layer_norm_eps=1e-12, num_labels=3, pad_token_id=None, attn_implementation='eager'),
        {'kind': 'encoder', 'residual': 'post-ln', 'norm': 'layernorm', 'norm_eps': 1e-12, 'positions': 'learned',
         'max_positions': 16, 'activation': 'gelu', 'd_model': 16, 'feed_forward': 24, 'heads': 4, 'encoder_layers': 2,
         'source_vocabulary': VOCABULARY, 'embedding_factor': 1.0, 'embedding_norm': True, 'segments': 2,
         'pooling': 'first', 'pooler': True, 'labels': 3, 'dropout': 0.0},
        bert_names)


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


def build(case, seed):
    generator = torch.Generator().manual_seed(seed)
    model = case.make(case.config).double().eval()
    fill_randomly(model, case.gain_offset, generator)
    rows = [torch.randint(VOCABULARY, (length,), generator=generator) for length in LENGTHS]
    return model, rows


def flat(tensor):
    return tensor.detach().reshape(-1, tensor.shape[-1]).tolist()


def language_model_values(model, rows):
    outputs = [model(row[None], use_cache=False, output_hidden_states=True) for row in rows]
    logits = torch.cat([output.logits[0] for output in outputs])
    predictions = torch.cat([output.logits[0, :-1] for output in outputs])
    loss = functional.cross_entropy(predictions, torch.cat([row[1:] for row in rows]))
    batch = {'tokens': [row.tolist() for row in rows]}
    return batch, {'hidden': flat(torch.cat([output.hidden_states[-1][0] for output in outputs])),
                   'logits': flat(logits)}, loss


def classifier_values(model, rows):
    labels = torch.arange(len(rows)) % model.config.num_labels
    segments = [(torch.arange(len(row)) >= (len(row) + 1) // 2).long() for row in rows]
    outputs = [model.bert(row[None], token_type_ids=segment[None]) for row, segment in zip(rows, segments)]
    pooled = torch.cat([output.pooler_output for output in outputs])
    logits = torch.cat([model(row[None], token_type_ids=segment[None]).logits for row, segment in zip(rows, segments)])
    batch = {'tokens': [row.tolist() for row in rows], 'segments': [segment.tolist() for segment in segments],
             'labels': labels.tolist()}
    return batch, {'hidden': flat(torch.cat([output.last_hidden_state[0] for output in outputs])),
                   'pooled': flat(pooled), 'logits': flat(logits)}, functional.cross_entropy(logits, labels)


def values(case, seed):
    with in_float64():
        model, rows = build(case, seed)
        evaluate = classifier_values if case.plumb['kind'] == 'encoder' else language_model_values
        batch, states, loss = evaluate(model, rows)
        loss.backward()
        weights, gradients = {}, {}
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None and parameter.dtype == torch.float64, name
            is_gain = parameter.dim() == 1 and name.endswith('weight')
            weights[name] = parameter.detach() + (case.gain_offset if is_gain else 0)
            gradients[name] = parameter.grad
    compare_with_unchanged_model(case, seed, states['logits'])
    norms = {name: gradient.norm().item() for name, gradient in case.rename(case, gradients).items()}
    golden = {
        'made_by': {'script': 'scripts/golden/transformers_models.py', 'class': case.make.__name__,
                    'torch': torch.__version__.split('+')[0], 'transformers': transformers.__version__, 'seed': seed},
        'batch': batch, 'loss': loss.item(),
        'gradient_norm': norms,
        'gradient_norm_total': math.sqrt(sum(norm**2 for norm in norms.values())), **states}
    tensors = {name: tensor.contiguous() for name, tensor in case.rename(case, weights).items()}
    check_sizes(case, model, tensors)
    return golden, tensors


def compare_with_unchanged_model(case, seed, logits):
    """Checks that in_float64 does not change the results: without it they agree to float32's precision."""
    model, rows = build(case, seed)
    evaluate = classifier_values if case.plumb['kind'] == 'encoder' else language_model_values
    with torch.no_grad():
        unchanged = torch.tensor(evaluate(model, rows)[1]['logits'], dtype=torch.float64)
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
    for seed, case in enumerate(cases(), start=1):
        if arguments.only and case.name not in arguments.only:
            continue
        golden, tensors = values(case, seed)
        base = arguments.directory / case.name
        if arguments.check:
            good = check(base, case, golden, tensors) and good
        else:
            write(base, case, golden, tensors)
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
