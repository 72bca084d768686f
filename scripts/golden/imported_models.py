#!/usr/bin/env python3
"""Writes model folders with the PyPI package `transformers`, for tests/interop/families_test.cpp.

Tiny models with random weights that are float32 numbers, and results computed in float64. For each case NAME a folder is
written:
  NAME/config.json, NAME/model*.safetensors  by the model's save_pretrained, in float32, some in several files
  NAME/values.json                           sequences of token ids and the logits of every token; of a language model
                                             also `greedy`, the 64 most probable tokens one after another that follow
                                             the first sequence; of an encoder-decoder also `sources`, the first token
                                             of every target, `start`, and `greedy` after it for the first source; of a
                                             classifier `segments`, and logits per sequence; of an encoder or a masked
                                             language model `segments` and `hidden`, the states of every token, and of
                                             the latter the logits of every token; of some language models and a
                                             classifier `loss`, the mean over all targets or sequences, whose labels
                                             are 0, 1, …, and `gradient_norm`, that of every tensor under Plumb's name

    pip install torch transformers safetensors
    scripts/golden/imported_models.py            # writes tests/golden/huggingface
    scripts/golden/imported_models.py --check    # computes anew and compares with the files
"""
import argparse
import json
import pathlib
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file
from torch.nn import functional
from transformers_models import (ROOT, VOCABULARY, fill_randomly, flat, gradient_norms, in_float64, json_text,
                                 language_model_loss, largest_difference, llama_names)

LENGTHS = (7, 3)
CONTINUATION = 64
DIFFERENTIATED = ('gpt2', 'llama2', 'llama3', 'qwen2', 'qwen3', 'bert')
SINGLE = torch.float32  # in_float64 rebinds this name


