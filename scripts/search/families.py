#!/usr/bin/env python3
"""Models of the PyPI package `transformers` with random settings, for tests/search/families_search_test.cpp.

For each number a tiny model of a random family is drawn, depending on seed and number alone. Its config.json has the keys
of the family's class, in the spelling of version 4 or 5, each with a random value or absent, and sometimes a key of
another family; `transformers` decides what they mean. Written are
  DIR/NUMBER/config.json, model.safetensors  the model; its weights are float32 numbers
  DIR/NUMBER/values.json                     as of scripts/golden/imported_models.py, and `labels`: a classifier's labels in
                                             the order of its outputs; or {"refused": why} if `transformers` refuses it
Folders that Plumb has exported are read back: for DIR/exports/NAME/folder and asked.json, with inputs as in values.json,
DIR/exports/NAME/answer.json has the logits or hidden states and the labels, or {"refused": why}.

    pip install torch transformers safetensors
    scripts/search/families.py --seed 1 --first 0 --cases 20 --directory DIR
"""
import argparse
import json
import pathlib
import random
import sys

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[0] = str(SCRIPTS / 'golden')  # instead of this folder, where files have names of packages
import torch  # noqa: E402
import transformers  # noqa: E402
from imported_models import SINGLE, logits_of, run_encoder, waves  # noqa: E402
from transformers_models import fill_randomly, flat, in_float64  # noqa: E402

LENGTHS = (7, 3)
ABSENT = object()
NAMES = ['negative', 'neutral', 'positive', 'LABEL_0', 'LABEL_1', 'toxic', 'a b', '']
# Keys of many models with values that would matter to those that have them.
STRAYS = {
    'attention_bias': [True, False], 'attention_multiplier': [0.5], 'chunk_size_feed_forward': [2],
    'dense_act_fn': ['gelu_new', 'relu', 'silu'], 'embedding_size': [4], 'final_logit_softcapping': [5.0],
    'head_dim': [2, 4, 6], 'hidden_act': ['gelu', 'relu', 'silu'], 'hidden_size': [8, 16], 'is_decoder': [True, False],
    'is_gated_act': [True, False], 'layer_norm_eps': [0.1], 'layer_types': [['sliding_attention'] * 2],
    'logit_scale': [2.0], 'max_position_embeddings': [0, 64], 'mlp_bias': [True, False], 'n_positions': [64],
    'normalize_before': [True], 'num_attention_heads': [1, 2], 'num_hidden_layers': [1, 2, 3],
    'num_key_value_heads': [1, 2], 'original_max_position_embeddings': [4], 'partial_rotary_factor': [0.5, 1.0],
    'position_embedding_type': ['relative_key', 'absolute'], 'pruned_heads': [{}, {'0': [0]}],
    'qk_layernorm': [True], 'rms_norm_eps': [0.1], 'rope_interleaved': [True],
    'rope_scaling': [{'rope_type': 'linear', 'factor': 4.0}],
    'rope_theta': [50.0], 'rotary_emb_base': [50.0], 'rotary_pct': [0.5], 'scale_attn_by_inverse_layer_idx': [True],
    'scale_attn_weights': [False], 'scale_decoder_outputs': [True, False], 'scale_embedding': [True],
    'sliding_window': [2], 'tie_word_embeddings': [True, False], 'torch_dtype': ['float16'], 'type_vocab_size': [1, 3],
    'use_parallel_residual': [True, False], 'use_qkv_bias': [True], 'use_sliding_window': [True]}


class Draw(random.Random):
    """Random settings."""

    def maybe(self, *values):
        """One of the values, or no such key."""
        return self.choice([ABSENT, *values])

    def rare(self, *values):
        """Mostly no such key."""
        return self.choice(values) if self.random() < 0.15 else ABSENT


