#!/usr/bin/env python3
"""How accurate `plumb check` is: predictions for planned runs, and what those runs then do.

    validate.py --plumb build/plumb --data DIR prepare    tokenize DIR's Multi30k and WikiText-2 (once)
    validate.py --plumb build/plumb predict               `plumb check` on every cell, at 250 gradients
    validate.py seal                                      write ledger.json: hashes of predictions and of this script
    validate.py --plumb build/plumb truth                 train the cells; hours, goes on where it stopped
    validate.py table                                     accuracy, and that of the baselines

A cell is a planned run of 5,000 steps: residual scheme x depth x optimizer x warm-up x corpus. Its truth are its first
500 steps: runs at rates a factor of 2 apart, and around the edge sqrt(2) apart with three seeds. A run is usable if it
gains, below the entropy of the labels' frequencies, at least half of what the cell's best rate gains; the largest stable
rate is where half of the runs are usable, by a logistic fit in log2 of the rate. `truth` refuses cells whose
predictions are not sealed. Results: studies/check/.
"""
import argparse
import concurrent.futures
import hashlib
import itertools
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / 'studies' / 'check'
SCHEMES = ['post-ln', 'pre-ln', 'sandwich', 'deepnorm', 'rezero', 'pre-ln+qk-norm']  # sandwich: Peri-LN
DEPTHS = [2, 6, 12, 24]
OPTIMIZERS = ['sgd', 'adamw']
CORPORA = ['multi30k', 'wikitext-2']
WARM_UPS = [0, 200]
PLANNED, HORIZON, SEEDS = 5000, 500, (1, 2, 3)
FIRST_RATE = {'sgd': 2.0**-4, 'adamw': 2.0**-9}
COMMON = {'model.d_model': 64, 'model.feed_forward': 256, 'model.heads': 4, 'train.batch_tokens': 1024,
          'train.decay_start': 1000, 'train.log_every': 1, 'task.translation.beam': 0}


def cells():
    """Warm-ups in pairs; a third of the other combinations, in which every two factors are balanced."""
    chosen = []
    for numbers in itertools.product(*(range(len(f)) for f in (SCHEMES, DEPTHS, OPTIMIZERS, CORPORA))):
        if (numbers[0] + numbers[1] + numbers[2] + 2 * numbers[3]) % 3:
            continue
        scheme, depth, optimizer, corpus = (f[i] for f, i in zip((SCHEMES, DEPTHS, OPTIMIZERS, CORPORA), numbers))
        chosen += [{'scheme': scheme, 'depth': depth, 'optimizer': optimizer, 'corpus': corpus, 'warm_up': warm_up}
                   for warm_up in WARM_UPS]
    return sorted(chosen, key=lambda cell: cell['depth'])  # the cheap ones first


def name_of(cell):
    return '{scheme}-{depth}-{optimizer}-{corpus}-{warm_up}'.format(**cell)


def settings(cell, rate):
    scheme, _, norm = cell['scheme'].partition('+')
    keys = dict(COMMON)
    keys.update({'model.residual': scheme, 'train.optimizer': cell['optimizer'], 'train.warm_up': cell['warm_up'],
                 'train.learning_rate': repr(rate)})
    if norm:
        keys['model.qk_norm'] = 'layernorm'
    if cell['optimizer'] == 'sgd':
        keys['train.sgd.momentum'] = 0.9
    if cell['corpus'] == 'multi30k':
        keys.update({'model.encoder_layers': cell['depth'], 'model.decoder_layers': cell['depth']})
    else:
        keys.update({'model.kind': 'decoder', 'model.decoder_layers': cell['depth']})
    return [word for key, value in keys.items() for word in ('--set', f'{key}={value}')]


def run(arguments, plumb, *words):
    environment = dict(os.environ, OMP_WAIT_POLICY='passive')
    command = [plumb, *map(str, words), '--threads', '1', '--quiet']
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def data_of(arguments, cell):
    return arguments.work / cell['corpus']


def prepare(arguments):
    multi30k, wikitext = arguments.data / 'multi30k', arguments.data / 'wikitext-2'
    for words in ((['data', 'prepare', '--train', multi30k / 'train.de', multi30k / 'train.en', '--valid',
                    multi30k / 'val.de', multi30k / 'val.en', '--vocabulary', 2000, '--out', arguments.work / 'multi30k']),
                  (['data', 'text', '--train', wikitext / 'train.txt', '--valid', wikitext / 'valid.txt', '--block', 64,
                    '--vocabulary', 2000, '--out', arguments.work / 'wikitext-2'])):
        done = run(arguments, arguments.plumb, *words)
        if done.returncode:
            sys.exit(done.stderr)


def parallel(arguments, work, items):
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for _ in pool.map(work, items):
            pass


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix('.part')
    temporary.write_text(json.dumps(document, indent=1, sort_keys=True) + '\n')
    temporary.replace(path)


