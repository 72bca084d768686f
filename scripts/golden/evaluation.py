#!/usr/bin/env python3
"""Reference values of lm-evaluation-harness for tests/evaluate/harness_test.cpp.

Writes tests/golden/evaluation: made-up items in four files of JSON Lines, folders of tiny models with random weights and
tokenizers as `transformers` saves them, and harness.json, which has for each model and task the log-likelihood of every
request, whether greedy decoding gives it, or the text that the model generates, and the metrics.

    pip install lm_eval torch transformers tokenizers
    scripts/golden/evaluation.py            # writes tests/golden/evaluation
    scripts/golden/evaluation.py --check    # computes anew and compares with harness.json
"""
import argparse
import json
import math
import os
import pathlib
import sys

os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('HF_DATASETS_OFFLINE', '1')
os.environ.setdefault('TOKENIZERS_PARALLELISM', 'false')

import lm_eval
import torch
import transformers
from lm_eval.api.task import ConfigurableTask
from lm_eval.models.huggingface import HFLM
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
END = '<|endoftext|>'

CHOICES = [
    ('The baker opened the oven, and', ['the bread was brown.', 'the bread was blue.', 'he sang to the moon'], 0),
    ('Question: Where do ships sail?\nAnswer:', ['on the sea', 'in a drawer', 'under the bed', 'on the sea at night'], 0),
    ('Das grüne Haus steht', ['über dem Fluß', 'über der Straße.', 'süß'], 1),
    ('the context ends in spaces  ', ['and goes on', 'or not'], 1),
    ('', ['an empty context', 'no context at all'], 1),
    ('One line.\n\nAnother line,\tafter a tab:', ['yes', 'no', 'perhaps', 'yes and no', 'neither 小船'], 4),
    ('The small ship sails to port with grain, and it does not fit; the crew of seven says no. ' * 2 + 'Then',
     ['the rain came', 'the ship sank in the port'], 1),
    ('The same choice twice', ['word', 'word'], 1),
    ('A letter:', ['A', 'B', 'C', 'D'], 2),
    ('The baker opened the oven, and', ['the bread was brown.', 'the bread was blue.', 'he sang to the moon'], 0),
]
CONTINUATIONS = [
    ('The last word of this line is', ' rain'), ('The ship sails to the', ' port'), ('No space before the', 'word'),
    ('Ends in a line break\n', 'and goes on'), ('', 'nothing before'), ('Das Haus und der', ' Fluß, 你好 😀'),
    ('the rain in the port rains on the ships and ' * 5, ' the sea'), ('x', ' y'),
]
TEXTS = [
    'A short text.', 'One word', ' Space at both ends \n',
    'The small ship sails to port with 1,250.5 tons of grain, and it doesn\'t fit; the crew (of seven) says "no". ' * 3,
    'Über den Wolken,\n\nzwei Zeilen weiter: 小船今天驶向港口。\n', 'x' * 130,
]
TASKS = {
    'choices': dict(output_type='multiple_choice', doc_to_text='context', doc_to_choice='choices', doc_to_target='gold',
                    metric_list=['acc', 'acc_norm', 'acc_bytes']),
    'continuations': dict(output_type='loglikelihood', doc_to_text='context', doc_to_target='continuation',
                          metric_list=['perplexity', 'acc']),
    'texts': dict(output_type='loglikelihood_rolling', doc_to_text='', doc_to_target='text',
                  metric_list=['word_perplexity', 'byte_perplexity', 'bits_per_byte']),
    'answers': dict(output_type='generate_until', doc_to_text='context', doc_to_target='answer',
                    generation_kwargs=dict(until=['\n'], do_sample=False, temperature=0.0, max_gen_toks=6),
                    filter_list=[dict(name='none', filter=[dict(function='remove_whitespace'),
                                                           dict(function='take_first')])],
                    metric_list=['exact_match']),
}


def write_lines(file, documents):
    file.write_text(''.join(json.dumps(document, ensure_ascii=False) + '\n' for document in documents))


def write_items(folder, greedy, written):
    write_lines(folder / 'choices.jsonl', [dict(zip(('context', 'choices', 'gold'), item)) for item in CHOICES])
    items = CONTINUATIONS + greedy
    write_lines(folder / 'continuations.jsonl', [dict(zip(('context', 'continuation'), item)) for item in items])
    write_lines(folder / 'answers.jsonl', [dict(zip(('context', 'answer'), item)) for item in written])
    write_lines(folder / 'texts.jsonl', [{'text': text} for text in TEXTS])


def tokenizer_of(begins):
    """Byte-level BPE, trained on the items; with `begins`, a token precedes each text, as in Llama."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    specials = [END] + (['<|begin|>'] if begins else [])
    texts = [context + ' ' + ' '.join(choices) for context, choices, _ in CHOICES] + TEXTS
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=360, special_tokens=specials, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    names = dict(eos_token=END)
    if begins:
        tokenizer.post_processor = processors.TemplateProcessing(single='<|begin|> $A', special_tokens=[('<|begin|>', 1)])
        names['bos_token'] = '<|begin|>'
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def tiny_models():
    gpt2 = tokenizer_of(False)
    yield 'gpt2', gpt2, transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=len(gpt2), n_positions=48, n_embd=16, n_layer=2, n_head=4, n_inner=20, bos_token_id=None,
        eos_token_id=0))
    llama = tokenizer_of(True)
    yield 'llama', llama, transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=len(llama), hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=True, bos_token_id=1, eos_token_id=0))


def fill(model, seed):
    """Sets random weights."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        scale = 0.2 if parameter.dim() > 1 else 0.1
        mean = 1.0 if parameter.dim() == 1 else 0.0
        parameter.data = mean + scale * torch.randn(parameter.shape, generator=generator)