def rotary(draw):
    """The keys of rotary positions in one of three spellings."""
    kind = draw.choice(['default', 'default', 'linear', 'llama3', 'dynamic'] if draw.random() < 0.5 else ['default'])
    rope = {}
    if kind != 'default':
        rope['factor'] = draw.choice([1.5, 2.0, 8.0])
    if kind == 'llama3':
        rope.update(low_freq_factor=1.0, high_freq_factor=4.0)
        original = draw.maybe(16, 64)
        if original is not ABSENT:
            rope['original_max_position_embeddings'] = original
    theta = draw.maybe(20.0, 500.0, 10000.0, 1000000)
    share = draw.choice([0.25, 0.5, 0.75, 1.0]) if draw.random() < 0.3 else ABSENT
    spelling = draw.choice(['rope_parameters', 'rope_scaling', 'top'])
    inside = rope if spelling == 'rope_parameters' else {}
    keys = {}
    for key, value in (('rope_theta', theta), ('partial_rotary_factor', share)):
        (inside if spelling == 'rope_parameters' and draw.random() < 0.8 else keys)[key] = value
    if spelling == 'rope_parameters' or rope:
        rope[draw.choice(['rope_type', 'rope_type', 'type'])] = kind
        keys['rope_parameters' if spelling == 'rope_parameters' else 'rope_scaling'] = clean(rope)
    return keys


def clean(keys):
    return {key: value for key, value in keys.items() if value is not ABSENT}


def decoder(draw):
    heads, size = draw.choice([1, 2, 3, 4]), draw.choice([2, 4, 6, 8])
    return {'vocab_size': draw.randint(11, 29), 'hidden_size': heads * size, 'intermediate_size': draw.randint(3, 20),
            'num_hidden_layers': draw.randint(1, 2), 'num_attention_heads': heads,
            'max_position_embeddings': draw.maybe(64, 128), 'tie_word_embeddings': draw.maybe(True, False),
            'bos_token_id': None, 'eos_token_id': None, 'pad_token_id': None}


def grouped(draw, heads):
    return draw.maybe(*[number for number in range(1, heads + 1) if heads % number == 0], heads)


def llama_like(draw):
    keys = decoder(draw)
    keys.update(num_key_value_heads=grouped(draw, keys['num_attention_heads']), head_dim=draw.maybe(2, 4, 6),
                hidden_act=draw.maybe('silu', 'gelu', 'gelu_pytorch_tanh'), rms_norm_eps=draw.maybe(1e-5, 1e-2),
                **rotary(draw))
    return keys


def llama(draw):
    return 'LlamaForCausalLM', {**llama_like(draw), 'attention_bias': draw.maybe(True, False),
                                'mlp_bias': draw.maybe(True, False), 'pretraining_tp': draw.maybe(1)}


def qwen(draw, name):
    keys = llama_like(draw)
    keys.update(use_sliding_window=draw.rare(True, False), sliding_window=draw.rare(2, None),
                max_window_layers=draw.rare(0, 1, 28))
    if name == 'Qwen3':
        keys.update(attention_bias=draw.maybe(True, False))
    if draw.random() < 0.2:
        keys['layer_types'] = ['full_attention'] * keys['num_hidden_layers']
    return name + 'ForCausalLM', keys


def stablelm(draw):
    keys = decoder(draw)
    keys.update(num_key_value_heads=grouped(draw, keys['num_attention_heads']), hidden_act=draw.maybe('silu', 'gelu'),
                layer_norm_eps=draw.maybe(1e-5, 1e-2), use_qkv_bias=draw.maybe(True, False),
                use_parallel_residual=draw.maybe(True, False), qk_layernorm=draw.rare(True, False), **rotary(draw))
    return 'StableLmForCausalLM', keys


def gpt_neox(draw):
    keys = decoder(draw)
    keys.update(hidden_act=draw.choice(['gelu', 'gelu_new', 'relu', 'gelu_fast']), attention_bias=draw.maybe(True, False),
                layer_norm_eps=draw.maybe(1e-5, 1e-2), use_parallel_residual=draw.maybe(True, False))
    if draw.random() < 0.5:
        keys.update(rotary_pct=draw.maybe(0.25, 0.5, 1.0), rotary_emb_base=draw.maybe(20, 10000))
    if draw.random() < 0.7:
        keys.update(rotary(draw))
    return 'GPTNeoXForCausalLM', keys


