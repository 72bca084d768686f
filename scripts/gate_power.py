#!/usr/bin/env python3
"""How often the gate of `plumb judge --gate` errs, beside "keep if lower" and a t-test, in simulated series.

  gate_power.py --out docs/findings/gate_power.json      a minute
  gate_power.py --reference > tests/golden/gate/series.csv      the runs and answers of tests/judge/gate_test.cpp

The rule is written here anew, for many series at once, from docs/verdicts.md. It needs NumPy.
"""
import argparse
import functools
import json
import math
import pathlib

import numpy

FIRST, NEWER, STALE, HOPELESS, MOST_DEGREES = 3, 3, 10, 0.02, 200
NOISES = ['normal', 't3', 'ends early']


def tail(t, degrees):
    """P(T > t), t ≥ 0: half of the regularized incomplete beta function at ν/(ν + t²), by its continued fraction."""
    a, b = numpy.asarray(degrees, float) / 2, 0.5
    x = 2 * a / (2 * a + numpy.square(t))
    log_beta = numpy.vectorize(math.lgamma)(a) + math.lgamma(b) - numpy.vectorize(math.lgamma)(a + b)
    swap = x > (a + 1) / (a + b + 2)
    p, q, y = numpy.where(swap, b, a), numpy.where(swap, a, b), numpy.where(swap, 1 - x, x)
    front = numpy.exp(p * numpy.log(numpy.maximum(y, 1e-300)) + q * numpy.log1p(-y) - log_beta) / p
    c, d = numpy.ones_like(y), 1 / (1 - (p + q) * y / (p + 1))
    f = d.copy()
    for i in range(1, 50):
        for factor in (i * (q - i) * y / ((p + 2 * i - 1) * (p + 2 * i)),
                       -(p + i) * (p + q + i) * y / ((p + 2 * i) * (p + 2 * i + 1))):
            d = 1 / (1 + factor * d)
            c = 1 + factor / c
            f = f * c * d
    share = front * f
    return numpy.where(swap, 1 - share, share) / 2


LOG_LEVELS = numpy.linspace(math.log(1e-12), math.log(0.49), 120)


@functools.cache
def table():
    """t with P(T > t) = level, [degree − 1][level]."""
    degrees = numpy.arange(1, MOST_DEGREES + 1)[:, None]
    low, high = numpy.zeros((MOST_DEGREES, 120)), numpy.full((MOST_DEGREES, 120), 30.0)
    for _ in range(45):  # of the logarithm of 1 + t
        middle = (low + high) / 2
        above = tail(numpy.expm1(middle), degrees) > numpy.exp(LOG_LEVELS)
        low, high = numpy.where(above, middle, low), numpy.where(above, high, middle)
    return high


def quantile(level, degrees):
    at = (numpy.log(level) - LOG_LEVELS[0]) / (LOG_LEVELS[1] - LOG_LEVELS[0])
    i = numpy.clip(at.astype(int), 0, 118)
    row = numpy.clip(degrees, 1, MOST_DEGREES).astype(int) - 1
    t = table()
    return numpy.expm1(t[row, i] + (at - i) * (t[row, i + 1] - t[row, i]))


def moments(values, counted):
    """Mean and sum of squares along the last axis."""
    count = counted.sum(-1)
    mean = numpy.where(counted, values, 0).sum(-1) / numpy.maximum(count, 1)
    return mean, numpy.where(counted, numpy.square(values - mean[:, None]), 0).sum(-1)


