#!/usr/bin/env python3
"""Reference values of lm-evaluation-harness for tests/evaluate/harness_test.cpp.

Writes tests/golden/evaluation: made-up items in four files of JSON Lines, folders of tiny models with random weights and
tokenizers as `transformers` saves them, and harness.json, which has for each model, task and number of examples the
log-likelihood of every request, whether greedy decoding gives it, or the text that the model generates, and the
metrics. Also prompts of the harness's own tasks on made-up files, and what its filters find in made-up answers.

    pip install lm_eval torch transformers tokenizers
    scripts/golden/evaluation.py            # writes tests/golden/evaluation
    scripts/golden/evaluation.py --check    # computes anew and compares with harness.json

With --model it evaluates a model's folder on the files that `plumb evaluate` reads, and compares with what
`plumb evaluate --out DIR --samples` wrote; the prompts are made here, in Python:

    scripts/golden/evaluation.py --model gpt2 --data benchmarks --tasks piqa,hellaswag --limit 100 --compare DIR
"""
import argparse
import csv
import json
import math
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('HF_DATASETS_OFFLINE', '1')
os.environ.setdefault('TOKENIZERS_PARALLELISM', 'false')

import lm_eval
import torch
import transformers
from lm_eval.api.metrics import aggregate_subtask_metrics, pooled_sample_stderr
from lm_eval.api.task import ConfigurableTask
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks.wikitext import preprocess_wikitext
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from evaluation_tasks import golden_filters, golden_tasks, settings_of, write_authors_files, write_lines

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOOTSTRAP = 2000
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
SHOTS = {'choices': (0, 1, 3), 'continuations': (0, 2), 'texts': (0,), 'answers': (0, 1)}

def write_items(folder, greedy, written):
    write_lines(folder / 'choices.jsonl', [dict(zip(('context', 'choices', 'gold'), item)) for item in CHOICES])
    items = CONTINUATIONS + greedy
    write_lines(folder / 'continuations.jsonl', [dict(zip(('context', 'continuation'), item)) for item in items])
    write_lines(folder / 'answers.jsonl', [dict(zip(('context', 'answer'), item)) for item in written])
    write_authors_files(folder)
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


def configured(name, settings, file, examples=None):
    """A task of the harness. `file` has its items; `examples` those for its prompts (default: the items themselves)."""
    files = {'test': str(file)} | ({'dev': str(examples)} if examples else {})
    settings = dict(settings, metric_list=[metric if isinstance(metric, dict) else dict(metric=metric)
                                           for metric in settings['metric_list']])
    return ConfigurableTask(config=dict(
        task=name, dataset_path='json', dataset_kwargs={'data_files': files}, test_split='test',
        fewshot_split='dev' if examples else 'test', **settings))


def evaluate(model, tasks, shots, limit=None):
    results = lm_eval.simple_evaluate(model=model, tasks=tasks, num_fewshot=shots, limit=limit, log_samples=True,
                                      bootstrap_iters=BOOTSTRAP if limit is None or limit < 1000 else 100000)
    return results


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
    return {key.removesuffix(',none'): value for key, value in result.items() if key.endswith(',none')}


def prompts(task, shots):
    """The prompt of each item, with `shots` examples."""
    task.set_fewshot_seed(1234)
    return [task.fewshot_context(document, shots) for document in task.eval_docs]


def golden_prompts(folder):
    """Prompts with examples: drawn from the items themselves, drawn from others, and the first ones of others."""
    plain, apart = folder / 'choices.jsonl', folder / 'continuations.jsonl'
    first = dict(TASKS['choices'], description='A description.\n\n', fewshot_config={'sampler': 'first_n', 'split': 'test'})
    cases = [('choices', TASKS['choices'], plain, shots) for shots in (0, 1, 3, 7)]
    cases += [('continuations', TASKS['continuations'], apart, shots) for shots in (2, 7)]
    cases += [('first', first, plain, shots) for shots in (0, 2)]
    return [{'case': name, 'few_shot': shots, 'prompts': prompts(configured(name, settings, file), shots)}
            for name, settings, file, shots in cases]