def greedy_items(model, tokenizer, count):
    """Contexts with their most probable next token, if the tokenizer maps its text to the same token."""
    items = []
    words = sorted({word for text in TEXTS + [context for context, _, _ in CHOICES] for word in text.split()})
    for context in words:
        ids = tokenizer.encode(context)
        with torch.no_grad():
            best = model(torch.tensor([ids])).logits[0, -1].argmax().item()
        continuation = tokenizer.decode([best])
        if continuation.isprintable() and tokenizer.encode(context + continuation) == ids + [best]:
            items.append((context, continuation))
    return items[:count]


def written_items(model, tokenizer, count):
    """Contexts with the model's output up to a line break; every other answer is made wrong."""
    items = []
    for context in [context for context, _, _ in CHOICES if context] + TEXTS[:2]:
        ids = tokenizer(context, return_tensors='pt').input_ids[:, -42:]
        with torch.no_grad():
            whole = model.generate(ids, max_new_tokens=6, do_sample=False, pad_token_id=0)
        text = tokenizer.decode(whole[0, ids.shape[1]:], skip_special_tokens=True).split('\n')[0].strip()
        if text and text.isprintable():
            items.append((context, text if len(items) % 2 == 0 else text + '!'))
    return items[:count]


def write_models(folder):
    """Writes the models. Returns items with the models' greedy continuations, and items with their output."""
    greedy, written = [], []
    for seed, (name, tokenizer, model) in enumerate(tiny_models(), start=1):
        fill(model, seed)
        greedy += greedy_items(model.eval(), tokenizer, 2)
        written += written_items(model, tokenizer, 4)
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
        (folder / name / 'generation_config.json').unlink(missing_ok=True)
        for file in (folder / name).iterdir():
            file.chmod(0o644)
    return greedy, written


def configured(name, settings, file):
    """A task of the harness. `file` has its items."""
    settings = dict(settings, metric_list=[dict(metric=metric) for metric in settings['metric_list']])
    return ConfigurableTask(config=dict(task=name, dataset_path='json', dataset_kwargs={'data_files': {'test': str(file)}},
                                        test_split='test', fewshot_split='test', **settings))


def answers_of(samples):
    """[[log-likelihood, greedy], …] of every item; [log-likelihood] of a text; [text] for generated text."""
    rows = []
    for sample in sorted(samples, key=lambda s: s['doc_id']):
        row = []
        for (response,) in sample['resps']:
            row.append([response] if isinstance(response, (float, str)) else [float(response[0]), bool(response[1])])
        rows.append(row)
    return rows


def metrics_of(result):
    """With the standard errors of means, the only ones that Plumb reports."""
    return {key.removesuffix(',none'): value for key, value in result.items()
            if key.endswith(',none') and value != 'N/A' and key != 'perplexity_stderr,none'}


def golden(folder):
    document = {'made_by': {'script': 'scripts/golden/evaluation.py', 'lm_eval': lm_eval.__version__ if hasattr(
        lm_eval, '__version__') else '', 'torch': torch.__version__.split('+')[0], 'transformers': transformers.__version__},
        'cases': []}
    for name in ('gpt2', 'llama'):
        model = HFLM(pretrained=str(folder / name), device='cpu', dtype='float32', batch_size=4)
        for task, settings in TASKS.items():
            result = lm_eval.simple_evaluate(model=model, tasks=[configured(task, settings, folder / f'{task}.jsonl')],
                                             num_fewshot=0, log_samples=True, bootstrap_iters=100)
            document['cases'].append({
                'model': name, 'max_length': model.max_length, 'task': task,
                'metrics': metrics_of(result['results'][task]), 'answers': answers_of(result['samples'][task])})
    return document


def largest_difference(one, other, path=''):
    if isinstance(one, dict):
        assert one.keys() == other.keys(), path
        return max((largest_difference(one[k], other[k], f'{path}.{k}') for k in one if k != 'made_by'), default=0)
    if isinstance(one, list):
        assert len(one) == len(other), path
        return max((largest_difference(a, b, f'{path}[{i}]') for i, (a, b) in enumerate(zip(one, other))), default=0)
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other)
    return 0 if one == other else math.inf


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--directory', type=pathlib.Path, default=ROOT / 'tests' / 'golden' / 'evaluation',
                        help='where the files lie (default: %(default)s)')
    parser.add_argument('--check', action='store_true', help='write nothing, compare with the file')
    arguments = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    folder = arguments.directory
    if not arguments.check:
        folder.mkdir(parents=True, exist_ok=True)
        write_items(folder, *write_models(folder))
    made = golden(folder)
    if arguments.check:
        difference = largest_difference(made, json.loads((folder / 'harness.json').read_text()))
        print(f'differs by {difference:.1e}')
        sys.exit(0 if difference < 1e-4 else 1)
    text = json.dumps(made).replace('{"model"', '\n{"model"')
    (folder / 'harness.json').write_text(text + '\n')


if __name__ == '__main__':
    main()
