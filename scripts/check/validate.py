#!/usr/bin/env python3
"""How accurate `plumb check` is: predictions for planned runs, and what those runs then do.

    validate.py --data DIR prepare    tokenize DIR's corpora (once), and train the encoder to fine-tune
    validate.py predict               `plumb check` on every cell, at 250 gradients or --gradients
    validate.py seal                  write ledger.json: hashes of the predictions and of this script
    validate.py truth                 train the cells; hours, goes on where it stopped
    validate.py baselines             what other methods measure, which no truth influences
    validate.py table                 accuracy, and that of the baselines

A cell is a planned run of 5,000 steps: residual scheme x depth x optimizer x warm-up x corpus. Its truth are its first
500 steps: runs at rates a factor of 2 apart, and around the edge sqrt(2) apart with three seeds. A run is usable if it
gains, below the entropy of the labels' frequencies, at least half of what the cell's best rate gains, and that half a
nat; the largest stable rate is where half of the runs are usable, by a logistic fit in log2 of the rate. `truth` refuses
cells whose predictions are not sealed. Cells that are held out, of another scheme, corpus and depth, are nobody's
training data. Results: studies/check/, tables with a line of JSON for each prediction, run and cell. `--only WORD`
restricts an action to cells with WORD in their name; `--gradients N` predicts with another budget, which the methods
that train get too; `--version NAME` keeps, seals and judges the predictions of another version of `plumb check`, in
NAME/. `--cells varied` does all this, in varied/, with cells that differ in width, initialization, batch, planned rate,
optimizer and schedule as well, some of them whole runs or fine-tuning; the other methods learn from the cells above:

    validate.py --cells varied --data DIR prepare
    validate.py --cells varied predict seal
    validate.py --cells varied truth baselines table
"""
import argparse
import concurrent.futures
import hashlib
import itertools
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
DESIGN = tomllib.loads((ROOT / 'studies' / 'check' / 'cells.toml').read_text())
SEALED_GRADIENTS = int(DESIGN['budget'].removesuffix('g'))
FACTORS = {'scheme': 'schemes', 'depth': 'depths', 'optimizer': 'optimizers', 'corpus': 'corpora',
           'warm_up': 'warm_ups'}


def cells(varied=False):
    """The cells of the design, the cheap ones first, and those that are held out; or those that vary in more."""
    chosen = []
    if varied:
        for block in DESIGN['varied']['blocks']:
            alike = {key: value for key, value in block.items() if key not in ('rows', 'warm_ups')}
            for row, warm_up in itertools.product(block['rows'], block['warm_ups']):
                chosen.append({**dict(zip(DESIGN['varied']['columns'], row)), **alike, 'warm_up': warm_up,
                               'held_out': True})
        return chosen
    for numbers in itertools.product(*(range(len(DESIGN[plural])) for plural in FACTORS.values())):
        if (numbers[0] + numbers[1] + numbers[2] + 2 * numbers[3]) % 3 == 0:
            chosen.append({key: DESIGN[plural][i] for (key, plural), i in zip(FACTORS.items(), numbers)})
    chosen.sort(key=lambda cell: cell['depth'])
    for block in DESIGN['held_out']:
        for values in itertools.product(*(block[plural] for plural in FACTORS.values())):
            chosen.append({**dict(zip(FACTORS, values)), 'held_out': True})
    return chosen


def without_warm_up(cell):
    """What the other methods look at, none of which has a warm-up."""
    name = '{scheme}-{depth}-{optimizer}-{corpus}'.format(**cell)
    if 'width' in cell:
        name += '-{width}-{initialization}-{batch_tokens}-{octaves:+}'.format(**cell)
    return name + (f"-{cell['schedule'].split()[-1]}" if 'schedule' in cell else '')


def name_of(cell):
    return f"{without_warm_up(cell)}-{cell['warm_up']}"


def usual_rate(cell):
    """The first of the truth's grid."""
    return (DESIGN['varied'] if 'width' in cell else DESIGN)['first_rate'][cell['optimizer']]


def planned_rate(cell):
    return usual_rate(cell) * 2.0**cell.get('octaves', 0)