def rounded(values):
    return [round(v, 3) if v is not None and math.isfinite(v) else None for v in values]


def predict(arguments):
    def one(cell):
        path = RESULTS / 'predictions' / f'{name_of(cell)}.json'
        if path.exists():
            return
        done = run(arguments, arguments.plumb, 'check', '--data', data_of(arguments, cell), '--budget', '250g', '--json',
                   '-', *settings(cell, FIRST_RATE[cell['optimizer']]), '--set', f'train.steps={PLANNED}')
        if done.returncode not in (0, 3, 4):
            print(name_of(cell), done.stderr, flush=True)
            return
        document = json.loads(done.stdout)
        for trial in document['trials']:
            trial['losses'] = rounded(trial['losses'])
        write(path, {'cell': cell, 'check': document})
        print(name_of(cell), document['answer'], flush=True)
    parallel(arguments, one, cells())


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def seal(arguments):
    files = sorted((RESULTS / 'predictions').glob('*.json'))
    ledger = {'script': digest(pathlib.Path(__file__)), 'predictions': {f.stem: digest(f) for f in files}}
    write(RESULTS / 'ledger.json', ledger)
    print(f'{len(files)} predictions of {len(cells())} cells are sealed')


def gain(one, frequencies):
    """Nats below the frequencies at the end; 0 if none, or if the run diverged."""
    end = one['losses'][-5:]
    if one['outcome'] != 'finished' or any(v is None for v in end):
        return 0.0
    return max(frequencies - sum(end) / len(end), 0.0)


def usable(runs, frequencies):
    """By run, whether it gains half of what the best rate gains (mean over its seeds)."""
    by_rate = {}
    for one in runs:
        by_rate.setdefault(one['rate'], []).append(gain(one, frequencies))
    best = max(sum(g) / len(g) for g in by_rate.values())
    return [(one['rate'], gain(one, frequencies) >= best / 2 and best > 0) for one in runs]


def truth(arguments):
    ledger = json.loads((RESULTS / 'ledger.json').read_text())

    def train(cell, rate, seed):
        out = arguments.work / 'runs' / f'{name_of(cell)}-{rate:.6g}-{seed}'
        shutil.rmtree(out, ignore_errors=True)
        done = run(arguments, arguments.plumb, 'train', '--data', data_of(arguments, cell), '--out', out, '--seed', seed,
                   *settings(cell, rate), '--set', f'train.steps={HORIZON}', '--set', f'train.validate_every={HORIZON}',
                   '--set', f'train.checkpoint_every={10 * HORIZON}')
        if done.returncode not in (0, 3):
            sys.exit(done.stderr)
        points = [json.loads(line) for line in (out / 'metrics.jsonl').read_text().splitlines()]
        losses = [p['nll'] for p in points if 'nll' in p]
        means = [sum(losses[i:i + 10]) / 10 for i in range(0, len(losses) - 9, 10)]
        result = json.loads((out / 'result.json').read_text())
        shutil.rmtree(out)
        return {'rate': rate, 'seed': seed, 'outcome': result['outcome'], 'losses': rounded(means),
                'valid': result['metrics'].get('valid_nll')}

    def one(cell):
        name = name_of(cell)
        path = RESULTS / 'truth' / f'{name}.json'
        prediction = RESULTS / 'predictions' / f'{name}.json'
        if not prediction.exists() or digest(prediction) != ledger['predictions'].get(name):
            print(name, 'is not sealed', flush=True)
            return
        frequencies = json.loads(prediction.read_text())['check']['frequencies']
        document = json.loads(path.read_text()) if path.exists() else {'cell': cell, 'runs': [], 'complete': False}
        runs = document['runs']
        if document['complete']:
            return

        def have(rate, seed):
            if not any(abs(math.log2(r['rate'] / rate)) < 0.01 and r['seed'] == seed for r in runs):
                runs.append(train(cell, rate, seed))
                write(path, document)

        # A factor of 2 apart, until both a usable rate and two unusable ones above it are known.
        grid = [FIRST_RATE[cell['optimizer']]]
        have(grid[0], 1)
        while True:
            verdicts = dict(usable([r for r in runs if r['seed'] == 1], frequencies))
            rates = sorted(verdicts)
            good = [r for r in rates if verdicts[r]]
            if not good or good[0] == rates[0]:
                following = rates[0] / 2  # the best rate must not lie at the end of the grid
            elif len([r for r in rates if r > good[-1]]) < 2:
                following = rates[-1] * 2
            else:
                break
            if not 2.0**-20 < following < 2.0**8:
                break
            have(following, 1)
        if good:
            edge = good[-1]
            for rate in (edge / 2**0.5, edge, edge * 2**0.5, edge * 2, edge * 2**1.5):
                for seed in SEEDS:
                    have(rate, seed)
        document['complete'] = True
        write(path, document)
        print(name, 'edge', good[-1] if good else None, flush=True)
    parallel(arguments, one, cells())