class Series:
    """Some series at once, in which every candidate is a change of the best so far."""

    def __init__(self, count, candidates, noise, effects, drift, random, error=0.05, seeds=12, expected=100):
        self.count, self.candidates, self.noise, self.drift, self.random = count, candidates, noise, drift, random
        self.error, self.seeds, self.expected = error, seeds, expected
        self.effects = effects  # [series][candidate]: by how much the candidate is better
        self.mean = numpy.zeros(count)  # of the best
        self.digits = None  # of the values
        self.trace = []  # of the first series: the candidate, the arm that ran, its value, and what the gate said
        self.time = numpy.zeros(count)

    def run(self, means):
        x = self.random.standard_normal(self.count)
        if self.noise == 't3':
            x = self.random.standard_t(3, self.count) / math.sqrt(3)
        if self.noise == 'ends early':  # a quarter of the runs does, and is the worse the earlier it ends
            x = x + (self.random.random(self.count) < 0.25) * self.random.random(self.count) * 3
        self.time += 1
        values = means + x - self.drift * self.time / 100
        return values if self.digits is None else numpy.round(values, self.digits)

    def spent(self, n):
        return numpy.where(n < FIRST, 0, (numpy.minimum(n, self.seeds) / self.seeds) ** 3)

    def gate(self):
        """[series][candidate]: kept; and the number of runs of each series."""
        size, rows = self.count, numpy.arange(self.count)
        width = 64
        best, m = numpy.zeros((size, width)), numpy.zeros(size, int)
        own, n = numpy.zeros((size, self.seeds)), numpy.zeros(size, int)
        k, newest = numpy.ones(size, int), numpy.zeros(size, int)  # the candidate; the arms at the best's last run
        looked, newer = numpy.zeros(size, int), numpy.zeros(size, int)
        squares = numpy.zeros((size, self.candidates + 2))
        degrees = numpy.zeros((size, self.candidates + 2), int)
        was_best = numpy.zeros((size, self.candidates + 2), bool)
        was_best[:, 0], best_is = True, numpy.zeros(size, int)
        kept = numpy.zeros((size, self.candidates), bool)
        of_best = numpy.ones(size, bool)  # who runs next
        active, runs = numpy.ones(size, bool), numpy.zeros(size, int)
        while active.any():
            runs += active
            effect = self.effects[rows, numpy.minimum(k, self.candidates) - 1]
            values = self.run(self.mean - numpy.where(of_best, 0, effect))
            to_best, to_own = active & of_best, active & ~of_best
            ran = (int(k[0]), int(best_is[0] if of_best[0] else k[0]), float(values[0]))
            if m.max() == best.shape[1]:
                best = numpy.concatenate([best, numpy.zeros((size, width))], 1)
            best[rows[to_best], m[to_best]] = values[to_best]
            own[rows[to_own], n[to_own]] = values[to_own]
            m, n = m + to_best, n + to_own
            newest = numpy.where(to_best, k + (n > 0), newest)
            newer = newer + (to_best & (n > 0))
            in_best, in_own = numpy.arange(best.shape[1]) < m[:, None], numpy.arange(self.seeds) < n[:, None]
            best_mean, best_squares = moments(best, in_best)
            own_mean, own_squares = moments(own, in_own)
            squares[rows, best_is], degrees[rows, best_is] = best_squares, numpy.maximum(m - 1, 0)
            squares[rows, k], degrees[rows, k] = own_squares, numpy.maximum(n - 1, 0)

            def common():
                usual, free = (squares * was_best).sum(1), (degrees * was_best).sum(1)
                most = numpy.where(free < 5, 1e300, 9 * usual / numpy.maximum(free, 1))
                like = ~was_best & (squares <= most[:, None] * degrees)
                free = free + (degrees * like).sum(1)
                return (usual + (squares * like).sum(1)) / numpy.maximum(free, 1), free
            variance, free = common()

            # Drift: the latest three runs of the best, and those before.
            may = to_best & (m >= 2 * FIRST)
            if may.any():
                latest = in_best & (numpy.arange(best.shape[1]) >= (m - 3)[:, None])
                late, late_squares = moments(best, latest)
                before = (best_mean * m - 3 * late) / numpy.maximum(m - 3, 1)
                before_squares = moments(best, in_best & ~latest)[1]
                within = (variance * free - best_squares + before_squares + late_squares) / numpy.maximum(free - 1, 1)
                error = numpy.sqrt(within * (1 / 3 + 1 / numpy.maximum(m - 3, 1)))
                drifted = may & (abs(late - before) > quantile(numpy.full(size, 0.005), free - 1) * error)
                for i in rows[drifted]:
                    best[i, :3] = best[i, m[i] - 3:m[i]].copy()
                m = numpy.where(drifted, 3, m)
                newer = numpy.minimum(newer, m)
                best_mean, best_squares = (numpy.where(drifted, late, best_mean),
                                           numpy.where(drifted, late_squares, best_squares))
                squares[rows, best_is], degrees[rows, best_is] = best_squares, numpy.maximum(m - 1, 0)
                in_best = numpy.arange(best.shape[1]) < m[:, None]
                variance, free = common()

            arms = k + 1  # with this candidate
            wants_best = (m < FIRST) | (arms - newest > STALE) | ((n > 0) & (m < n))
            look = active & ~wants_best & (n > 0) & (n > looked)
            own_variance = numpy.maximum(variance, own_squares / numpy.maximum(n - 1, 1))
            best_variance = numpy.maximum(variance, best_squares / numpy.maximum(m - 1, 1))
            these = numpy.where((n > 1) & (own_variance > 2.25 * variance), numpy.minimum(free, n - 1), free)
            these = numpy.where(best_variance > 2.25 * variance, numpy.minimum(these, m - 1), these)
            these = numpy.clip(these, 1, MOST_DEGREES)
            n1, m1 = numpy.maximum(n, 1), numpy.maximum(m, 1)
            squared = own_variance / n1 + best_variance / m1
            gain = best_mean - own_mean
            candidate_error = self.error * self.expected / ((self.expected + k - 1.0) * (self.expected + k))
            level = candidate_error * (self.spent(numpy.maximum(n, FIRST)) - self.spent(looked))
            level = numpy.where(look, level, 0.1)
            passes = look & (n >= FIRST) & (gain > quantile(level, these) * numpy.sqrt(squared))
            confirmed = passes & (newer >= NEWER)
            if confirmed.any():
                new = in_best & (numpy.arange(best.shape[1]) >= (m - newer)[:, None])
                new_mean, new_squares = moments(best, new)
                new_variance = numpy.maximum(variance, new_squares / numpy.maximum(newer - 1, 1))
                there = numpy.where((n > 1) & (own_variance > 2.25 * variance), numpy.minimum(free, n - 1), free)
                there = numpy.where(new_variance > 2.25 * variance, numpy.minimum(there, newer - 1), there)
                error = numpy.sqrt(own_variance / n1 + new_variance / numpy.maximum(newer, 1))
                t = quantile(numpy.full(size, 0.05), numpy.clip(there, 1, MOST_DEGREES))
                confirmed &= new_mean - own_mean > t * error
            waits = passes & (newer < NEWER)
            open_ = look & ~confirmed & ~waits
            looked = numpy.where(open_, n, looked)
            # Hopeless: the last look, as predicted from this one.
            more = numpy.maximum(self.seeds - m, 0)
            last = own_variance / self.seeds + best_variance / (m1 + more)
            at_last = candidate_error * (1 - self.spent(self.seeds - 1))
            at_end = numpy.clip(these + self.seeds - n + more, 1, MOST_DEGREES)
            need = quantile(at_last, at_end) * numpy.sqrt(last) - gain
            t = need / numpy.sqrt(numpy.maximum(squared - last, 1e-12))
            beyond = numpy.where(t > 0, tail(numpy.clip(abs(t), 1e-9, 1e6), these), 1)
            rejected = open_ & ((n >= self.seeds) | (beyond < HOPELESS))
            of_best = wants_best | waits

            if active[0]:
                said = 'keep' if confirmed[0] else 'reject' if rejected[0] else int(best_is[0] if of_best[0] else k[0])
                self.trace.append((*ran, said))
            done = confirmed | rejected
            if done.any():
                kept[rows[confirmed], k[confirmed] - 1] = True
                self.mean = numpy.where(confirmed, self.mean - effect, self.mean)
                for i in rows[confirmed]:
                    best[i, :n[i]], m[i] = own[i, :n[i]], n[i]
                    was_best[i, k[i]], best_is[i], newest[i] = True, k[i], k[i] + 1
                k = k + done
                n, looked, newer = (numpy.where(done, 0, x) for x in (n, looked, newer))
                active &= k <= self.candidates
                k = numpy.minimum(k, self.candidates + 1)
                of_best = numpy.where(done, (k + 1 - newest > STALE) | (m < FIRST), of_best)
        return kept, runs

    def keep_if_lower(self):
        kept = numpy.zeros((self.count, self.candidates), bool)
        record = self.run(self.mean)
        for k in range(self.candidates):
            value = self.run(self.mean - self.effects[:, k])
            kept[:, k] = value < record
            record = numpy.minimum(value, record)
            self.mean = self.mean - kept[:, k] * self.effects[:, k]
        return kept, numpy.full(self.count, self.candidates + 1)

    def t_test(self):
        """Three seeds of each, and Student's t at 5%."""
        kept = numpy.zeros((self.count, self.candidates), bool)
        best = numpy.stack([self.run(self.mean) for _ in range(3)])
        for k in range(self.candidates):
            values = numpy.stack([self.run(self.mean - self.effects[:, k]) for _ in range(3)])
            error = numpy.sqrt((best.var(0, ddof=1) + values.var(0, ddof=1)) / 3)
            kept[:, k] = best.mean(0) - values.mean(0) > 2.1318 * error
            best = numpy.where(kept[:, k], values, best)
            self.mean = self.mean - kept[:, k] * self.effects[:, k]
        return kept, numpy.full(self.count, 3 * self.candidates + 3)


