#!/usr/bin/env python3
"""Times commands of Plumb beside the tools that people use for the same: preparing text beside tokenizers, batches
beside PyTorch's loaders, scores beside sacreBLEU, evaluation beside lm-evaluation-harness, AWD-LSTM beside PyTorch,
adapters beside transformers and peft. In every round, each takes its turn, as a process of its own, from its start to
its result, which is compared with Plumb's. Writes a table into docs/performance.md.

    build-peers/bin/pip install tokenizers sacrebleu transformers peft lm_eval
    scripts/bench_tools.py --text wikitext-2/train.txt --benchmarks benchmarks --page docs/performance.md

`--benchmarks` is a folder with the files of piqa and arc_easy, as `plumb evaluate --data` reads them.
"""
import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'bench' / 'race'))
sys.dont_write_bytecode = True

import environment  # noqa: E402
import machine  # noqa: E402

BEGIN, END = '<!-- bench_tools.py: begin -->', '<!-- bench_tools.py: end -->'
PACKAGES = ['tokenizers', 'sacrebleu', 'transformers', 'peft', 'lm_eval']
STEPS, RECURRENT_STEPS, ITEMS = 60, 10, 200
KINDS = {'bpe': 'byte-level BPE', 'wordpiece': 'WordPiece', 'unigram': 'Unigram'}


@dataclasses.dataclass
class Work:
    title: str
    peer_name: str
    plumb: list[str]  # arguments of the program
    peer: list[str]
    agree: Callable[[str], str | None]  # the peer's output → what differs from Plumb's
    clear: list[str] = dataclasses.field(default_factory=list)  # what Plumb makes anew
    in_kernels: bool = False  # Plumb's part is a benchmark of build/bench/kernels
    cold: list[str] = dataclasses.field(default_factory=list)  # files that are dropped from memory before each turn
    seconds: dict[str, list[float]] = dataclasses.field(default_factory=dict)


def run(command: list[str], variables: dict[str, str]) -> tuple[float, str]:
    begin = time.perf_counter()
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f'bench_tools.py: {" ".join(command)} failed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}')
    return seconds, done.stdout


def read(path: pathlib.Path) -> dict:
    return json.loads(path.read_text(encoding='utf-8'))


def drop_from_memory(path: pathlib.Path) -> None:
    with open(path, 'rb') as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def same(name: str, own: float, other: float, tolerance: float) -> str | None:
    return None if math.isclose(own, other, rel_tol=tolerance) else f'{name} is {own} here and {other} there'