def model_settings(cell):
    scheme, _, norm = cell['scheme'].partition('+')
    keys = {key: value for key, value in DESIGN['common'].items() if key.startswith('model.')}
    keys['model.residual'] = scheme
    if norm:
        keys['model.qk_norm'] = 'layernorm'
    if cell.get('finetune'):
        return {}  # the encoder's
    if 'width' in cell:
        keys.update({'model.d_model': cell['width'], 'model.feed_forward': 4 * cell['width'],
                     'model.heads': max(4, cell['width'] // 32), 'model.initialization': cell['initialization']})
    if cell['corpus'] == 'multi30k':
        keys.update({'model.encoder_layers': cell['depth'], 'model.decoder_layers': cell['depth']})
    else:
        keys.update({'model.kind': 'decoder', 'model.decoder_layers': cell['depth']})
    return keys


def settings(cell, rate):
    keys = {key: value for key, value in DESIGN['common'].items() if not key.startswith('model.')}
    keys.update(model_settings(cell))
    keys.update({'train.optimizer': cell['optimizer'], 'train.warm_up': cell['warm_up'],
                 'train.learning_rate': repr(rate)})
    if 'width' in cell:
        keys['train.batch_tokens'] = cell['batch_tokens']
    if 'steps' in cell:
        keys['train.decay_start'] = cell['warm_up']
    if 'schedule' in cell:
        keys['train.schedule'] = f'"{cell["schedule"]}"'
    if cell['optimizer'] == 'sgd':
        keys['train.sgd.momentum'] = 0.9
    return keys


def words(keys):
    return [word for key, value in keys.items() for word in ('--set', f'{key}={value}')]


def run(arguments, *given):
    environment = dict(os.environ, OMP_WAIT_POLICY='passive')
    command = [arguments.plumb, *map(str, given), '--threads', '1', '--quiet']
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def data_of(arguments, cell):
    return arguments.work / cell['corpus']


def prepare(arguments):
    multi30k, wikitext = arguments.data / 'multi30k', arguments.data / 'wikitext-2'
    for given in ((['data', 'prepare', '--train', multi30k / 'train.de', multi30k / 'train.en', '--valid',
                    multi30k / 'val.de', multi30k / 'val.en', '--vocabulary', 2000,
                    '--out', arguments.work / 'multi30k']),
                  (['data', 'text', '--train', wikitext / 'train.txt', '--valid', wikitext / 'valid.txt', '--block', 64,
                    '--vocabulary', 2000, '--out', arguments.work / 'wikitext-2']),
                  (['data', 'text', '--train', arguments.data / 'text' / 'tinyshakespeare.txt', '--block', 64,
                    '--vocabulary', 1000, '--out', arguments.work / 'shakespeare'])):
        done = run(arguments, *given)
        if done.returncode:
            sys.exit(done.stderr)
    if arguments.cells == 'varied':
        prepare_fine_tuning(arguments, wikitext)


def encoder_of(arguments):
    return arguments.work / 'encoder'


def prepare_fine_tuning(arguments, wikitext):
    """An encoder that has learned to predict masked tokens, and texts to classify in its vocabulary."""
    masked, labeled = arguments.work / 'masked', arguments.data / 'classification'
    model = {'model.kind': 'encoder', 'model.pooling': 'none', 'model.encoder_layers': 4, 'model.d_model': 64,
             'model.feed_forward': 256, 'model.heads': 4, 'model.initialization': 'gpt-2'}
    training = {'train.steps': 2000, 'train.learning_rate': 0.004, 'train.warm_up': 200, 'train.batch_tokens': 2048}
    for given in ((['data', 'text', '--train', wikitext / 'train.txt', '--valid', wikitext / 'valid.txt', '--block', 62,
                    '--vocabulary', 2000, '--mask-token', '--out', masked]),
                  (['train', '--data', masked, '--out', encoder_of(arguments), *words({**model, **training})]),
                  (['data', 'labels', '--train', labeled / 'trec' / 'train.txt', '--separator', 'space',
                    '--label-end', ':', '--encoding', 'latin-1', '--length-limit', 60, '--tokenizer-from', masked,
                    '--out', arguments.work / 'trec']),
                  (['data', 'labels', '--train', labeled / 'ag_news' / 'train_10000.tsv', '--text', 1, '--label', 2,
                    '--length-limit', 60, '--tokenizer-from', masked, '--out', arguments.work / 'ag_news'])):
        done = run(arguments, *given)
        if done.returncode:
            sys.exit(done.stderr)


def cells_of(arguments):
    return cells(arguments.cells == 'varied')


def for_each_cell(arguments, work, different=name_of):
    """work(cell) for each of those that differ in `different`."""
    chosen = {different(cell): cell for cell in cells_of(arguments) if arguments.only in name_of(cell)}.values()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for _ in pool.map(work, chosen):
            pass


def folder(arguments, kind):
    """Where the predictions, their ledger and the baselines of this budget are. Baselines are of no version."""
    version = arguments.version if kind != 'baselines.jsonl' else ''
    budget = '' if arguments.gradients == SEALED_GRADIENTS else f'gradients-{arguments.gradients}'
    return arguments.results / version / budget / kind


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def add_row(path, row):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open('ab', buffering=0) as table:  # one write, so that several processes may share a table
        table.write((json.dumps(row, sort_keys=True) + '\n').encode())


def predictions_in(path):
    return {name_of(row['cell']): row for row in rows(path)}


def document(value):
    return json.dumps(value, indent=1, sort_keys=True) + '\n'


def rounded(values):
    return [round(v, 3) if v is not None and math.isfinite(v) else None for v in values]


def check(arguments, cell, keys):
    """What `plumb check` answers about a planned run."""
    model = [encoder_of(arguments)] if cell.get('finetune') else []
    steps = cell.get('steps', DESIGN['planned_steps'])
    done = run(arguments, 'check', *model, '--data', data_of(arguments, cell), '--budget', f'{arguments.gradients}g',
               '--json', '-', *words({**keys, 'train.steps': steps}))
    if done.returncode not in (0, 3, 4):
        sys.exit(f'{name_of(cell)}: {done.stderr}')
    return json.loads(done.stdout)


def predict(arguments):
    def one(cell):
        path = folder(arguments, 'predictions.jsonl')
        if name_of(cell) in predictions_in(path):
            return
        answer = check(arguments, cell, settings(cell, planned_rate(cell)))
        del answer['command']  # names folders of this machine
        answer['reasons'] = [reason for reason in answer['reasons'] if reason['raised']]
        for trial in answer['trials']:
            trial['losses'] = rounded(trial['losses'])
        add_row(path, {'cell': cell, 'check': answer})
        print(name_of(cell), answer['answer'], flush=True)
    for_each_cell(arguments, one)


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of(prediction):
    """Of the document with indentation: each prediction was a file of its own when the first ones were sealed."""
    return digest(document(prediction))


def seal(arguments):
    predictions = predictions_in(folder(arguments, 'predictions.jsonl'))
    ledger = {'script': digest(pathlib.Path(__file__).read_text()),
              'cells': digest((ROOT / 'studies' / 'check' / 'cells.toml').read_text()),
              'predictions': {name: digest_of(prediction) for name, prediction in predictions.items()}}
    folder(arguments, 'ledger.json').write_text(document(ledger))
    print(f'{len(predictions)} predictions of {len(cells_of(arguments))} cells are sealed')


def train(arguments, cell, rate, seed, steps, more={}):
    """The outcome of a run, the mean loss per label of each step (nan if it is not finite), and all records."""
    out = arguments.work / 'runs' / f'{name_of(cell)}-{rate:.6g}-{seed}-{steps}'
    shutil.rmtree(out, ignore_errors=True)
    keys = {**settings(cell, rate), 'train.steps': steps, 'train.validate_every': 10 * steps,
            'train.checkpoint_every': 10 * steps, **more}
    verb = ['finetune', '--from', encoder_of(arguments)] if cell.get('finetune') else ['train']
    done = run(arguments, *verb, '--data', data_of(arguments, cell), '--out', out, '--seed', seed, *words(keys))
    if done.returncode not in (0, 3):
        sys.exit(f'{name_of(cell)}: {done.stderr}')
    points = [json.loads(line) for line in (out / 'metrics.jsonl').read_text().splitlines()]
    outcome = json.loads((out / 'result.json').read_text())['outcome']
    shutil.rmtree(out)
    return outcome, [math.nan if p['nll'] is None else p['nll'] for p in points if 'nll' in p], points


def gain(one, frequencies):
    """Nats below the frequencies at the end; 0 if none, or if the run diverged."""
    end = one['losses'][-5:]
    if one['outcome'] != 'finished' or any(v is None for v in end):
        return 0.0
    return max(frequencies - sum(end) / len(end), 0.0)


LEAST_GAIN = 0.5  # nats, of the best rate: less is what knowing the frequencies at each position may give
HOPELESS = 64     # the factor by which the usual rate is lowered in vain before a cell counts as without a usable rate


def usable(runs, frequencies):
    """By run, whether it gains half of what the best rate gains (mean over its seeds)."""
    by_rate = {}
    for one in runs:
        by_rate.setdefault(one['rate'], []).append(gain(one, frequencies))
    best = max(sum(g) / len(g) for g in by_rate.values())
    return [(one['rate'], gain(one, frequencies) >= best / 2 and best > LEAST_GAIN) for one in runs]


def truth_of(path, name):
    """The runs of a cell, and whether they are all."""
    of_cell = [row for row in rows(path) if row['cell'] == name]
    return [row for row in of_cell if 'rate' in row], any('complete' in row for row in of_cell)


def truth(arguments):
    ledger = json.loads((arguments.results / 'ledger.json').read_text())
    predictions = predictions_in(arguments.results / 'predictions.jsonl')
    path = arguments.results / 'truth.jsonl'

    def one(cell):
        name = name_of(cell)
        if name not in predictions or digest_of(predictions[name]) != ledger['predictions'].get(name):
            print(name, 'is not sealed', flush=True)
            return
        frequencies = predictions[name]['check']['frequencies']
        runs, complete = truth_of(path, name)
        if complete:
            return

        def have(rate, seed):
            if any(abs(math.log2(r['rate'] / rate)) < 0.01 and r['seed'] == seed for r in runs):
                return
            outcome, losses, _ = train(arguments, cell, rate, seed, cell.get('steps', arguments.horizon))
            means = [sum(losses[i:i + 10]) / 10 for i in range(0, len(losses) - 9, 10)]
            runs.append({'cell': name, 'rate': rate, 'seed': seed, 'outcome': outcome, 'losses': rounded(means)})
            add_row(path, runs[-1])

        # A factor of 2 apart, until both a usable rate and two unusable ones above it are known.
        have(usual_rate(cell), 1)
        while True:
            first = [r for r in runs if r['seed'] == 1]
            verdicts = dict(usable(first, frequencies))
            rates = sorted(verdicts)
            good = [r for r in rates if verdicts[r]]
            best = max(first, key=lambda r: gain(r, frequencies))['rate']  # which must not lie at the end of the grid
            if not good and best == rates[-1] != rates[0]:
                following = rates[-1] * 2
            elif not good or best == rates[0]:
                following = rates[0] / 2
            elif len([r for r in rates if r > good[-1]]) < 2:
                following = rates[-1] * 2
            else:
                break
            if not 2.0**-20 < following < 2.0**8 or not good and following < usual_rate(cell) / HOPELESS:
                break
            have(following, 1)
        have(planned_rate(cell), 1)
        if good:
            for rate in (good[-1], good[-1] * 2**0.5, good[-1] * 2):
                for seed in (DESIGN['varied'] if 'width' in cell else DESIGN)['seeds']:
                    have(rate, seed)
        add_row(path, {'cell': name, 'complete': True})
        print(name, 'edge', good[-1] if good else None, flush=True)
    for_each_cell(arguments, one)


def learns(losses, frequencies):
    """The rule of the short runs of bisection: below the frequencies at the end, or falling steadily."""
    if not losses or not all(map(math.isfinite, losses[-10:])):
        return False
    quarter = len(losses) // 4
    means = [sum(losses[i * quarter:(i + 1) * quarter]) / quarter for i in range(4)]
    return means[3] < frequencies - 0.05 or means[1] - 0.1 > means[2] > means[3] + 0.1


def baselines(arguments):
    predictions = predictions_in(arguments.results / 'predictions.jsonl')
    path = folder(arguments, 'baselines.jsonl')
    known = {row['cell'] for row in rows(path)}

    def one(cell):
        if without_warm_up(cell) in known or cell.get('finetune'):
            return
        sealed = predictions[name_of(cell)]['check']
        low, high = (DESIGN['varied'] if 'width' in cell else DESIGN)['searched'][cell['optimizer']]
        found = {}
        budget = arguments.gradients
        alone = {'train.warm_up': 0, **({'train.schedule': '"constant * linear_warmup"'} if 'schedule' in cell else {})}
        # A range test: a rate that grows by sqrt(2) every 1/28 of the budget; the rate of the lowest smoothed loss.
        at = [round((i + 1) * budget / (2 * (high - low))) for i in range(2 * (high - low) - 1)]
        ramp = {'train.schedule': '"constant * step_decay"', 'train.step_decay.at': at, 'train.warm_up': 0,
                'train.step_decay.factor': 2**0.5}
        _, losses, points = train(arguments, cell, 2.0**low, 1, budget, ramp)
        rates = [p['learning_rate'] for p in points if 'nll' in p]
        smooth = [statistics.mean(losses[max(i - 9, 0):i + 1]) for i in range(len(losses))]
        finite = [i for i, value in enumerate(smooth) if math.isfinite(value)]
        found['learning-rate range test'] = rates[min(finite, key=lambda i: smooth[i])]
        # Successive halving: of 250 gradients, 8 rates for 10 steps, the best 4 for 20, the best 2 for 40, from the
        # beginning each time.
        rates = [2.0**(low + (high - low) * i / 7) for i in range(8)]
        for steps in (budget // 25, 2 * (budget // 25), 4 * (budget // 25)):
            ends = {rate: train(arguments, cell, rate, 1, steps, alone)[1][-5:] for rate in rates}
            means = {rate: statistics.mean(end) if end and all(map(math.isfinite, end)) else math.inf
                     for rate, end in ends.items()}
            rates = sorted(rates, key=means.get)[:len(rates) // 2]
        found['successive halving'] = rates[0]
        # Bisection: of 250 gradients, three runs of 80 steps; of 700, six of 112.
        below, above = low, high
        runs = 6 if budget >= 500 else 3
        for _ in range(runs):
            middle = (below + above) / 2
            losses = train(arguments, cell, 2.0**middle, 1, budget * 24 // 25 // runs, alone)[1]
            below, above = (middle, above) if learns(losses, sealed['frequencies']) else (below, middle)
        found['bisection'] = 2.0**((below + above) / 2)
        # A model of half the width, with the same cost per answer as one check.
        width = cell.get('width', 64) // 2
        narrow = {**settings(cell, planned_rate(cell)), 'model.d_model': width, 'model.feed_forward': 4 * width,
                  'model.heads': max(2, width // 32), 'train.warm_up': 0}
        found['half the width'] = check(arguments, cell, narrow)['largest_stable_rate']['estimate']
        if budget == SEALED_GRADIENTS and 'width' not in cell:
            found.update(curvature_rates(arguments, cell))
        add_row(path, {'cell': without_warm_up(cell), 'rates': found})
        print(without_warm_up(cell), found, flush=True)
    for_each_cell(arguments, one, without_warm_up)


def curvature_rates(arguments, cell):
    """What needs few gradients, and would not use more."""
    found = {}
    # Curvature at initialization, and that of the preconditioned loss at the first steps.
    measured = ['--data', data_of(arguments, cell), '--split', 'train', '--pairs', 32, '--label-smoothing', 0.1,
                '--json', '-', *words(model_settings(cell))]
    watch = {'watch.what': '["curvature"]', 'watch.every': 10, 'watch.examples': 32, 'train.warm_up': 0}
    _, _, points = train(arguments, cell, planned_rate(cell), 1, 51, watch)
    seen = {p['step']: p['watch']['curvature'] for p in points if 'watch' in p}
    found['2/lambda_max'] = 2 / seen[0]['hessian']['value']
    for step in (1, 10, 50):
        if 'preconditioned' in seen.get(step, {}):
            found[f'38/lambda_max(P^-1 H), step {step}'] = 38 / seen[step]['preconditioned']['value']
    done = run(arguments, 'probe', '--seeds', 1, '--first-step', *measured)
    if done.returncode:
        sys.exit(f'{name_of(cell)}: {done.stderr}')
    optimizer = 'sgd' if cell['optimizer'] == 'sgd' else 'adam'
    step = next(s for s in json.loads(done.stdout)['first_step'] if s['optimizer'] == optimizer)
    found['constant change of the function'] = 1 / step['logit_change']['mean']
    return found


def edge_of(runs, frequencies):
    """log2 of the rate at which half of the runs are usable, by maximum likelihood with the slope of `plumb check`."""
    flags = usable(runs, frequencies)

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


def offsets(one):
    """By seed, the median by which its runs gain more than those of seed 1 at the same rates: other batches come last."""
    gains = {(each['rate'], each['seed']): gain(each, one['check']['frequencies']) for each in one['runs']}
    more = {1: [0]}
    for (rate, seed), value in gains.items():
        if seed != 1 and min(value, gains.get((rate, 1), 0)) > LEAST_GAIN / 2:
            more.setdefault(seed, []).append(value - gains[rate, 1])
    return {seed: statistics.median(values) for seed, values in more.items()}


def curve_of(one):
    """log2 of the rates that were tried, and what they gain, negated."""
    by_rate, seeds = {}, offsets(one)
    for each in one['runs']:
        gained = gain(each, one['check']['frequencies'])
        corrected = max(gained - seeds.get(each['seed'], 0), 0) if gained else 0
        by_rate.setdefault(math.log2(each['rate']), []).append(-corrected)
    return sorted((r, sum(v) / len(v)) for r, v in by_rate.items())


def given_away(one, rate):
    """Nats by which the loss at this rate (log2) exceeds that of the best one, between the rates that were tried."""
    points = one['curve'] = one.get('curve') or curve_of(one)
    rate = min(max(rate, points[0][0]), points[-1][0])
    (x0, y0), (x1, y1) = next((p, q) for p, q in zip(points, points[1:]) if p[0] <= rate <= q[0])
    return y0 + (y1 - y0) * (rate - x0) / (x1 - x0) - min(y for _, y in points)


# Of the rate that `plumb check` recommends (check/stable_rate.cpp): its log2 is constant + share x that of the estimate
# of the largest stable rate, by optimizer.
RULE = {'sgd': (-1.25, 0.85), 'adamw': (-5.625, 0.5), 'muon': (-5.625, 0.5), 'adafactor': (-3.125, 0.5)}


def recommended(one, constant, share):
    rate, planned = constant + share * one['interval'][1], math.log2(planned_rate(one['cell']))
    return planned if abs(rate - planned) <= 0.5 else rate


def said(one):
    """log2 of the rate to train with by the answer itself: the planned one if it recommends none."""
    made = one['check'].get('recommended')
    return math.log2(made['learning_rate'] if made else planned_rate(one['cell']))


def says_now(one):
    """The same by the program that came after the varied cells' truth, from the same trials: it has a rule for Adafactor,
    an estimate where the planned rate fails and no trial carries another one, and a bound by the trials' losses."""
    fails = one['check']['answer'].startswith('does not train at') and not one['check'].get('recommended')
    again = fails or one['cell']['optimizer'] == 'adafactor'
    rate = recommended(one, *RULE[one['cell']['optimizer']]) if again else said(one)
    return min(rate, bound_by_lower_trials(one))


def bound_by_lower_trials(one):
    """log2 of the rate that is 1.5 octaves above the lowest one whose trial was better by 0.1 nats, at the same step, than a
    stable one at a higher rate (check/compared_trials.cpp)."""
    if one['cell']['optimizer'] == 'sgd' or one['cell'].get('finetune'):
        return math.inf
    bound = math.inf
    stable = [each for each in one['check']['trials'] if each['losses'] and each['outcome'] != 'fails']
    for lower, higher in itertools.permutations(stable, 2):
        if lower['warm_up'] == higher['warm_up'] and lower['learning_rate'] < higher['learning_rate']:
            last = min(len(lower['losses']), len(higher['losses'])) - 1
            if (lower['losses'][last] or math.inf) < (higher['losses'][last] or math.inf) - 0.1:
                bound = min(bound, math.log2(lower['learning_rate']) + 1.5)
    return bound


def recommend(known, teachers):
    """Each scheme with the constant that suits the others best, by optimizer."""
    for one in known:
        if one['cell']['optimizer'] not in ('adamw', 'sgd'):  # of which the first cells have none
            one['recommended'] = said(one)
            continue
        share = RULE[one['cell']['optimizer']][1]
        alike = [o for o in teachers if o['cell']['optimizer'] == one['cell']['optimizer'] and
                 (o['cell']['scheme'] != one['cell']['scheme'] or one['cell'].get('held_out'))]
        best = min((i / 8 for i in range(-64, 1)), key=lambda constant: sum(
            given_away(o, recommended(o, constant, share)) for o in alike))
        one['recommended'] = recommended(one, best, share)


def recommend_otherwise(known, teachers):
    """The same of the other methods: log2 of each one's estimate, or of no estimate, plus a constant."""
    for one in [*known, *teachers]:
        one['otherwise'] = {'constant per optimizer': 0, **one['raw']}
        one['otherwise'].pop('plumb check', None)
    for one in known:
        alike = [o for o in teachers if o['cell']['optimizer'] == one['cell']['optimizer'] and
                 (o['cell']['scheme'] != one['cell']['scheme'] or one['cell'].get('held_out'))]
        one['by others'] = {}
        for method, value in one['otherwise'].items() if alike else ():
            taught = [(o, o['otherwise'][method]) for o in alike if method in o['otherwise']]
            best = min((i / 8 for i in range(-96, 33)), key=lambda constant: sum(
                given_away(o, estimate + constant) for o, estimate in taught))
            one['by others'][method] = value + best


def lift_of(trials):
    """Octaves by which a warm-up raises the largest stable rate (check/stable_rate.cpp)."""
    shares = [trial['gradient_at_input'] for trial in trials if trial['outcome'] == 'fails' and
              not trial['warm_up'] and trial.get('gradient_at_input') is not None]
    return 0.66 + 0.18 * max(0, math.log10(0.005 / max(min(shares), 1e-12))) if shares else 0.66


def interval_of(cell, check):
    """log2 of the largest stable rate: low, estimate, high. Without a trial with the planned warm-up, from those without:
    predictions that were recorded before the lift was one of the trials had 1.6."""
    without = [math.log2(check['largest_stable_rate_without_warm_up'][key]) for key in ('low', 'estimate', 'high')]
    if not cell['warm_up']:
        return without
    if any(trial['warm_up'] for trial in check['trials']):
        return [math.log2(check['largest_stable_rate'][key]) for key in ('low', 'estimate', 'high')]
    middle, deviation = without[1] + lift_of(check['trials']), math.hypot(0.55, (without[2] - without[0]) / 2.56)
    return [middle - 1.2816 * deviation, middle, middle + 1.2816 * deviation]


def clustered(known, statistic, draws=2000):
    """A 95% interval of a mean over cells, by drawing whole schemes."""
    schemes = sorted({one['cell']['scheme'] for one in known})
    values = {s: [statistic(one) for one in known if one['cell']['scheme'] == s] for s in schemes}
    generator = random.Random(1)
    means = sorted(statistics.mean([v for s in generator.choices(schemes, k=len(schemes)) for v in values[s]])
                   for _ in range(draws))
    return means[int(0.025 * draws)], means[int(0.975 * draws)]


def collect(arguments):
    """The cells whose truth is complete and has a usable rate, with log2 of each method's estimate; the verdicts of
    the other cells, and of those that got no estimate."""
    known, hopeless = [], []
    predictions = predictions_in(folder(arguments, 'predictions.jsonl'))
    others = {row['cell']: row['rates'] for row in rows(folder(arguments, 'baselines.jsonl'))}
    for cell in cells_of(arguments):
        runs, complete = truth_of(arguments.results / 'truth.jsonl', name_of(cell))
        if name_of(cell) not in predictions or not complete:
            continue
        check = predictions[name_of(cell)]['check']
        if not any(good for _, good in usable(runs, check['frequencies'])) or 'largest_stable_rate' not in check:
            hopeless.append(check['verdict'])
            continue
        one = {'cell': cell, 'runs': runs, 'check': check, 'estimates': {},
               'truth': edge_of(runs, check['frequencies']), 'interval': interval_of(cell, check)}
        one['raw'] = {'plumb check': one['interval'][1]}
        if check.get('critical_rate'):
            one['raw']['critical rate at initialization'] = math.log2(check['critical_rate'])
        rates = others.get(without_warm_up(cell), {})
        one['raw'].update({k: math.log2(v) for k, v in rates.items() if v > 0})
        known.append(one)
    return known, hopeless


def estimate(known, teachers):
    """Each scheme by what the others teach: every method's constant is the median ratio of truth and estimate."""
    for one in known:
        one['estimates']['plumb check'] = one['raw']['plumb check']
        others = [o for o in teachers if o['cell']['scheme'] != one['cell']['scheme'] or one['cell'].get('held_out')]
        alike = [o for o in others if o['cell']['optimizer'] == one['cell']['optimizer']]
        if not others or not alike:
            continue
        one['estimates']['constant per optimizer'] = statistics.median(o['truth'] for o in alike)
        weights = solve([features(o['cell']) for o in others], [o['truth'] for o in others])
        one['estimates']['regression on the configuration'] = sum(
            w * f for w, f in zip(weights, features(one['cell'])))
        for method, value in one['raw'].items():
            ratios = [o['truth'] - o['raw'][method] for o in alike if method in o['raw']]
            if ratios:
                name = 'plumb check, with such a constant' if method == 'plumb check' else method
                one['estimates'][name] = value + statistics.median(ratios)
        errors = sorted(abs(o['truth'] - o['raw']['plumb check']) for o in others)
        one['conformal'] = errors[min(math.ceil(0.8 * (len(errors) + 1)) - 1, len(errors) - 1)]


def table(arguments):
    known, hopeless = collect(arguments)
    taught = known
    if arguments.cells == 'varied':  # and judged, like the tables of the first cells, by what those teach
        first = argparse.Namespace(**{**vars(arguments), 'cells': '', 'version': '',
                                      'results': arguments.results.parent})
        taught = collect(first)[0]
    teachers = [one for one in taught if 'held_out' not in one['cell']]
    estimate(known, teachers)
    recommend(known, teachers)
    recommend_otherwise(known, teachers)
    print(f'{len(known) + len(hopeless)} of {len(cells_of(arguments))} cells; of those without a usable rate or an '
          f'estimate, plumb check says {", ".join(hopeless)}')
    parts = {'Each scheme from the others': [one for one in known if 'held_out' not in one['cell']],
             'Held out': [one for one in known if 'held_out' in one['cell']]}
    if arguments.cells == 'varied':
        for optimizer in DESIGN['varied']['first_rate']:
            parts[f'With {optimizer}'] = [one for one in known if one['cell']['optimizer'] == optimizer]
        parts['Whole runs'] = [one for one in known if 'steps' in one['cell']]
    for title, part in parts.items():
        if part:
            print(f'\n## {title}')
            accuracy(part)
    if arguments.cells == 'varied':
        needed_warm_ups(known)


def needed_warm_ups(known):
    """Of the models with several warm-ups: the shortest with which the planned rate is usable, by the runs and by the check
    without one."""
    models = {}
    for one in known:
        models.setdefault(without_warm_up(one['cell']), {})[one['cell']['warm_up']] = one
    print('\n| model | warm-up that the planned rate needs | by the check |')
    print('| --- | --- | --- |')
    for name, by_warm_up in models.items():
        if len(by_warm_up) < 3 or 0 not in by_warm_up:
            continue
        gains = {}
        for warm_up, one in by_warm_up.items():
            rate = planned_rate(one['cell'])
            gains[warm_up] = max((gain(each, one['check']['frequencies']) for each in one['runs'] if each['seed'] == 1 and
                                  abs(math.log2(each['rate'] / rate)) < 0.01), default=0)
        enough = [w for w, value in sorted(gains.items()) if value >= max(gains.values()) / 2 > LEAST_GAIN / 2]
        check = by_warm_up[0]['check']
        print(f"| {name} | {enough[0] if enough else 'more'} | {check['verdict']}, {check.get('shortest_warm_up')} |")


def accuracy(known):
    print('\n| method | cells | within 2x | within 4x | over by more than 2x | median of abs. log2 | mean | 95% |')
    print('| --- | --- | --- | --- | --- | --- | --- | --- |')
    for method in dict.fromkeys(m for one in known for m in one['estimates']):
        with_it = [one for one in known if method in one['estimates']]
        errors = [one['estimates'][method] - one['truth'] for one in with_it]
        share = [sum(map(test, errors)) / len(errors) for test in
                 (lambda e: abs(e) <= 1, lambda e: abs(e) <= 2, lambda e: e > 1)]
        low, high = clustered(with_it, lambda one: abs(one['estimates'][method] - one['truth']))
        print(f'| {method} | {len(errors)} | {share[0]:.0%} | {share[1]:.0%} | {share[2]:.0%} | '
              f'{statistics.median(map(abs, errors)):.2f} | {statistics.mean(map(abs, errors)):.2f} | '
              f'{low:.2f} to {high:.2f} |')
    print('\nHow much smaller the error of plumb check is, in octaves (95% by schemes):')
    for method in ('constant per optimizer', 'regression on the configuration', 'successive halving', 'bisection'):
        both = [one for one in known if method in one['estimates']]
        if both:
            def less(one):
                return (abs(one['estimates'][method] - one['truth']) -
                        abs(one['estimates']['plumb check'] - one['truth']))
            low, high = clustered(both, less)
            print(f'- than that of {method}: {statistics.mean(map(less, both)):.2f} ({low:.2f} to {high:.2f})')
    inside = sum(one['interval'][0] <= one['truth'] <= one['interval'][2] for one in known)
    print(f'\nThe 80% interval contains the truth of {inside} of {len(known)} cells.')
    conformal = [one for one in known if 'conformal' in one]
    if conformal:
        wide = sum(abs(one['truth'] - one['interval'][1]) <= one['conformal'] for one in conformal)
        width = statistics.median(one['conformal'] for one in conformal)
        print(f'The estimate +- the 80% quantile of the errors of the other schemes ({width:.2f} octaves) contains '
              f'{wide} of {len(conformal)}.')
    print('\n| rate | within 0.05 nats of the best | nats given away: mean | in nine of ten |')
    print('| --- | --- | --- | --- |')
    rates = {f'estimate / {2**below}': [one['interval'][1] - below for one in known] for below in (1, 2, 3, 4)}
    rates['planned'] = [math.log2(planned_rate(one['cell'])) for one in known]
    rates['recommended'] = [recommended(one, *RULE[one['cell']['optimizer']]) for one in known]
    rates['by the answer itself'] = [said(one) for one in known]
    rates['by the answer to the same trials, now'] = [says_now(one) for one in known]
    rates['recommended, with the constants of the other schemes'] = [one['recommended'] for one in known]
    methods = dict.fromkeys(method for one in known for method in one['by others'])
    rates.update({method: [one['by others'].get(method) for one in known] for method in methods})
    for name, chosen in rates.items():
        lost = [given_away(one, rate) for one, rate in zip(known, chosen) if rate is not None]
        close = sum(v <= 0.05 for v in lost) / len(lost)
        print(f'| {name} | {close:.0%} | {statistics.mean(lost):.3f} | {sorted(lost)[len(lost) * 9 // 10]:.3f} |')
    for answer, rate_of in (('the answer itself', said), ('the answer to the same trials, now', says_now)):
        print(f'\nHow much less {answer} gives away, in nats (95% by schemes):')
        for method in methods:
            both = [one for one in known if method in one['by others']]
            def less(one):
                return given_away(one, one['by others'][method]) - given_away(one, rate_of(one))
            low, high = clustered(both, less)
            print(f'- than {method}, {len(both)} cells: {statistics.mean(map(less, both)):.3f} ({low:.3f} to {high:.3f})')
    pairs = {}
    for one in known:
        key = tuple(v for k, v in one['cell'].items() if k != 'warm_up')
        pairs.setdefault(key, {})[one['cell']['warm_up']] = one
    answers = []
    for pair in pairs.values():
        if {0, 200} <= pair.keys():
            without = math.log2(pair[200]['check']['largest_stable_rate_without_warm_up']['estimate'])
            answers.append((pair[200]['truth'] - pair[0]['truth'], pair[200]['interval'][1] - without))
    error = statistics.mean(abs(true - said) for true, said in answers) if answers else math.nan
    answers = [(true > 1, said > 1) for true, said in answers]
    right = sum(true and said for true, said in answers)
    wrong = sum(true != said for true, said in answers)
    f1 = 2 * right / (2 * right + wrong) if right + wrong else math.nan
    print(f'\nA warm-up of 200 steps raises the largest stable rate by more than 2x in {sum(t for t, _ in answers)} of '
          f'{len(answers)} pairs; said of {sum(s for _, s in answers)}, F1 {f1:.2f}; mean error {error:.2f} octaves.')
    gains = [(rate - planned, given_away(one, planned) - given_away(one, rate)) for one, rate, planned in
             zip(known, rates['recommended'], rates['planned']) if rate - planned >= 1]
    if gains:
        shares = sorted(nats / octaves for octaves, nats in gains)
        low, high = shares[len(shares) // 10], shares[len(shares) * 9 // 10]
        print(f'{len(gains)} planned rates are less than half of the recommended one, and lose '
              f'{sum(o * n for o, n in gains) / sum(o * o for o, _ in gains):.3f} nats an octave (80%: {low:.3f} to '
              f'{high:.3f}).')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='build/plumb')
    parser.add_argument('--data', type=pathlib.Path, help='folder with multi30k/, wikitext-2/ and text/')
    parser.add_argument('--work', type=pathlib.Path, default=pathlib.Path('out/check'), help='prepared data and runs')
    parser.add_argument('--results', type=pathlib.Path, default=ROOT / 'studies' / 'check')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--only', default='')
    parser.add_argument('--cells', default='', choices=['', 'varied'])
    parser.add_argument('--version', default='', help='name of predictions other than those sealed')
    parser.add_argument('--gradients', type=int, default=SEALED_GRADIENTS, help='the budget of a prediction')
    parser.add_argument('--horizon', type=int, default=DESIGN['horizon'], help='steps of a run of the truth')
    actions = {'prepare': prepare, 'predict': predict, 'seal': seal, 'truth': truth, 'baselines': baselines,
               'table': table}
    parser.add_argument('action', nargs='+', choices=actions)
    arguments = parser.parse_args()
    arguments.results /= arguments.cells
    for action in arguments.action:
        actions[action](arguments)


if __name__ == '__main__':
    main()
