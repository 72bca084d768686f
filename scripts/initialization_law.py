#!/usr/bin/env python3
"""What `plumb probe` knows of branch and stream before the first step, and whether it says which models learn.

  probe --data DIR --probes DIR   probes the models of studies/initialization_law.toml; repeated, it probes what is left
  predict --probes DIR            seals what follows: docs/findings/initialization_law.prediction.json
  judge --results FILE            compares it with results.json of the study: docs/findings/initialization_law.json,
                                  and prints the table of docs/findings/post-ln.md; its figure is drawn by
                                  `plumb report DIR --svg DIR`, from a directory with this as results.json

A model is predicted to learn if its number is below a threshold. Thresholds come from other runs, of two Post-LN
decoders (docs/findings/post-ln.md, "With smaller values"): with xavier-uniform one failed, with fairseq one learned. A
threshold is the geometric mean of their numbers: of the summed ratios, and of 1 minus the similarities.
"""
import argparse
import collections
import hashlib
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
FINDINGS = ROOT / 'docs/findings'
TEXT = (ROOT / 'studies/initialization_law.toml').read_text()
STUDY = tomllib.loads(TEXT)
SCHEMES = STUDY['study']['axis'][0]['values']
NUMBERS = [(what, how) for what in ('similarity', 'ratio') for how in ('measured', 'predicted')]
MARGIN = 0.3  # nats that a run has to end below the words' frequencies


def models():
    """Names and settings: the models of the study, and the two that the thresholds come from."""
    for arm in STUDY['study']['arm']:
        settings = dict(each.removeprefix('model.').split('=') for each in arm['set'])
        settings['decoder_layers'] = int(settings['decoder_layers'])
        for scheme in SCHEMES:
            yield f"{arm['name']}, {scheme}", settings | {'residual': scheme}
    of_both = {'residual': 'post-ln', 'decoder_layers': 8, 'feed_forward': 256}
    for initialization in ('xavier-uniform', 'fairseq'):
        yield initialization, of_both | {'initialization': initialization}


def probe(arguments, name, model, pairs):
    """The branches that a probe of the model measures and predicts, kept in a file."""
    path = arguments.probes / f'{name}.json'
    if not path.exists():
        arguments.probes.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile('w', suffix='.toml') as config:
            config.write('[model]\n' + ''.join(f'{key} = {json.dumps(value)}\n' for key, value in model.items()))
            config.flush()
            subprocess.run([arguments.plumb, 'probe', '--config', config.name, '--data', arguments.data, '--pairs',
                            str(pairs), '--seeds', '2', '--threads', '1', '--json', f'{path}.new', '-q'], check=True)
        pathlib.Path(f'{path}.new').rename(path)
    return json.loads(path.read_text())['branches']


def number(branches, what, how):
    """After the last sub-layer, or summed over all; infinite where the recursion overflows."""
    values = [each[what]['mean'] if how == 'measured' else (each['predicted'] or {}).get(what) for each in branches]
    if None in values:
        return math.inf
    return values[-1] if what == 'similarity' else sum(values)


def predict(branches):
    numbers = {name: [number(of_model, *each) for each in NUMBERS] for name, of_model in branches.items()}
    fails, learns = numbers.pop('xavier-uniform'), numbers.pop('fairseq')
    thresholds = [1 - math.sqrt((1 - a) * (1 - b)) if what == 'similarity' else math.sqrt(a * b)
                  for (what, _), a, b in zip(NUMBERS, fails, learns)]
    rows = [[name, *(round(each, 4) if each < math.inf else None for each in of_model),
             *(each < limit for each, limit in zip(of_model, thresholds))] for name, of_model in numbers.items()]
    titles = [', '.join(each) for each in NUMBERS]
    sealed = {'date': time.strftime('%Y-%m-%dT%H:%MZ', time.gmtime()),
              'study_sha256': hashlib.sha256(TEXT.encode()).hexdigest(), 'numbers': titles,
              'of_the_run_that_failed': fails, 'of_the_run_that_learned': learns, 'thresholds': thresholds,
              'columns': ['model', *titles, *(f'learns, by {each}' for each in titles)], 'rows': rows}
    sealed['sha256'] = hashlib.sha256(json.dumps(sealed).encode()).hexdigest()
    write('initialization_law.prediction.json', sealed)


def rule(cases):
    """The threshold and direction that are right most often: (number, learns) pairs."""
    values = sorted({each for each, _ in cases})
    between = [-math.inf, *((a + b) / 2 for a, b in zip(values, values[1:])), math.inf]
    return max(((at, below) for at in between for below in (True, False)),
               key=lambda r: sum(((each < r[0]) == r[1]) == learns for each, learns in cases))


def score(said, truth):
    """How often it is right, and the mean of that among models that learn and among those that do not."""
    right = {name: said[name] == learns for name, learns in truth.items()}
    parts = [[right[name] for name in truth if truth[name] == learns] for learns in (True, False)]
    return {'accuracy': sum(right.values()) / len(right),
            'balanced': sum(sum(each) / len(each) for each in parts if each) / sum(map(bool, parts)),
            'wrong': [name for name in truth if not right[name]]}