def works(folder: pathlib.Path, text: pathlib.Path, benchmarks: pathlib.Path | None, threads: int) -> list[Work]:
    peers = ROOT / 'bench' / 'peers'
    tools = [str(peers / 'tools.py')]

    def tokens(output: str) -> str | None:
        # Plumb counts the end of each of the lines, too, and leaves out those that it holds out.
        splits = read(folder / 'data' / 'data.json')['splits']
        own = sum(split['target']['tokens'] for split in splits.values())
        return same('the number of tokens', own, json.loads(output)['tokens'], 0.03)

    def scores(output: str) -> str | None:
        own = read(folder / 'score.json')
        different = (same(name, own[name], value, 1e-9) for name, value in json.loads(output).items())
        return next(filter(None, different), None)

    def batches(output: str) -> str | None:
        own = read(folder / 'loaded.json')['benchmarks'][0]['tokens']
        return same('the number of tokens', own, json.loads(output)['tokens'], 0.03)

    def validation(output: str) -> str | None:
        points = [json.loads(line) for line in (folder / 'run' / 'metrics.jsonl').read_text().splitlines()]
        last = [point['metrics']['valid_nll'] for point in points if 'valid_nll' in point.get('metrics', {})][-1]
        return same('the validation loss', last, float(re.search(r'validation ([0-9.]+)', output)[1]), 0.1)

    def first_loss(output: str) -> str | None:
        points = [json.loads(line) for line in (folder / 'run' / 'metrics.jsonl').read_text().splitlines()]
        first = next(point['loss'] for point in points if 'loss' in point)
        return same('the loss of the first step', first, json.loads(output)['loss'], 0.05)

    size = round((folder / 'large.txt').stat().st_size / 1e6)
    found = [Work(f'{size} MB of text to {title} tokens', 'tokenizers',
                  ['data', 'text', '--train', f'{folder}/large.txt', '--tokenizer-from', f'{folder}/{kind}',
                   '--out', f'{folder}/data'],
                  [*tools, 'tokenize', str(folder), '--kind', kind, '--text', f'{folder}/large.txt'], tokens, ['data'])
             for kind, title in KINDS.items()]
    found.append(Work('An epoch of batches of 4,096 tokens from it, in blocks, read from a cold file',
                      'torch.utils.data', ['--benchmark_filter=epoch_of_batches', '--benchmark_out_format=json',
                                           f'--benchmark_out={folder}/loaded.json'],
                      [*tools, 'load', str(folder), '--batch-tokens', '4096'], batches, in_kernels=True,
                      cold=['ids.bin', 'data/splits/train.tokens']))
    for title, metrics, more in (('BLEU and chrF', 'bleu,chrf', []),
                                 ('BLEU and chrF with intervals of 1,000 samples', 'bleu,chrf', ['--confidence'])):
        found.append(Work(f'{title} of 4,000 sentences', 'sacreBLEU',
                          ['score', f'{folder}/reference.txt', '--hypothesis', f'{folder}/hypothesis.txt',
                           '--metrics', metrics, '--json', f'{folder}/score.json', *more],
                          [*tools, 'score', str(folder), *more], scores))
    if benchmarks:
        found.append(Work(f'{ITEMS} items each of piqa and arc_easy, GPT-2 with 34 million parameters',
                          'lm-evaluation-harness',
                          ['evaluate', f'{folder}/gpt2', '--data', str(benchmarks), '--tasks', 'piqa,arc_easy',
                           '--limit', str(ITEMS), '--samples', '--out', f'{folder}/evaluation'],
                          [str(ROOT / 'scripts' / 'golden' / 'evaluation.py'), '--model', f'{folder}/gpt2',
                           '--data', str(benchmarks), '--tasks', 'piqa,arc_easy', '--limit', str(ITEMS),
                           '--batch-size', '16', '--compare', f'{folder}/evaluation'],
                          lambda _: None, ['evaluation']))  # which fails if a metric differs
    found.append(Work(f'AWD-LSTM with 33 million parameters, {RECURRENT_STEPS} steps and validation', 'PyTorch',
                      ['train', '--config', str(ROOT / 'recipes' / 'wikitext-2-awd-lstm.toml'),
                       '--data', f'{folder}/words', '--out', f'{folder}/run',
                       '--set', f'train.steps={RECURRENT_STEPS}'],
                      [str(peers / 'torch_awd_lstm.py'), '--train', str(text), '--valid', f'{folder}/held-out.txt',
                       '--steps', str(RECURRENT_STEPS), '--threads', str(threads)], validation, ['run']))
    # A classifier's readout begins with random numbers, so its first loss is anyone's.
    for name, title, data, batch, agree in (
            ('llama', 'Llama with 33 million parameters, 2,048 tokens per step', 'blocks', 2048, first_loss),
            ('minilm', 'MiniLM with 17 million parameters, 32 sentences per step', 'labels', 1216, lambda _: None)):
        settings = ['finetune.lora.rank=8', 'train.optimizer=adamw', 'train.learning_rate=1e-4',
                    f'train.batch_tokens={batch}', f'train.steps={STEPS}', 'train.validate_every=1000',
                    'train.log_every=1', 'train.score_every=-1', 'model.dropout=0']
        found.append(Work(f'LoRA of rank 8, {STEPS} steps: {title}', 'transformers and peft',
                          ['finetune', '--from', f'{folder}/{name}', '--data', f'{folder}/{data}',
                           '--out', f'{folder}/run', *(word for each in settings for word in ('--set', each))],
                          [*tools, name, str(folder), '--steps', str(STEPS), '--text', f'{folder}/few.txt'],
                          agree, ['run']))
    return found