def golden(folder):
    document = {'made_by': {'script': 'scripts/golden/evaluation.py', 'lm_eval': lm_eval.__version__ if hasattr(
        lm_eval, '__version__') else '', 'torch': torch.__version__.split('+')[0], 'transformers': transformers.__version__},
        'bootstrap': BOOTSTRAP, 'cases': []}
    for name in ('gpt2', 'llama'):
        model = HFLM(pretrained=str(folder / name), device='cpu', dtype='float32', batch_size=4)
        for task, settings in TASKS.items():
            for shots in SHOTS[task]:
                result = evaluate(model, [configured(task, settings, folder / f'{task}.jsonl')], shots)
                document['cases'].append({
                    'model': name, 'max_length': model.max_length, 'task': task, 'few_shot': shots,
                    'metrics': metrics_of(result['results'][task]), 'answers': answers_of(result['samples'][task])})
    document['prompts'] = golden_prompts(folder)
    document['tasks'] = golden_tasks()
    document['filters'] = golden_filters()
    errors, sizes = [0.03, 0.011, 0.2], [100, 1500, 7]
    document['group'] = {'errors': errors, 'items': sizes, 'stderr': float(pooled_sample_stderr(errors, sizes)),
                         'scores': [0.25, 0.5, 0.75], 'score': aggregate_subtask_metrics([0.25, 0.5, 0.75], sizes)}
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


# ---- The data sets: items as documents with a context, choices and the correct one, as in the harness's tasks.

def read_lines(file):
    return [json.loads(line) for line in file.read_text().splitlines() if line.strip()]


def lambada(data):
    return [{'context': d['context'], 'continuation': ' ' + d['continuation']}
            for d in read_lines(data / 'lambada_openai.jsonl')]


def gauntlet(file, prompt, choice=lambda text: text):
    return [{'context': prompt(d['query']), 'choices': [choice(c) for c in d['choices']], 'gold': d['gold']}
            for d in read_lines(file)]


def hellaswag(data):
    lines = sorted(data.glob('hellaswag*.txt'))[0].read_text().splitlines()
    return [{'context': lines[i], 'choices': lines[i + 2:i + 6], 'gold': int(lines[i + 1])}
            for i in range(0, len(lines), 6)]


def mmlu(file):
    documents = []
    with open(file, newline='') as stream:
        for question, *answers, letter in csv.reader(stream):
            listed = ''.join(f'\n{name}. {answer}' for name, answer in zip('ABCD', answers))
            documents.append({'context': f'{question.strip()}{listed}\nAnswer:', 'choices': list('ABCD'),
                              'gold': 'ABCD'.index(letter)})
    return documents


HARD = {'boolean_expressions': ('Evaluate the result of a random Boolean expression.', ['False', 'True']),
        'date_understanding': ('Infer the date from context.', [f'({c})' for c in 'ABCDEF']),
        'logical_deduction_three_objects': (
            'A logical deduction task which requires deducing the order of a sequence of objects.',
            [f'({c})' for c in 'ABC'])}


def hard(file, choices):
    return [{'context': f'Q: {d["input"]}\nA:', 'choices': choices, 'gold': choices.index(d['target'])}
            for d in json.loads(file.read_text())['examples']]


def pages(data):
    found, lines = [], []
    for line in next(data.glob('*raw*')).read_text().split('\n'):
        marks = line.replace('= = =', '===').replace('= =', '==').strip()
        if marks.startswith('= ') and marks.endswith(' ='):
            found.append('\n'.join(lines))
            lines = []
        lines.append(line)
    return [{'page': page} for page in found + ['\n'.join(lines)] if page.strip()]


def data_set(name, data):
    """For a task of `plumb evaluate`: settings, documents, and documents for the examples."""
    choices = dict(TASKS['choices'], metric_list=['acc', 'acc_norm'])
    accuracy = dict(choices, metric_list=['acc'])
    if name == 'lambada_openai':
        return TASKS['continuations'], lambada(data), None
    if name == 'piqa':
        return choices, gauntlet(data / 'piqa.jsonl', lambda q: q.removesuffix('\n') + '\nAnswer:'), None
    if name == 'arc_easy':
        return choices, gauntlet(data / 'arc_easy.jsonl', lambda q: q + '\nAnswer:'), None
    if name == 'copa':
        prompt = lambda q: ' '.join(q.rsplit(', ', 1)) if ' ' not in q.rsplit(', ', 1)[-1] else q
        return accuracy, gauntlet(data / 'copa.jsonl', prompt, lambda c: ' ' + c), None
    if name == 'hellaswag':
        return choices, hellaswag(data), None
    if name.startswith('mmlu_'):
        subject = name.removeprefix('mmlu_')
        words = subject.replace('_', ' ')
        settings = dict(accuracy, fewshot_config={'sampler': 'first_n', 'split': 'dev'}, description=(
            f'The following are multiple choice questions (with answers) about {words}.\n\n'))
        return settings, mmlu(data / f'mmlu/test/{subject}_test.csv'), mmlu(data / f'mmlu/dev/{subject}_dev.csv')
    if name.startswith('leaderboard_bbh_'):
        part = name.removeprefix('leaderboard_bbh_')
        description, answers = HARD[part]
        return dict(choices, description=description), hard(data / f'bbh/{part}.json', answers), None
    if name.startswith('bbh_zeroshot_'):
        part = name.removeprefix('bbh_zeroshot_')
        settings = settings_of(f'bbh/zeroshot/{part}.yaml')
        documents = json.loads((data / f'bbh/{part}.json').read_text())['examples']
        return settings, documents, None
    if name == 'wikitext':
        return dict(TASKS['texts'], doc_to_target=preprocess_wikitext.wikitext_detokenizer,
                    process_results=preprocess_wikitext.process_results), pages(data), None
    sys.exit(f'unknown task {name}')


