#!/usr/bin/env python3
"""Measures `plumb bench` and, turn by turn with it, the same work in eager PyTorch where that is installed; writes the
table of docs/performance.md and, with --json, all that was measured."""
import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = '<!-- bench.py: begin -->', '<!-- bench.py: end -->'

SMALL_MODEL = ['--d-model', '128', '--feed-forward', '256', '--layers', '4', '--sentences', '128']
TINY = {  # to try this script
    'train': ['--d-model', '32', '--feed-forward', '64', '--layers', '1', '--vocabulary', '100', '--sentences', '4',
              '--length', '8'],
    'decode': ['--d-model', '32', '--feed-forward', '64', '--layers', '1', '--vocabulary', '100', '--sentences', '4',
               '--length', '4'],
    'attention': ['--d-model', '32', '--length', '128'],
}
TINY['hvp'] = TINY['train']


class Work:
    """One command of ours, and the script that does the same in PyTorch."""

    def __init__(self, title, verb, sizes=(), torch=None, ours_only=()):
        self.title, self.verb, self.sizes, self.torch, self.ours_only = title, verb, list(sizes), torch, list(ours_only)
        self.ours, self.theirs = [], []

    def command(self):
        return ' '.join(['plumb bench', self.verb, *self.sizes, *self.ours_only])


def works(tiny, data):
    real = ['--data', data] if data else []
    real_lengths = [
        Work('128 × 32 tokens', 'train', ['--sentences', '128'], ours_only=['--runs', '3']),
        Work('batches of 4096 tokens of real lengths', 'train', real, ours_only=['--runs', '3']),
    ]
    translation = 'translation, 6+6, d 512, 1,000 sentences' + ('' if data else ' of 12 tokens')
    listed = [
        Work('training step, 6+6, d 512, FFN 1024, vocabulary 10,000, 64 × 32 tokens', 'train', torch='torch_train.py'),
        Work('the same in bfloat16', 'train', [], 'torch_train.py', ['--precision', 'bf16']),
        *(real_lengths if data else []),
        Work('training step, 4+4, d 128, FFN 256, 128 × 32 tokens', 'train', SMALL_MODEL, 'torch_train.py'),
        Work('6+6, d 256, 16 × 24 tokens', 'hvp', torch='torch_hvp.py'),
        Work(translation, 'decode', real),
        Work('the same in bfloat16', 'decode', real, ours_only=['--precision', 'bf16']),
        Work('the same in int8', 'decode', real, ours_only=['--precision', 'int8']),
        Work('causal self-attention, d 256, one sentence', 'attention'),
    ]
    for work in listed if tiny else []:
        work.sizes = TINY[work.verb] + (real if '--data' in work.sizes else [])
    return listed


def environment():
    """PyTorch at its best: OpenBLAS free to choose its kernels, waiting threads out of each other's way. Plumb settles
    such things by itself."""
    settings = dict(os.environ, OMP_WAIT_POLICY='PASSIVE', PYTHONDONTWRITEBYTECODE='1')
    for name in ('OPENBLAS_CORETYPE', 'OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS'):
        settings.pop(name, None)
    return settings


def run(arguments, settings=None):
    print('  ' + ' '.join(map(str, arguments)), file=sys.stderr, flush=True)
    done = subprocess.run(arguments, env=settings, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'bench.py: {arguments[0]} ended with status {done.returncode}\n{done.stderr}')
    return done.stdout


def run_plumb(plumb, work, threads):
    with tempfile.TemporaryDirectory() as directory:
        result = os.path.join(directory, 'result.json')
        run([plumb, 'bench', work.verb, *work.sizes, *work.ours_only, '--threads', str(threads), '--json', result])
        with open(result, encoding='utf-8') as file:
            return json.load(file)


def run_torch(python, work, threads):
    return json.loads(run([python, str(ROOT / 'bench' / work.torch), *work.sizes, '--threads', str(threads)],
                          environment()))