def edge_of(document, frequencies):
    """log2 of the rate at which half of the runs are usable, by maximum likelihood with the slope of `plumb check`."""
    flags = usable(document['runs'], frequencies)

    def likelihood(edge):
        failing = [0.03 + 0.94 / (1 + math.exp(-(math.log2(rate) - edge) / 0.3)) for rate, _ in flags]
        return sum(math.log(1 - p if good else p) for p, (_, good) in zip(failing, flags))
    return max((i / 32 for i in range(-20 * 32, 8 * 32)), key=likelihood)


def solve(rows, values, ridge=1e-3):
    """Least squares with a small ridge, by Gaussian elimination."""
    n = len(rows[0])
    a = [[sum(r[i] * r[j] for r in rows) + ridge * (i == j) for j in range(n)] +
         [sum(r[i] * v for r, v in zip(rows, values))] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(a[k][i]))
        a[i], a[pivot] = a[pivot], a[i]
        for k in range(n):
            if k != i:
                factor = a[k][i] / a[i][i]
                a[k] = [x - factor * y for x, y in zip(a[k], a[i])]
    return [a[i][n] / a[i][i] for i in range(n)]


def features(cell):
    sgd = cell['optimizer'] == 'sgd'
    return [1, sgd, math.log2(cell['depth']), sgd * math.log2(cell['depth']), cell['warm_up'] > 0,
            cell['corpus'] == 'multi30k']


def table(arguments):
    known = []
    for cell in cells():
        files = [RESULTS / kind / f'{name_of(cell)}.json' for kind in ('predictions', 'truth')]
        if not all(f.exists() for f in files):
            continue
        check, document = json.loads(files[0].read_text())['check'], json.loads(files[1].read_text())
        if not document['complete'] or not any(good for _, good in usable(document['runs'], check['frequencies'])):
            continue
        found = check['largest_stable_rate' if cell['warm_up'] else 'largest_stable_rate_without_warm_up']
        known.append({'cell': cell, 'truth': edge_of(document, check['frequencies']), 'check': check,
                      'estimates': {'plumb check': math.log2(found['estimate'])},
                      'covered': math.log2(found['low']), 'up_to': math.log2(found['high'])})
    for one in known:  # each scheme by what the others teach
        others = [o for o in known if o['cell']['scheme'] != one['cell']['scheme']]
        alike = sorted(o['truth'] for o in others if o['cell']['optimizer'] == one['cell']['optimizer'])
        if not alike:
            continue
        one['estimates']['constant per optimizer'] = alike[len(alike) // 2]
        weights = solve([features(o['cell']) for o in others], [o['truth'] for o in others])
        one['estimates']['regression on the configuration'] = sum(
            w * f for w, f in zip(weights, features(one['cell'])))
        ratios = sorted(o['truth'] - math.log2(o['check']['critical_rate']) for o in others
                        if o['cell']['optimizer'] == one['cell']['optimizer'] and o['check'].get('critical_rate'))
        if ratios and one['check'].get('critical_rate'):
            one['estimates']['critical rate at initialization'] = (math.log2(one['check']['critical_rate']) +
                                                                   ratios[len(ratios) // 2])
    print(f'{len(known)} of {len(cells())} cells')
    print('| method | cells | within 2x | within 4x | over by more than 2x | median of abs. log2 |')
    print('| --- | --- | --- | --- | --- | --- |')
    for method in dict.fromkeys(m for one in known for m in one['estimates']):
        errors = [one['estimates'][method] - one['truth'] for one in known if method in one['estimates']]
        share = [sum(map(test, errors)) / len(errors) for test in
                 (lambda e: abs(e) <= 1, lambda e: abs(e) <= 2, lambda e: e > 1)]
        print(f'| {method} | {len(errors)} | {share[0]:.0%} | {share[1]:.0%} | {share[2]:.0%} | '
              f'{sorted(map(abs, errors))[len(errors) // 2]:.2f} |')
    if known:
        inside = sum(one['covered'] <= one['truth'] <= one['up_to'] for one in known)
        print(f'the 80% interval contains {inside} of {len(known)}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='build/plumb')
    parser.add_argument('--data', type=pathlib.Path, help='folder with multi30k/ and wikitext-2/')
    parser.add_argument('--work', type=pathlib.Path, default=pathlib.Path('out/check'), help='prepared data and runs')
    parser.add_argument('--jobs', type=int, default=2)
    actions = {'prepare': prepare, 'predict': predict, 'seal': seal, 'truth': truth, 'table': table}
    parser.add_argument('action', choices=actions)
    arguments = parser.parse_args()
    actions[arguments.action](arguments)


if __name__ == '__main__':
    main()