def cases():
    """Yields name, class, configuration and largest file size."""
    sizes = dict(vocab_size=VOCABULARY, hidden_size=16, intermediate_size=20, num_hidden_layers=2,
                 num_attention_heads=4, max_position_embeddings=128, pad_token_id=None, bos_token_id=None,
                 eos_token_id=None)
    grouped = dict(sizes, num_key_value_heads=2)
    whole = '1GB'

    yield 'gpt2', transformers.GPT2LMHeadModel, transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=80, n_embd=16, n_layer=2, n_head=4, n_inner=20, bos_token_id=None,
        eos_token_id=None), whole
    yield 'llama2', transformers.LlamaForCausalLM, transformers.LlamaConfig(**sizes, rms_norm_eps=1e-5), '6KB'
    yield 'llama3', transformers.LlamaForCausalLM, transformers.LlamaConfig(
        **grouped, head_dim=6, attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
        rope_parameters={'rope_type': 'llama3', 'rope_theta': 500.0, 'factor': 8.0, 'low_freq_factor': 1.0,
                         'high_freq_factor': 4.0, 'original_max_position_embeddings': 64}), whole
    yield 'qwen2', transformers.Qwen2ForCausalLM, transformers.Qwen2Config(
        **grouped, tie_word_embeddings=True, rope_parameters={'rope_type': 'linear', 'rope_theta': 1e6, 'factor': 2.5}
    ), whole
    yield 'qwen3', transformers.Qwen3ForCausalLM, transformers.Qwen3Config(**grouped, head_dim=6), whole
    yield 'gpt_neox', transformers.GPTNeoXForCausalLM, transformers.GPTNeoXConfig(
        **{**sizes, 'num_attention_heads': 2}, rope_parameters={'rope_type': 'default', 'rope_theta': 500.0,
                                                              'partial_rotary_factor': 0.5}), whole
    yield 'gpt_neox_sequential', transformers.GPTNeoXForCausalLM, transformers.GPTNeoXConfig(
        **sizes, use_parallel_residual=False, attention_bias=False, hidden_act='gelu_new',
        rope_parameters={'rope_type': 'default', 'rope_theta': 10000.0, 'partial_rotary_factor': 1.0}), whole
    labels = dict(num_labels=3)
    yield 'bert', transformers.BertForSequenceClassification, transformers.BertConfig(
        **{**sizes, 'max_position_embeddings': 16, 'pad_token_id': 0}, **labels), whole
    yield 'roberta', transformers.RobertaForSequenceClassification, transformers.RobertaConfig(
        **{**sizes, 'max_position_embeddings': 18, 'pad_token_id': 1}, type_vocab_size=1, layer_norm_eps=1e-5, **labels
    ), whole
    yield 'stablelm', transformers.StableLmForCausalLM, transformers.StableLmConfig(
        **grouped, use_qkv_bias=True, rope_parameters={'rope_type': 'default', 'rope_theta': 500.0,
                                                       'partial_rotary_factor': 0.5}), whole
    yield 'stablelm_parallel', transformers.StableLmForCausalLM, transformers.StableLmConfig(
        **{**sizes, 'num_attention_heads': 2}, num_key_value_heads=2, use_parallel_residual=True,
        tie_word_embeddings=True), whole
    t5 = dict(vocab_size=VOCABULARY, d_model=16, d_kv=4, d_ff=20, num_layers=2, num_decoder_layers=3, num_heads=3,
              decoder_start_token_id=0)
    yield 't5', transformers.T5ForConditionalGeneration, transformers.T5Config(**t5), whole
    yield 't5_1.1', transformers.T5ForConditionalGeneration, transformers.T5Config(
        **t5, feed_forward_proj='gated-gelu', tie_word_embeddings=False), whole
    marian = dict(vocab_size=VOCABULARY, d_model=16, encoder_layers=2, decoder_layers=3, encoder_ffn_dim=20,
                  decoder_ffn_dim=20, encoder_attention_heads=4, decoder_attention_heads=4, scale_embedding=True,
                  activation_function='swish', max_position_embeddings=80, pad_token_id=28, eos_token_id=0,
                  decoder_start_token_id=28, forced_eos_token_id=0)
    yield 'marian', transformers.MarianMTModel, transformers.MarianConfig(**marian), whole
    yield 'marian_two_vocabularies', transformers.MarianMTModel, transformers.MarianConfig(
        **{**marian, 'pad_token_id': 22, 'decoder_start_token_id': 22}, decoder_vocab_size=23,
        share_encoder_decoder_embeddings=False), whole
    encoder = {**sizes, 'max_position_embeddings': 18, 'pad_token_id': 1}
    yield 'bert_body', transformers.BertModel, transformers.BertConfig(
        **{**encoder, 'pad_token_id': 0}, hidden_act='gelu_new'), whole
    yield 'bert_masked', transformers.BertForMaskedLM, transformers.BertConfig(**{**encoder, 'pad_token_id': 0}), whole
    yield 'bert_pretraining', transformers.BertForPreTraining, transformers.BertConfig(
        **{**encoder, 'pad_token_id': 0}), whole
    yield 'roberta_body', without_pooler(transformers.RobertaModel), transformers.RobertaConfig(**encoder), whole
    yield 'roberta_masked', transformers.RobertaForMaskedLM, transformers.RobertaConfig(
        **encoder, tie_word_embeddings=False), whole
    yield 'xlm_roberta_body', transformers.XLMRobertaModel, transformers.XLMRobertaConfig(
        **encoder, type_vocab_size=1), whole
    distilled = dict(vocab_size=VOCABULARY, dim=16, hidden_dim=20, n_layers=2, n_heads=4, max_position_embeddings=18)
    yield 'distilbert_body', transformers.DistilBertModel, transformers.DistilBertConfig(**distilled), whole
    yield 'distilbert_masked', transformers.DistilBertForMaskedLM, transformers.DistilBertConfig(**distilled), whole