def effects_of(count, candidates, mixed, random):
    """Of 100 candidates: 70 change nothing, 18 are worse by one deviation, and 4 each are better by 1, 2 and 3."""
    if not mixed:
        return numpy.zeros((count, candidates))
    return random.choice([0.0, -1, 1, 2, 3], p=[0.70, 0.18, 0.04, 0.04, 0.04], size=(count, candidates))


def simulate(case, **rule):
    name, noise, drift, mixed, count, candidates = case
    rows = []
    for way in ('gate', 'keep_if_lower', 't_test'):
        random = numpy.random.default_rng(1)
        effects = effects_of(count, candidates, mixed, random)
        kept, runs = getattr(Series(count, candidates, noise, effects, drift, random, **rule), way)()
        false = kept & (effects <= 0)
        row = {'case': name, 'rule': way, 'series': count, 'candidates': candidates,
               'series_with_a_false_one': round(100 * float(false.any(1).mean()), 1),
               'false_per_100': round(100 * float(false.mean()), 3),
               'runs_per_candidate': round(float(runs.mean()) / candidates, 2)}
        for size in (1, 2, 3) if mixed else ():
            row[f'missed_of_{size}'] = round(100 * float((~kept)[effects == size].mean()), 1)
        rows.append(row)
    return rows