def compare(arguments):
    """Evaluates with the harness and prints how much Plumb's results differ."""
    model = HFLM(pretrained=arguments.model, device='cpu', dtype='float32', batch_size=arguments.batch_size)
    plumb = json.loads((arguments.compare / 'results.json').read_text())
    good = True
    for name in arguments.tasks.split(','):
        settings, documents, examples = data_set(name, arguments.data)
        if arguments.max_tokens and 'generation_kwargs' in settings:
            settings['generation_kwargs']['max_gen_toks'] = arguments.max_tokens
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            write_lines(scratch / 'items.jsonl', documents)
            write_lines(scratch / 'examples.jsonl', examples or [])
            task = configured(name, settings, scratch / 'items.jsonl', scratch / 'examples.jsonl' if examples else None)
            begin = time.time()
            result = lm_eval.simple_evaluate(model=model, tasks=[task], num_fewshot=arguments.few_shot,
                                             limit=arguments.limit, log_samples=True,
                                             bootstrap_iters=arguments.bootstrap)
            seconds = time.time() - begin
        samples = result['samples'][name]
        theirs = answers_of([sample for sample in samples if sample['filter'] == samples[0]['filter']])
        ours = [[response[0] if isinstance(response[0], list) else response for response in line['resps']]
                for line in read_lines(arguments.compare / f'samples_{name}.jsonl')]
        metrics = {key: value for key, value in result['results'][name].items() if ',' in key}
        flat = [(a, b) for one, other in zip(theirs, ours, strict=True) for a, b in zip(one, other, strict=True)]
        # Sums in float32, which have seven digits: of more than 100 nats, relative to these.
        size = [max(1, abs(a[0]) / 100) if isinstance(a[0], float) else 1 for a, _ in flat]
        furthest = max(largest_difference(a[0], b[0]) / unit for (a, b), unit in zip(flat, size))
        greedy = sum(a[1:] != b[1:] for a, b in flat)
        print(f'{name}: {len(flat)} requests, log-likelihoods differ by at most {furthest:.1e} (per 100 nats of larger '
              f'ones), {greedy} in greediness; {seconds:.1f} s')
        for key, value in metrics.items():
            own = plumb['results'][name][key]
            equal = own == value or (isinstance(value, float) and math.isclose(own, value, rel_tol=1e-5))
            print(f'  {key}: {value} {own} {"" if equal else "DIFFERENT"}')
            good = good and equal
        good = good and furthest < 1e-4 and greedy == 0
    sys.exit(0 if good else 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--directory', type=pathlib.Path, default=ROOT / 'tests' / 'golden' / 'evaluation',
                        help='where the files lie (default: %(default)s)')
    parser.add_argument('--check', action='store_true', help='write nothing, compare with the file')
    parser.add_argument('--model', help='folder of a model to evaluate')
    parser.add_argument('--data', type=pathlib.Path, help='folder of the data sets')
    parser.add_argument('--tasks', help='with --model: names, separated by commas')
    parser.add_argument('--few-shot', type=int, default=0)
    parser.add_argument('--limit', type=int)
    parser.add_argument('--max-tokens', type=int, help='of answers that the model writes')
    parser.add_argument('--batch-size', type=int, default=16)
    parser.add_argument('--bootstrap', type=int, default=100000, help='samples, as many as plumb evaluate draws')
    parser.add_argument('--compare', type=pathlib.Path, help='what plumb evaluate wrote')
    arguments = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    if arguments.model:
        compare(arguments)
    folder = arguments.directory
    if not arguments.check:
        folder.mkdir(parents=True, exist_ok=True)
        write_items(folder, *write_models(folder))
    made = golden(folder)
    if arguments.check:
        difference = largest_difference(made, json.loads((folder / 'harness.json').read_text()))
        print(f'differs by {difference:.1e}')
        sys.exit(0 if difference < 1e-4 else 1)
    text = json.dumps(made).replace('{"model"', '\n{"model"').replace('{"case"', '\n{"case"')
    (folder / 'harness.json').write_text(text + '\n')


if __name__ == '__main__':
    main()