def gpt2(draw):
    heads = draw.choice([1, 2, 4])
    return 'GPT2LMHeadModel', {
        'vocab_size': draw.randint(11, 29), 'n_positions': draw.choice([12, 40]), 'n_embd': heads * draw.randint(1, 5),
        'n_layer': draw.randint(1, 2), 'n_head': heads, 'n_inner': draw.maybe(None, 7, 20),
        'activation_function': draw.choice(['gelu_new', 'gelu', 'relu', 'gelu_pytorch_tanh', 'gelu_python']),
        'layer_norm_epsilon': draw.maybe(1e-5, 1e-2), 'tie_word_embeddings': draw.maybe(True, False),
        'scale_attn_weights': draw.rare(True, False), 'scale_attn_by_inverse_layer_idx': draw.rare(True, False),
        'reorder_and_upcast_attn': draw.rare(True, False), 'bos_token_id': None, 'eos_token_id': None}


def labels(draw):
    number = draw.randint(2, 4)
    if draw.random() < 0.2:
        return {'num_labels': draw.maybe(number)}
    names = draw.sample(NAMES, number)
    order = draw.sample(range(number), number)
    return {'id2label': {str(i): names[i] for i in order}, 'label2id': {names[i]: i for i in order},
            'problem_type': draw.rare('single_label_classification', None), 'num_labels': draw.rare(number)}


def bert_like(draw, name, classes):
    heads = draw.choice([1, 2, 4])
    keys = {'vocab_size': draw.randint(11, 29), 'hidden_size': heads * draw.randint(1, 5),
            'intermediate_size': draw.randint(3, 20), 'num_hidden_layers': draw.randint(1, 2),
            'num_attention_heads': heads, 'max_position_embeddings': draw.choice([14, 40]),
            'hidden_act': draw.choice(['gelu', 'gelu', 'gelu_new', 'relu']), 'layer_norm_eps': draw.maybe(1e-12, 1e-2),
            'type_vocab_size': draw.maybe(1, 2, 3), 'tie_word_embeddings': draw.maybe(True, False),
            'pad_token_id': draw.rare(0, 1, 3), 'classifier_dropout': draw.rare(0.1, None)}
    make = draw.choice(classes)
    if make.endswith('Classification'):
        keys.update(labels(draw))
    return name + make, keys


def distilbert(draw):
    heads = draw.choice([1, 2, 4])
    return 'DistilBert' + draw.choice(['Model', 'ForMaskedLM']), {
        'vocab_size': draw.randint(11, 29), 'dim': heads * draw.randint(1, 5), 'hidden_dim': draw.randint(3, 20),
        'n_layers': draw.randint(1, 2), 'n_heads': heads, 'max_position_embeddings': draw.choice([12, 40]),
        'activation': draw.choice(['gelu', 'gelu', 'relu']), 'tie_word_embeddings': draw.maybe(True, False),
        'sinusoidal_pos_embds': draw.rare(True, False)}


def t5(draw):
    return 'T5ForConditionalGeneration', {
        'vocab_size': draw.randint(11, 29), 'd_model': draw.randint(2, 16), 'd_kv': draw.choice([1, 2, 4, 5]),
        'd_ff': draw.randint(3, 20), 'num_layers': draw.randint(1, 2), 'num_decoder_layers': draw.maybe(1, 2, 3),
        'num_heads': draw.randint(1, 4), 'layer_norm_epsilon': draw.maybe(1e-6, 1e-2),
        'feed_forward_proj': draw.maybe('relu', 'gated-gelu', 'gated-silu', 'gated-relu', 'gelu'),
        'tie_word_embeddings': draw.maybe(True, False), 'scale_decoder_outputs': draw.rare(True, False),
        'relative_attention_num_buckets': draw.rare(16, 32), 'relative_attention_max_distance': draw.rare(64, 128),
        'decoder_start_token_id': 0, 'is_encoder_decoder': draw.maybe(True)}


