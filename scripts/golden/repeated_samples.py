#!/usr/bin/env python3
"""Reference values of SciPy and statsmodels for several samples of an item, for tests/judge/compare_test.cpp.

Writes tests/golden/repeated_samples.json: made-up samples of two models, 1 right and 0 wrong, 4 to 7 for each of 60
items that differ in difficulty; for the mean, pass@k, pass^k and flip rate both scores, the p-value of swapping items
and the 95% interval of a bootstrap of items; and the standard errors of the difference of means, over items and
samples and by the samples alone.

    pip install scipy statsmodels
    scripts/golden/repeated_samples.py
"""
import json
import pathlib

import numpy
import scipy.stats
import statsmodels.api

ROOT = pathlib.Path(__file__).resolve().parents[2]
ITEMS, K, DRAWS = 60, 4, 100000


def draw(generator):
    difficulty = generator.beta(0.8, 0.8, ITEMS)
    models = []
    for shift in (0.0, 0.08):
        counts = generator.integers(K, K + 4, ITEMS)
        models.append([[int(x) for x in generator.random(n) < min(p + shift, 1)] for n, p in zip(counts, difficulty)])
    return models


def chance(drawn, n, c):
    """P(all drawn samples are among c of n)."""
    return float(scipy.stats.hypergeom.pmf(drawn, n, c, drawn))


ESTIMATES = {
    'acc': numpy.mean,
    f'acc pass@{K}': lambda samples: 1 - chance(K, len(samples), len(samples) - sum(samples)),
    f'acc pass^{K}': lambda samples: chance(K, len(samples), sum(samples)),
    'acc flip rate': lambda samples: float(scipy.stats.hypergeom.pmf(1, len(samples), sum(samples), 2)),
}


def row(metric, models, generator):
    first, second = ([ESTIMATES[metric](samples) for samples in model] for model in models)
    difference = numpy.subtract(second, first)
    bootstrap = scipy.stats.bootstrap((difference,), numpy.mean, n_resamples=DRAWS, method='percentile', rng=generator)
    swaps = scipy.stats.permutation_test((second, first), lambda a, b, axis: abs(numpy.mean(a - b, axis=axis)),
                                         permutation_type='samples', alternative='greater', n_resamples=DRAWS,
                                         vectorized=True, rng=generator)
    interval = bootstrap.confidence_interval
    return {'metric': metric, 'first': numpy.mean(first), 'second': numpy.mean(second),
            'low': interval.low, 'high': interval.high, 'p_value': swaps.pvalue}


def standard_errors(models):
    """Over items and samples: weighted least squares with errors clustered by item. By samples: the items stay."""
    values, is_second, items, weights = [], [], [], []
    for second, model in enumerate(models):
        for item, samples in enumerate(model):
            values += samples
            is_second += [second] * len(samples)
            items += [item] * len(samples)
            weights += [1 / len(samples)] * len(samples)
    fit = statsmodels.api.WLS(values, statsmodels.api.add_constant(numpy.array(is_second, float)), weights=weights).fit(
        cov_type='cluster', cov_kwds={'groups': numpy.array(items), 'use_correction': False})
    of_means = [scipy.stats.sem(samples) ** 2 for model in models for samples in model]
    return float(fit.bse[1] * numpy.sqrt(ITEMS / (ITEMS - 1))), float(numpy.sqrt(sum(of_means)) / ITEMS)


def main():
    generator = numpy.random.default_rng(20)
    models = draw(generator)
    standard_error, sampling_error = standard_errors(models)
    document = {'first': models[0], 'second': models[1],
                'standard_error': standard_error, 'sampling_error': sampling_error,
                'rows': [row(metric, models, generator) for metric in ESTIMATES]}
    path = ROOT / 'tests' / 'golden' / 'repeated_samples.json'
    path.write_text(json.dumps(document) + '\n')


if __name__ == '__main__':
    main()