# Name, noise, drift, whether some candidates are better or worse, series, candidates of each.
CASES = [('no candidate is better', 'normal', 0, False, 24, 1000), ('normal', 'normal', 0, True, 40, 250),
         ("Student's t, 3 degrees", 't3', 0, True, 40, 250),
         ('a quarter of the runs ends early', 'ends early', 0, True, 40, 250),
         ('values fall by a deviation in 100 runs', 'normal', 1, True, 40, 250),
         ('values rise by a deviation in 100 runs', 'normal', -1, True, 40, 250)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', type=pathlib.Path)
    parser.add_argument('--reference', action='store_true')
    arguments = parser.parse_args()
    if arguments.reference:
        random = numpy.random.default_rng(7)
        series = Series(1, 80, 'normal', effects_of(1, 80, True, random) * 2, 1, random)
        series.digits = 4
        series.gate()
        print('candidate,arm,loss,next')
        for row in series.trace:
            print(*row, sep=',')
        return
    rows = [row for case in CASES for row in simulate(case)]
    for row in rows:
        print(*row.values(), sep=' | ')
    if arguments.out:
        arguments.out.write_text(json.dumps({'schema': 'plumb.gate_power/1', 'rows': rows}, indent=1) + '\n')


if __name__ == '__main__':
    main()