def judge(results):
    tables = {each['id']: each for each in results['tables']}
    frequencies = float(re.search(r'no lower than ([\d.]+),', tables['sweeps']['caption']).group(1))
    losses = {}
    for row in tables['runs']['rows']:
        losses.setdefault(row[0], []).append(row[8] if row[6] == 'finished' and row[8] is not None else frequencies)
    learned = {name: [loss < frequencies - MARGIN for loss in of_seeds] for name, of_seeds in losses.items()}
    truth = {name: all(of_seeds) for name, of_seeds in learned.items() if all(of_seeds) or not any(of_seeds)}
    sealed = json.loads((FINDINGS / 'initialization_law.prediction.json').read_text())
    known = {title: {row[0]: row[i] for row in sealed['rows']} for i, title in enumerate(sealed['numbers'], 1)}
    known['critical rate'] = {row[1]: row[2] for row in tables['first_step']['rows']}
    known['largest eigenvalue'] = {row[0]: row[1] for row in tables['hessian']['rows']}
    known["gradient's factor per layer"] = {row[0]: row[4] for row in tables['gradient_factors']['rows']
                                            if row[1] == "the study's" and row[3] == 'feed-forward'}
    scheme = {name: name.rsplit(', ', 1)[1] for name in truth}
    table = {f'{title}, sealed': score({row[0]: row[i + len(NUMBERS)] for row in sealed['rows']}, truth)
             for i, title in enumerate(sealed['numbers'], 1)}
    for title, values in known.items():
        values = {name: math.inf if values.get(name) is None else values[name] for name in truth}
        rules = {left: rule([(values[one], truth[one]) for one in truth if scheme[one] != left]) for left in SCHEMES}
        said = {name: (values[name] < rules[scheme[name]][0]) == rules[scheme[name]][1] for name in truth}
        table[f'{title}, each scheme by the others'] = score(said, truth)
    others = {name: [truth[each] for each in truth if each != name and scheme[each] == scheme[name]] for name in truth}
    said = {name: 2 * sum(each) >= len(each) for name, each in others.items()}
    table["the scheme's name, each model by the scheme's others"] = score(said, truth)
    table['all learn'] = score(dict.fromkeys(truth, True), truth)
    found = {'schema': 'plumb.study/1', 'title': 'Which models learn without a warm-up?', 'subtitle': 'By similarity',
             'figures': [figure(sealed, losses, frequencies)], 'tables': [],
             'command': results['command'], 'prediction_sha256': sealed['sha256'], 'frequencies': frequencies,
             'margin': MARGIN, 'learn': sum(truth.values()), 'fail': len(truth) - sum(truth.values()),
             'seeds_disagree': [name for name in learned if name not in truth], 'predictors': table, 'losses': losses}
    write('initialization_law.json', found)
    print(page(found))


def page(found):
    """The table of docs/findings/post-ln.md: a line for each predictor, with the schemes that it is wrong about most."""
    models = found['learn'] + found['fail']
    lines = [f"Of {models} models {found['learn']} learn with both seeds and {found['fail']} with neither; of "
             f"{len(found['seeds_disagree'])} more the seeds disagree.", '',
             '| what says whether a model learns | right | balanced | wrong about |', '| --- | --- | --- | --- |']
    for title, of_title in found['predictors'].items():
        wrong = collections.Counter(name.rsplit(', ', 1)[1] for name in of_title['wrong'])
        schemes = ', '.join(f'`{scheme}` {count}' for scheme, count in wrong.most_common(4)) or 'none'
        right = f"{models - len(of_title['wrong'])} of {models} | {of_title['balanced']:.0%}"
        lines.append(f"| {title} | {right} | {schemes}{', …' if len(wrong) > 4 else ''} |")
    return '\n'.join(lines)


def figure(sealed, losses, frequencies):
    """The loss of each model, as it counts, against the similarity of its tokens before training."""
    similarity = {row[0]: row[1] for row in sealed['rows']}
    counted = {name: sum(min(each, frequencies) for each in of_seeds) / len(of_seeds)
               for name, of_seeds in losses.items()}
    line = [sealed['thresholds'][0]] * 2
    series = [{'name': 'sealed threshold', 'group': 'prediction', 'x': line, 'style': 'dashed',
               'y': [min(counted.values()), frequencies]}]
    for arm in (each['name'] for each in STUDY['study']['arm']):
        names = [name for name in counted if name.startswith(f'{arm}, ') and similarity[name] is not None]
        if names:
            series.append({'name': arm, 'style': 'points', 'x': [similarity[name] for name in names],
                           'y': [counted[name] for name in names]})
    return {'id': 'initialization_law', 'title': 'Which models learn without a warm-up', 'kind': 'line',
            'caption': 'A point for each residual scheme, mean of two seeds; a run that failed counts with the loss of '
                       "the words' frequencies.",
            'x': {'label': 'mean cosine between tokens after the last layer, at initialization', 'log': False},
            'y': {'label': 'validation loss after 300 steps (nats per token)', 'log': False}, 'series': series,
            'notes': []}


def write(name, document):
    (FINDINGS / name).write_text(json.dumps(document))
    subprocess.run([sys.executable, ROOT / 'scripts/findings.py', FINDINGS / name], check=True)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('action', choices=['probe', 'predict', 'judge'])
    parser.add_argument('--data', help='directory that `plumb data` made')
    parser.add_argument('--probes', type=pathlib.Path, default=pathlib.Path('probes'))
    parser.add_argument('--results', type=pathlib.Path)
    parser.add_argument('--plumb', default='plumb')
    arguments = parser.parse_args()
    if arguments.action == 'judge':
        judge(json.loads(arguments.results.read_text()))
    else:
        branches = {name: probe(arguments, name, STUDY['model'] | settings, 8) for name, settings in models()}
        if arguments.action == 'predict':
            predict(branches)