def waves(table):
    """Marian's positions in float64; transformers rounds them to float32."""
    length, width = table.shape
    angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** (
        torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def without_pooler(make):
    def made(config):
        return make(config, add_pooling_layer=False)
    made.__name__ = make.__name__
    return made


def build(make, config, seed):
    generator = torch.Generator().manual_seed(seed)
    config._attn_implementation = 'eager'
    model = make(config).double().eval()
    fill_randomly(model, 0.0, generator)
    for parameter in model.parameters():
        parameter.data = parameter.data.to(SINGLE).to(torch.float64)
    if 'Marian' in make.__name__:
        for side in (model.model.encoder, model.model.decoder):
            side.embed_positions.weight.data = waves(side.embed_positions.weight)
        bias = torch.randn(model.final_logits_bias.shape, generator=generator, dtype=SINGLE)
        model.final_logits_bias = bias.to(torch.float64)
    if not getattr(config, 'scale_decoder_outputs', True):  # T5 1.1: a separate output matrix
        matrix = torch.randn(model.lm_head.weight.shape, generator=generator, dtype=SINGLE) / 4
        model.lm_head.weight = torch.nn.Parameter(matrix.to(torch.float64))
    rows = [torch.randint(2, VOCABULARY, (length,), generator=generator) for length in LENGTHS]  # no padding
    return model, rows


# The names of Plumb's parameters, as in transformers_models.py.

def gpt2_names(config, tensors):
    result = {'tgt_embed.weight': tensors['transformer.wte.weight'],
              'tgt_position.weight': tensors['transformer.wpe.weight']}
    for layer in range(config.n_layer):
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


def bert_names(config, tensors):
    embeddings = 'bert.embeddings'
    result = {'src_embed.weight': tensors[f'{embeddings}.word_embeddings.weight'],
              'src_position.weight': tensors[f'{embeddings}.position_embeddings.weight'],
              'src_segment.weight': tensors[f'{embeddings}.token_type_embeddings.weight']}
    for kind in ('weight', 'bias'):
        result[f'src_embed_norm.{kind}'] = tensors[f'{embeddings}.LayerNorm.{kind}']
        for layer in range(config.num_hidden_layers):
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


def run_encoder(model, row, segment):
    segments = {} if 'Distil' in type(model).__name__ else {'token_type_ids': segment[None]}
    return model(row[None], output_hidden_states=True, **segments)


def logits_of(output):
    return output.logits if 'logits' in output else output.prediction_logits


def continuation(model, row):
    for _ in range(CONTINUATION):
        row = torch.cat([row, model(row[None], use_cache=False).logits[0, -1].argmax()[None]])
    return row[-CONTINUATION:].tolist()


def translation(model, source, start):
    row = torch.tensor([start])
    while len(row) <= CONTINUATION:
        logits = model(input_ids=source[None], decoder_input_ids=row[None], use_cache=False).logits
        row = torch.cat([row, logits[0, -1].argmax()[None]])
    return row[1:].tolist()


def differentiated(make, config, seed):
    """The loss and the norms of its gradient."""
    with in_float64():
        model, rows = build(make, config, seed)
        if 'Bert' in make.__name__:
            segments = [(torch.arange(len(row)) >= 2).long() for row in rows]
            logits = torch.cat([run_encoder(model, row, segment).logits for row, segment in zip(rows, segments)])
            loss, rename = functional.cross_entropy(logits, torch.arange(len(rows))), bert_names
        else:
            loss = language_model_loss([model(row[None], use_cache=False).logits[0] for row in rows], rows)
            rename = gpt2_names if 'GPT2' in make.__name__ else llama_names
        loss.backward()
        gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
        return {'loss': loss.item(), 'gradient_norm': gradient_norms(rename, config, gradients)}


def values(make, config, seed):
    with in_float64(), torch.no_grad():
        model, rows = build(make, config, seed)
        result = {'made_by': {'script': 'scripts/golden/imported_models.py', 'class': make.__name__,
                              'torch': torch.__version__.split('+')[0], 'transformers': transformers.__version__},
                  'tokens': [row.tolist() for row in rows]}
        if any(family in make.__name__ for family in ('Bert', 'Roberta')):
            kinds = getattr(config, 'type_vocab_size', 1)
            segments = [(torch.arange(len(row)) >= 2).long() % kinds for row in rows]
            result['segments'] = [segment.tolist() for segment in segments]
            outputs = [run_encoder(model, row, segment) for row, segment in zip(rows, segments)]
            if 'SequenceClassification' not in make.__name__:
                result['hidden'] = flat(torch.cat([output.hidden_states[-1][0] for output in outputs]))
            if not make.__name__.endswith('Model'):
                result['logits'] = flat(torch.cat([logits_of(output).reshape(-1, logits_of(output).shape[-1])
                                                   for output in outputs]))
        elif config.is_encoder_decoder:
            start, known = config.decoder_start_token_id, getattr(config, 'decoder_vocab_size', VOCABULARY)
            targets = [torch.cat([torch.tensor([start]), row[1:] % known]) for row in reversed(rows)]
            result['sources'] = result.pop('tokens')
            result['tokens'] = [target.tolist() for target in targets]
            result['start'] = start
            result['logits'] = flat(torch.cat([
                model(input_ids=row[None], decoder_input_ids=target[None], use_cache=False).logits[0]
                for row, target in zip(rows, targets)]))
            result['greedy'] = translation(model, rows[0], start)
        else:
            result['logits'] = flat(torch.cat([model(row[None], use_cache=False).logits[0] for row in rows]))
            result['greedy'] = continuation(model, rows[0])
    return result


def write(folder, make, config, seed, largest_file):
    golden = values(make, config, seed)
    if folder.name in DIFFERENTIATED:
        golden.update(differentiated(make, config, seed))
    model = build(make, config, seed)[0].float()
    with torch.no_grad():  # checks that in_float64 does not change the results
        row = torch.tensor(golden['tokens'][0])
        if 'segments' in golden:
            output = run_encoder(model, row, torch.tensor(golden['segments'][0]))
        elif 'sources' in golden:
            output = model(torch.tensor(golden['sources'][0])[None], decoder_input_ids=row[None])
        else:
            output = model(row[None])
        found = logits_of(output)[0] if 'logits' in golden else output.hidden_states[-1][0]
        expected = golden['logits' if 'logits' in golden else 'hidden']
        found = found.reshape(-1, len(expected[0]))
    difference = (found - torch.tensor(expected[:len(found)])).abs().max().item()
    print(f'{folder.name}: {make.__name__} as published differs by {difference:.1e}')
    if difference > 1e-4:
        sys.exit(f'{folder.name}: float64 throughout changes values by {difference:.1e}')
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder, max_shard_size=largest_file)
    (folder / 'generation_config.json').unlink(missing_ok=True)
    (folder / 'values.json').write_text(json_text(golden))
    for file in folder.iterdir():
        file.chmod(0o644)