def marian(draw):
    heads = draw.choice([1, 2, 4])
    vocabulary, wide = draw.randint(11, 29), draw.randint(3, 20)
    return 'MarianMTModel', {
        'vocab_size': vocabulary, 'd_model': heads * draw.choice([2, 4]), 'encoder_layers': draw.randint(1, 2),
        'decoder_layers': draw.randint(1, 3), 'encoder_attention_heads': heads,
        'decoder_attention_heads': draw.choice([heads, heads, heads, 1]), 'encoder_ffn_dim': wide,
        'decoder_ffn_dim': draw.choice([wide, wide, wide, 7]),
        'activation_function': draw.maybe('swish', 'silu', 'relu', 'gelu', 'gelu_new'),
        'scale_embedding': draw.maybe(True, False), 'max_position_embeddings': draw.choice([12, 40]),
        'share_encoder_decoder_embeddings': draw.maybe(True, False),
        'decoder_vocab_size': draw.rare(vocabulary, 10), 'num_hidden_layers': draw.rare(1, 2),
        'tie_word_embeddings': draw.rare(True, False), 'pad_token_id': 1, 'eos_token_id': 0, 'decoder_start_token_id': 1,
        'forced_eos_token_id': 0}


FAMILIES = {
    'llama': llama, 'qwen2': lambda draw: qwen(draw, 'Qwen2'), 'qwen3': lambda draw: qwen(draw, 'Qwen3'),
    'stablelm': stablelm, 'gpt_neox': gpt_neox, 'gpt2': gpt2, 't5': t5, 'marian': marian, 'distilbert': distilbert,
    'bert': lambda draw: bert_like(draw, 'Bert', ['Model', 'ForMaskedLM', 'ForPreTraining',
                                                  'ForSequenceClassification', 'ForSequenceClassification']),
    'roberta': lambda draw: bert_like(draw, 'Roberta', ['Model', 'ForMaskedLM', 'ForSequenceClassification']),
    'xlm-roberta': lambda draw: bert_like(draw, 'XLMRoberta', ['Model', 'ForMaskedLM', 'ForSequenceClassification'])}


def settings_of(draw):
    family = draw.choice(sorted(FAMILIES))
    make, keys = FAMILIES[family](draw)
    if draw.random() < 0.25:
        key = draw.choice(sorted(STRAYS))
        keys[key] = draw.choice(STRAYS[key])
    return {'model_type': family, 'architectures': [make], **clean(keys)}


def build(make, config, generator):
    config._attn_implementation = 'eager'
    model = make(config).double().eval()
    fill_randomly(model, 0.0, generator)
    if config.model_type == 't5' and not config.scale_decoder_outputs and config.d_model % 2 == 0:
        model.lm_head.weight = torch.nn.Parameter(torch.randn(model.lm_head.weight.shape, generator=generator) / 4)
    for parameter in model.parameters():
        parameter.data = parameter.data.to(SINGLE).to(torch.float64)
    if config.model_type == 'marian':
        for side in (model.model.encoder, model.model.decoder):
            side.embed_positions.weight.data = waves(side.embed_positions.weight)
        bias = torch.randn(model.final_logits_bias.shape, generator=generator)
        model.final_logits_bias = bias.to(SINGLE).to(torch.float64)
    return model


def values_of(model, config, generator):
    known = getattr(config, 'decoder_vocab_size', config.vocab_size)
    rows = [torch.randint(4, min(known, config.vocab_size), (length,), generator=generator) for length in LENGTHS]
    result = {'tokens': [row.tolist() for row in rows]}
    if config.is_encoder_decoder:
        result['sources'] = [row.tolist() for row in reversed(rows)]
        result['logits'] = flat(torch.cat([
            model(input_ids=source[None], decoder_input_ids=target[None], use_cache=False).logits[0]
            for source, target in zip(reversed(rows), rows)]))
    elif config.model_type in ('bert', 'roberta', 'xlm-roberta', 'distilbert'):
        kinds = getattr(config, 'type_vocab_size', 1)
        segments = [torch.arange(len(row)).div(2, rounding_mode='floor') % kinds for row in rows]
        result['segments'] = [segment.tolist() for segment in segments]
        outputs = [run_encoder(model, row, segment) for row, segment in zip(rows, segments)]
        classifies = 'Classification' in type(model).__name__
        if not classifies:
            result['hidden'] = flat(torch.cat([output.hidden_states[-1][0] for output in outputs]))
        if not type(model).__name__.endswith('Model'):
            result['logits'] = flat(torch.cat([logits_of(output).reshape(-1, logits_of(output).shape[-1])
                                               for output in outputs]))
        if classifies:
            result['labels'] = [config.id2label[i] for i in range(len(result['logits'][0]))]
    else:
        result['logits'] = flat(torch.cat([model(row[None], use_cache=False).logits[0] for row in rows]))
    return result