def find_torch(wanted):
    """A Python that has PyTorch, or None."""
    for python in [wanted] if wanted else [sys.executable, '/usr/bin/python3']:
        try:
            if subprocess.run([python, '-c', 'import torch'], capture_output=True).returncode == 0:
                return python
        except OSError:
            pass
    if wanted:
        sys.exit(f'bench.py: {wanted} has no PyTorch')
    return None


def middle(results, *path):
    """The median over the rounds of one figure, or None."""
    values = []
    for result in results:
        for key in path:
            result = result.get(key) if isinstance(result, dict) else result[key]
            if result is None:
                return None
        values.append(result)
    return statistics.median(values) if values else None


def seconds(value):
    if value is None:
        return ''
    if value < 1e-3:
        return f'{value * 1e6:.3g} µs'
    return f'{value * 1e3:.3g} ms' if value < 0.1 else f'{value:.3g} s'


def gigabytes(value):
    return '' if value is None else f', {value / 1e9:.2f} GB'


def percent(value):
    return '' if value is None else f'{100 * value:.0f} %'


def row(title, command, ours, of_ceiling='', theirs='', factor=None):
    return f'| {title} | `{command}` | {ours} | {of_ceiling} | {theirs} | {"" if factor is None else f"{factor:.2f}"} |'


def count(number, noun):
    return f'{number} {noun}{"" if number == 1 else "s"}'


def quotient(theirs, ours):
    return None if theirs is None or ours is None else theirs / ours


def rows(work):
    ours, theirs, command = work.ours, work.theirs, work.command()
    if work.verb == 'train':
        mine, other = middle(ours, 'seconds_per_step'), middle(theirs, 'seconds_per_step')
        yield row(work.title, command,
                  f'{seconds(mine)}, {middle(ours, "target_tokens_per_second"):,.0f} tokens/s'
                  + gigabytes(middle(ours, 'peak_memory_bytes')),
                  percent(middle(ours, 'ceiling_fraction')),
                  seconds(other) + gigabytes(middle(theirs, 'peak_memory_bytes')), quotient(other, mine))
    elif work.verb == 'hvp':
        mine, other = middle(ours, 'gradient_seconds'), middle(theirs, 'gradient_seconds')
        yield row('gradient, ' + work.title, command, seconds(mine), '', seconds(other), quotient(other, mine))
        mine, other = middle(ours, 'hvp_seconds'), middle(theirs, 'hvp_seconds')
        ratio = middle(theirs, 'ratio')
        yield row('Hessian-vector product of it, graph kept', command,
                  f'{seconds(mine)} = {middle(ours, "ratio"):.2f} gradients'
                  + gigabytes(middle(ours, 'peak_memory_bytes')),
                  percent(middle(ours, 'ceiling_fraction')),
                  seconds(other) + ('' if ratio is None else f' = {ratio:.2f} gradients'), quotient(other, mine))
        yield row(f'the diagonal blocks of its {ours[0]["layers"]} layers, each with a vector, together', command,
                  f'{seconds(middle(ours, "layers_seconds"))} = {middle(ours, "layers_ratio"):.2f} products')
        yield row('Lanczos step of it: product, and orthogonalization against 50 vectors', command,
                  f'{seconds(middle(ours, "lanczos_step_seconds"))}, of which '
                  f'{seconds(middle(ours, "orthogonalize_seconds"))} at '
                  f'{middle(ours, "orthogonalize_gigabytes_per_second"):.0f} GB/s '
                  f'(sums alone read {middle(ours, "reading_gigabytes_per_second"):.0f} GB/s)')
        yield row('Hessian-vector product, graph not kept; four at once, each', command,
                  f'{seconds(middle(ours, "hvp_seconds_graph_not_kept"))}; '
                  f'{seconds(middle(ours, "hvp_seconds_four_at_once"))}, '
                  f'a factor of {middle(ours, "block_factor"):.2f}')
    elif work.verb == 'decode':
        for i, beam in enumerate(ours[0]['beams']):
            yield row(f'{work.title}, beam {beam["beam"]}', command,
                      f'{middle(ours, "beams", i, "decode_tokens_per_second"):,.0f} tokens/s',
                      percent(middle(ours, 'beams', i, 'ceiling_fraction')))
    elif work.verb == 'attention':
        for i, entry in list(enumerate(ours[0]['lengths']))[::3]:
            yield row(f'{work.title} of {entry["length"]:,}: forward, with gradient', command,
                      f'{seconds(middle(ours, "lengths", i, "forward_seconds"))}, '
                      f'{seconds(middle(ours, "lengths", i, "gradient_seconds"))}')


