#!/usr/bin/env python3
"""Branch and stream, predicted and measured, of a translator in every residual scheme with five initializations.

  branches.py --data DIR --probes DIR    writes docs/findings/branches.json, which has the form of a study's results

DIR has Multi30k: plumb data prepare --train multi30k/train.de multi30k/train.en --valid multi30k/val.de multi30k/val.en
--vocabulary 2000 --tokenizer-sample 5000. `plumb report` draws the figures, from a directory with it as results.json.
"""
import argparse
import math
import pathlib

from initialization_law import NUMBERS, SCHEMES, number, probe, write

INITIALIZATIONS = ['xavier-uniform', 'fairseq', 'small-init', 'gpt-2', 't-fixup']
TRANSLATOR = {'d_model': 128, 'feed_forward': 256, 'heads': 4, 'encoder_layers': 4, 'decoder_layers': 4}
LEAST = 0.01  # smaller ratios are not compared: such a branch is nothing beside the stream
ERRORS = ['difference of similarities', 'in', 'factor between ratios', 'in', 'sub-layers without a prediction']


def rounded(values):
    return [None if each == math.inf else round(each, 4) if isinstance(each, float) else each for each in values]


def worst(branches):
    """The largest errors of the recursion, each with its sub-layer, and the number of sub-layers without a prediction."""
    known = [each for each in branches if each['predicted'] and None not in each['predicted'].values()
             and None not in (each['ratio']['mean'], each['similarity']['mean'])]
    similarities = [(abs(each['similarity']['mean'] - each['predicted']['similarity']), each['name']) for each in known]
    ratios = [(each['ratio']['mean'], each['predicted']['ratio'], each['name']) for each in known]
    factors = [(math.exp(abs(math.log(a / b))), name) for a, b, name in ratios if min(a, b) > LEAST]
    return rounded([*max(similarities, default=(None, None)), *max(factors, default=(None, None)),
                    len(branches) - len(known)])


def figure(name, title, label, rows, at, ends, log):
    """What was measured against what was predicted, from two columns of the table."""
    series = [{'name': 'equal', 'group': 'prediction', 'x': ends, 'y': ends, 'style': 'dashed'}]
    for initialization in INITIALIZATIONS:
        drawn = [row for row in rows if row[1] == initialization and None not in row[at:at + 2]
                 and all(ends[0] <= each <= ends[1] for each in row[at:at + 2])]
        series.append({'name': initialization, 'style': 'points', 'x': [row[at + 1] for row in drawn],
                       'y': [row[at] for row in drawn]})
    missing = len(rows) - sum(len(each['x']) for each in series[1:])
    return {'id': name, 'title': title, 'caption': 'A point for each stack of each model.', 'kind': 'line',
            'x': {'label': f'{label}, predicted', 'log': log}, 'y': {'label': f'{label}, measured', 'log': log},
            'series': series, 'notes': [f'{missing} of {len(rows)} are not drawn.']}


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data')
    parser.add_argument('--probes', type=pathlib.Path, default=pathlib.Path('probes'))
    parser.add_argument('--plumb', default='plumb')
    arguments = parser.parse_args()
    rows, by_scheme = [], {each: [] for each in SCHEMES}
    for initialization in INITIALIZATIONS:
        for scheme in SCHEMES:
            model = TRANSLATOR | {'residual': scheme, 'initialization': initialization}
            branches = probe(arguments, f'translator, {initialization}, {scheme}', model, 40)
            for stack in ('encoder', 'decoder'):
                of_stack = [each for each in branches if each['name'].startswith(stack)]
                numbers = rounded([number(of_stack, *each) for each in NUMBERS])
                rows.append([scheme, initialization, stack, *numbers, *worst(of_stack)])
            by_scheme[scheme] += [each | {'name': f"{initialization}, {each['name']}"} for each in branches]
    write('branches.json', {
        'schema': 'plumb.study/1', 'title': 'Branch and stream, predicted and measured',
        'subtitle': 'A translator of 4+4 layers at initialization, 40 pairs of Multi30k, two seeds',
        'figures': [figure('branch_similarity', 'How similar tokens become',
                           'mean cosine between tokens after the stack', rows, 3, [0, 1], False),
                    figure('branch_ratio', 'What branches add', 'branch / stream, summed over the stack', rows, 5,
                           [0.01, 100], True)],
        'tables': [{'id': 'branches', 'title': 'By residual scheme and initialization',
                    'caption': 'Similarity after the last layer, ratios summed, and the worst of all sub-layers.',
                    'columns': ['residual scheme', 'initialization', 'stack', 'similarity, measured', 'predicted',
                                'ratios, measured', 'predicted', *ERRORS], 'rows': rows},
                   {'id': 'worst', 'title': 'Worst cases by residual scheme',
                    'caption': 'Over all initializations and sub-layers.', 'columns': ['residual scheme', *ERRORS],
                    'rows': [[scheme, *worst(branches)] for scheme, branches in by_scheme.items()]}]})