def same(made, stored):
    names = sorted(file.name for file in made.iterdir())
    if names != sorted(file.name for file in stored.iterdir()):
        return False
    for name in names:
        if name.endswith('.safetensors'):
            one, other = load_file(made / name), load_file(stored / name)
            equal = one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)
        else:
            one, other = (json.loads((folder / name).read_text()) for folder in (made, stored))
            for document in (one, other):
                document.pop('made_by', None)
                document.pop('transformers_version', None)
            equal = largest_difference(one, other) < 1e-12
        if not equal:
            print(f'{stored.name}/{name} differs')
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--directory', type=pathlib.Path, default=ROOT / 'tests' / 'golden' / 'huggingface',
                        help='where the folders lie (default: %(default)s)')
    parser.add_argument('--only', nargs='+', metavar='NAME', help='cases (default: all)')
    parser.add_argument('--check', action='store_true', help='write nothing, compare with the files')
    arguments = parser.parse_args()

    transformers.utils.logging.disable_progress_bar()
    good = True
    for seed, (name, make, config, largest_file) in enumerate(cases(), start=1):
        if arguments.only and name not in arguments.only:
            continue
        if not arguments.check:
            write(arguments.directory / name, make, config, seed, largest_file)
            continue
        with tempfile.TemporaryDirectory() as made:
            write(pathlib.Path(made) / name, make, config, seed, largest_file)
            good = same(pathlib.Path(made) / name, arguments.directory / name) and good
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