def prepare(folder: pathlib.Path, text: pathlib.Path, plumb: list[str], python: str, variables: dict[str, str]) -> None:
    run([python, str(ROOT / 'bench' / 'peers' / 'tools.py'), 'prepare', str(folder), '--text', str(text)], variables)
    lines = text.read_text(encoding='utf-8').splitlines(keepends=True)
    (folder / 'few.txt').write_text(''.join(lines[:len(lines) // 10]), encoding='utf-8')
    (folder / 'held-out.txt').write_text(''.join(lines[-50:]), encoding='utf-8')
    run([*plumb, 'data', 'text', '--train', f'{folder}/few.txt', '--valid', f'{folder}/held-out.txt',
         '--tokenizer-from', f'{folder}/llama', '--out', f'{folder}/blocks'], variables)
    run([*plumb, 'data', 'text', '--train', str(text), '--valid', f'{folder}/held-out.txt', '--tokenizer', 'word',
         '--vocabulary', '33280', '--out', f'{folder}/words'], variables)
    run([*plumb, 'data', 'labels', '--train', f'{folder}/labels.tsv', '--tokenizer-from', f'{folder}/minilm',
         '--out', f'{folder}/labels'], variables)


def table(measured: list[Work], python: str, threads: int, rounds: int) -> str:
    asked = 'from importlib.metadata import version; import sys; print(*map(version, sys.argv[1:]))'
    packages = [*PACKAGES, 'torch']
    found = subprocess.run([python, '-c', asked, *packages], check=True, stdout=subprocess.PIPE, text=True).stdout
    versions = ', '.join(' '.join(pair) for pair in zip(packages, found.split()))
    conditions = (f'Machine: {machine.sentence(machine.describe())}; {threads} threads, medians of {rounds} '
                  f'round{"" if rounds == 1 else "s"}. Peers: {versions}.')
    rows = [textwrap.fill(conditions, 126), '',
            '| work | Plumb | peer | times as fast |', '| --- | --- | --- | --- |']
    for work in measured:
        own, other = statistics.median(work.seconds['plumb']), statistics.median(work.seconds['peer'])
        rows.append(f'| {work.title} | {own:.3g} s | {work.peer_name} {other:.3g} s | {other / own:.2f} |')
    return '\n'.join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default=str(ROOT / 'build' / 'plumb'), help='the program (default: %(default)s)')
    parser.add_argument('--kernels', type=pathlib.Path, default=ROOT / 'build' / 'bench' / 'kernels', metavar='FILE',
                        help='the benchmarks of kernels (default: %(default)s)')
    parser.add_argument('--peers', type=pathlib.Path, default=ROOT / 'build-peers', metavar='DIR',
                        help='virtual environment of the peers (default: %(default)s)')
    parser.add_argument('--text', type=pathlib.Path, required=True, help="English text of about 10 MB, of at most 33,280 words: WikiText-2's")
    parser.add_argument('--benchmarks', type=pathlib.Path, metavar='DIR', help='also evaluate, on the files here')
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)), help='default: all processors')
    parser.add_argument('--rounds', type=int, default=3, help='how often everything is measured (default: 3)')
    parser.add_argument('--page', type=pathlib.Path, help='write the table into this page, between the marks')
    given = parser.parse_args()
    python = str(given.peers.resolve() / 'bin' / 'python')
    if not environment.has(pathlib.Path(python), PACKAGES):
        sys.exit(f'bench_tools.py: needs {", ".join(PACKAGES)} in {given.peers}')
    if given.page and not all(mark in given.page.read_text(encoding='utf-8') for mark in (BEGIN, END)):
        sys.exit(f'bench_tools.py: {given.page} has no place for the table: {BEGIN} and {END}')
    plumb = [str(pathlib.Path(given.plumb).resolve())]
    common = ['--threads', str(given.threads), '--quiet']
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        variables = environment.settings(folder, given.threads) | {
            'RAYON_NUM_THREADS': str(given.threads), 'TOKENIZERS_PARALLELISM': 'true', 'HF_HUB_OFFLINE': '1',
            'PLUMB_THREADS': str(given.threads), 'PLUMB_DATA': str(folder / 'data')}
        prepare(folder, given.text.resolve(), plumb, python, variables)
        measured = works(folder, given.text.resolve(), given.benchmarks and given.benchmarks.resolve(),
                         given.threads)
        for turn in range(given.rounds):
            for work in measured:
                print(work.title, file=sys.stderr)
                for made in work.clear:
                    shutil.rmtree(folder / made, ignore_errors=True)
                for name in work.cold:
                    drop_from_memory(folder / name)
                own = [str(given.kernels), *work.plumb] if work.in_kernels else [*plumb, *work.plumb, *common]
                work.seconds.setdefault('plumb', []).append(run(own, variables)[0])
                seconds, output = run([python, *work.peer], variables)
                work.seconds.setdefault('peer', []).append(seconds)
                if difference := work.agree(output):
                    sys.exit(f'bench_tools.py: {work.title}: {difference}')
        text = table(measured, python, given.threads, given.rounds)
    print(text)
    if given.page:
        page = given.page.read_text(encoding='utf-8')
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        given.page.write_text(f'{before}{BEGIN}\n{text}\n{END}{after}', encoding='utf-8')


if __name__ == '__main__':
    main()