def start_seconds(plumb):
    """From the call to the end of a verb that loads all there is and computes nothing."""
    begin = time.perf_counter()
    run([plumb, 'list'])
    return time.perf_counter() - begin


def processor():
    try:
        found = re.search(r'model name\s*:\s*(.*)', pathlib.Path('/proc/cpuinfo').read_text(encoding='utf-8'))
        return found.group(1) if found else platform.machine()
    except OSError:
        return platform.machine()


def page_text(measured, starts, threads, rounds):
    ceilings = [result['ceiling_gflops'] for work in measured for result in work.ours if 'ceiling_gflops' in result]
    versions = {result['torch'] for work in measured for result in work.theirs}
    beside = f', PyTorch {", ".join(sorted(versions))} turn by turn with it' if versions else '; PyTorch was not installed'
    head = (f'{processor()}, {count(threads, "thread")}, medians of {count(rounds, "round")}{beside}. Ceiling (float32 matrix products as a model has them, in '
            f'the same process): {min(ceilings):,.0f} to {max(ceilings):,.0f} GFLOP/s.')
    lines = [head, '', '| work | command | Plumb | of the ceiling | PyTorch | factor |', '| --- | --- | --- | --- | --- | --- |']
    for work in measured:
        lines.extend(rows(work))
    lines.append(row('start of the program', 'plumb list', seconds(statistics.median(starts))))
    return '\n'.join(lines)


def write_page(path, text):
    page = path.read_text(encoding='utf-8')
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        sys.exit(f'bench.py: {path} has no place for the table: {BEGIN} and {END}')
    before, rest = page.split(BEGIN)
    path.write_text(f'{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}', encoding='utf-8')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--plumb', default=str(ROOT / 'build' / 'plumb'), help='the program (default: %(default)s)')
    parser.add_argument('--python', help='a Python that has PyTorch (default: this one, or /usr/bin/python3)')
    parser.add_argument('--no-torch', action='store_true', help='measure Plumb alone')
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)), help='default: all processors')
    parser.add_argument('--rounds', type=int, default=3, help='how often everything is measured (default: 3)')
    parser.add_argument('--json', type=pathlib.Path, help='write all that was measured')
    parser.add_argument('--page', type=pathlib.Path, help='write the table into this page, between the marks')
    parser.add_argument('--data', help='a data directory: measure batches of its lengths too')
    parser.add_argument('--tiny', action='store_true', help='tiny sizes, to try this script')
    options = parser.parse_args()
    python = None if options.no_torch else find_torch(options.python)
    measured = works(options.tiny, options.data)
    starts = []
    for turn in range(options.rounds):
        print(f'round {turn + 1} of {options.rounds}', file=sys.stderr)
        starts.append(start_seconds(options.plumb))
        for work in measured:
            work.ours.append(run_plumb(options.plumb, work, options.threads))
            if work.torch and python:
                work.theirs.append(run_torch(python, work, options.threads))
    text = page_text(measured, starts, options.threads, options.rounds)
    print(text)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        document = {'schema': 'plumb.bench-table/1', 'processor': processor(), 'threads': options.threads,
                    'start_seconds': starts,
                    'works': [{'title': work.title, 'command': work.command(), 'plumb': work.ours, 'torch': work.theirs}
                              for work in measured]}
        options.json.write_text(json.dumps(document, indent=1) + '\n', encoding='utf-8')
    if options.page:
        write_page(options.page, text)


if __name__ == '__main__':
    main()