def write_case(folder, seed, number):
    settings = settings_of(Draw(f'{seed} {number}'))
    generator = torch.Generator().manual_seed(seed * 1000003 + number)
    folder.mkdir(parents=True)
    try:
        make = getattr(transformers, settings['architectures'][0])
        with torch.no_grad(), in_float64():
            config = make.config_class.from_dict(json.loads(json.dumps(settings)))
            model = build(make, config, generator)
            values = values_of(model, config, generator)
        model.to(SINGLE).save_pretrained(folder)
    except Exception as error:  # transformers refuses in many ways
        values = {'refused': f'{type(error).__name__}: {error}'}
    for file in folder.iterdir():
        if file.suffix == '.json':
            file.unlink()
    (folder / 'config.json').write_text(json.dumps(settings, indent=2))
    (folder / 'values.json').write_text(json.dumps(values))


def load(folder):
    """Loads a folder with from_pretrained, then copies it to a model built in float64 throughout."""
    make = getattr(transformers, json.loads((folder / 'config.json').read_text())['architectures'][0])
    loaded, report = make.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    strays = [key for kind in ('missing_keys', 'unexpected_keys', 'mismatched_keys') for key in report[kind]
              if not (kind == 'missing_keys' and 'pooler.' in key or 'seq_relationship' in key)]  # left out
    if strays:
        sys.exit(f'{folder}: {strays}')
    config = loaded.config
    config._attn_implementation = 'eager'
    with in_float64():
        model = make(config).double().eval()
        if hasattr(getattr(model, 'lm_head', None), 'weight'):  # may be tied to the embedding
            model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
        model.load_state_dict(loaded.double().state_dict())
    if config.model_type == 'marian':
        for side in (model.model.encoder, model.model.decoder):
            side.embed_positions.weight.data = waves(side.embed_positions.weight)
    return model


def answer_of(model, values):
    if 'sources' in values:
        return torch.cat([model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits[0]
                          for source, target in zip(values['sources'], values['tokens'])])
    if 'segments' in values:
        outputs = [run_encoder(model, torch.tensor(row), torch.tensor(segments))
                   for row, segments in zip(values['tokens'], values['segments'])]
        if 'logits' not in values:
            return torch.cat([output.hidden_states[-1][0] for output in outputs])
        return torch.cat([logits_of(output).reshape(-1, len(values['logits'][0])) for output in outputs])
    return torch.cat([model(torch.tensor([row]), use_cache=False).logits[0] for row in values['tokens']])


def answer(case):
    asked = json.loads((case / 'asked.json').read_text())
    try:
        model = load(case / 'folder')
        with torch.no_grad(), in_float64():
            found = {'values': flat(answer_of(model, asked))}
        if 'Classification' in type(model).__name__:
            found['labels'] = [model.config.id2label[i] for i in range(model.config.num_labels)]
    except (Exception, SystemExit) as error:
        found = {'refused': f'{type(error).__name__}: {error}'}
    (case / 'answer.json').write_text(json.dumps(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--directory', type=pathlib.Path, required=True, help='where to write the folders')
    parser.add_argument('--seed', type=int, default=1, help='(default: %(default)s)')
    parser.add_argument('--first', type=int, default=0, help='number of the first case (default: %(default)s)')
    parser.add_argument('--cases', type=int, default=20, help='(default: %(default)s)')
    arguments = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    for number in range(arguments.first, arguments.first + arguments.cases):
        write_case(arguments.directory / str(number), arguments.seed, number)
    exports = arguments.directory / 'exports'
    for case in sorted(exports.iterdir()) if exports.is_dir() else []:
        answer(case)


if __name__ == '__main__':
    main()
