#!/usr/bin/env python3
"""How cost grows, and where the time of a step goes: times Plumb over a range of each size, fits the exponent and finds
where it bends; and times each operation of training steps beside the limit that binds it. Writes the tables of
docs/performance.md and the figures beside it."""
import argparse
import dataclasses
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'bench' / 'race'))
sys.dont_write_bytecode = True

import machine  # noqa: E402
from contestants import Failed, Plumb  # noqa: E402

Points = list[tuple[float, float]]  # size, seconds


@dataclasses.dataclass
class Growth:
    title: str
    size: str
    cost: str  # what the seconds are for
    points: Points


def exponents(points: Points) -> list[tuple[float, float]]:
    """Of the cost as a power of the size, between neighbors: (geometric mean of the sizes, exponent)."""
    return [(math.sqrt(a * b), math.log(t / s) / math.log(b / a)) for (a, s), (b, t) in zip(points, points[1:])]


def bend(points: Points) -> float | None:
    """The size at which two lines meet that fit the logarithms best; None unless their exponents differ by 0.2."""
    logs = [(math.log(x), math.log(y)) for x, y in points]

    def line(part: Points) -> tuple[float, float, float]:  # slope, intercept, squared error
        mean_x, mean_y = (sum(values) / len(part) for values in zip(*part))
        slope = sum((x - mean_x) * (y - mean_y) for x, y in part) / sum((x - mean_x) ** 2 for x, _ in part)
        error = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in part)
        return slope, mean_y - slope * mean_x, error

    splits = [(line(logs[:i]), line(logs[i:])) for i in range(2, len(logs) - 1)]
    if not splits:
        return None
    (a, b, _), (c, d, _) = min(splits, key=lambda pair: pair[0][2] + pair[1][2])
    if abs(a - c) < 0.2:
        return None
    crossing = math.exp((b - d) / (c - a))
    return crossing if points[0][0] < crossing < points[-1][0] else None


class Work:
    """Runs the program on sizes that grow."""

    def __init__(self, program: str, threads: int, directory: pathlib.Path, largest: float) -> None:
        self.plumb, self.directory, self.largest = Plumb(program, threads), directory, largest

    def sizes(self, *values: float) -> list[float]:
        """Those up to --largest times the smallest."""
        return [value for value in values if value <= self.largest * values[0]]

    def seconds(self, *arguments: str | int | float | pathlib.Path) -> float:
        command = [self.plumb.program, *map(str, arguments), '--threads', str(self.plumb.threads), '--quiet']
        print('  ' + ' '.join(command), file=sys.stderr, flush=True)
        begin = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise Failed(f'{" ".join(command)} ended with status {done.returncode}\n{done.stderr}')
        return time.perf_counter() - begin

    def decoder(self, **sizes: int) -> float:
        usual = {'d_model': 256, 'feed_forward': 1024, 'heads': 4, 'layers': 4, 'vocabulary': 4096, 'texts': 8,
                 'length': 256}
        options = [str(word) for name, value in {**usual, **sizes}.items()
                   for word in ('--' + name.replace('_', '-'), value)]
        return float(self.plumb.bench(['decoder', *options])['seconds_per_step'])

    def attention(self, kind: str, length: int) -> Points:
        lengths = self.plumb.bench(['attention', '--kind', kind, '--length', str(length)])['lengths']
        return [(each['length'], each['gradient_seconds']) for each in lengths]

    def corpus(self, lines: int) -> pathlib.Path:
        text = self.directory / 'text'
        if not text.with_suffix('.en').exists():
            self.seconds('data', 'synthesize', '--raw', text, '--pairs', 100_000)
        whole = text.with_suffix('.en').read_text(encoding='utf-8').splitlines(keepends=True)
        part = self.directory / f'{lines}.txt'
        with part.open('w', encoding='utf-8') as file:
            for begin in range(0, lines, len(whole)):
                file.writelines(whole[:min(len(whole), lines - begin)])
        return part

    def run(self) -> pathlib.Path:
        """A small language model, hardly trained."""
        data, run = self.directory / 'data', self.directory / 'run'
        if not run.exists():
            self.seconds('data', 'text', '--train', self.corpus(20_000), '--out', data, '--vocabulary', 1000)
            self.train(run, 1, 2)
        return run

    def train(self, run: pathlib.Path, processes: int, steps: int) -> list[float]:
        """Tokens per second of each step."""
        settings = {'model.kind': 'decoder', 'model.d_model': 256, 'model.feed_forward': 1024, 'train.steps': steps,
                    'train.batch_tokens': 16384, 'train.log_every': 1, 'train.score_every': -1,
                    'train.validate_every': 1000, 'train.processes': processes}
        self.seconds('train', '--data', self.directory / 'data', '--out', run,
                     *(word for key, value in settings.items() for word in ('--set', f'{key}={value}')))
        lines = (run / 'metrics.jsonl').read_text(encoding='utf-8').splitlines()
        points = [json.loads(line) for line in lines]
        return [float(point['tokens_per_second']) for point in points if 'tokens_per_second' in point]

    def per_token(self, processes: int) -> float:
        self.run()
        rates = sorted(self.train(self.directory / f'run-{processes}', processes, 8)[1:])
        return 1 / rates[len(rates) // 2]

    def spectrum(self, steps: int) -> float:
        return self.seconds('spectrum', self.run(), '--steps', steps, '--pairs', 4, '--json',
                            self.directory / 'spectrum.json')

    def evaluation(self, items: int) -> float:
        run = self.run()
        file = self.directory / f'{items}.jsonl'
        sentences = (self.directory / 'text.en').read_text(encoding='utf-8').split('\n')[:items]
        with file.open('w', encoding='utf-8') as out:
            for sentence in sentences:
                words = sentence.split()
                out.write(json.dumps({'context': ' '.join(words[:-1]), 'choices': [words[-1], words[0].lower()],
                                      'gold': 0}) + '\n')
        return self.seconds('evaluate', run, '--tasks', file, '--json', self.directory / 'scores.json')

    def preparation(self, lines: int) -> float:
        out, text = self.directory / f'prepared-{lines}', self.corpus(lines)
        seconds = self.seconds('data', 'text', '--train', text, '--out', out, '--vocabulary', 8000)
        for path in [*out.rglob('*'), text]:
            if path.is_file():
                path.unlink()
        return seconds


def works(work: Work) -> list[tuple[str, str, str, Callable[[], Points]]]:
    def over(sizes: list[float], seconds: Callable[[int], float]) -> Callable[[], Points]:
        return lambda: [(size, seconds(int(size))) for size in sizes]

    def wide(d: int) -> float:
        return work.decoder(d_model=d, feed_forward=4 * d, heads=max(1, d // 64))

    return [
        ('width', 'd_model', 'training step, 4 layers, 2,048 tokens', over(work.sizes(64, 128, 256, 512, 1024, 2048), wide)),
        ('depth', 'layers', 'training step, d 256, 2,048 tokens',
         over(work.sizes(1, 2, 4, 8, 16, 32, 64), lambda n: work.decoder(layers=n))),
        ('vocabulary', 'tokens of the vocabulary', 'training step, 4 layers, d 256, 2,048 tokens',
         over(work.sizes(1024, 4096, 16384, 65536, 262144), lambda n: work.decoder(vocabulary=n))),
        ('length, softmax', 'tokens of a sequence', 'causal self-attention with gradient, d 256',
         lambda: work.attention('softmax', int(work.sizes(64, 128, 16384)[-1]))),
        ('length, linear', 'tokens of a sequence', 'linear self-attention with gradient, d 256',
         lambda: work.attention('linear', int(work.sizes(64, 128, 65536)[-1]))),
        ('processes', 'processes on these cores', 'training, per token: decoder, 4 layers, d 256',
         over(work.sizes(1, 2, 4, 8), work.per_token)),
        ('Lanczos', 'steps', '`plumb spectrum`, 3.4 million parameters, 4 blocks of 256 tokens',
         over(work.sizes(10, 20, 40, 80, 160, 320, 640), work.spectrum)),
        ('evaluation', 'items', '`plumb evaluate`, two choices each, the same model',
         over(work.sizes(100, 300, 1000, 3000, 10000, 30000, 100000), work.evaluation)),
        ('data', 'lines', '`plumb data text`, 8,000 tokens learned from them',
         over(work.sizes(10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000), work.preparation)),
    ]


def in_seconds(value: float) -> str:
    if value >= 999.5:
        return f'{value:,.0f} s'
    for unit, name in [(1, 's'), (1e-3, 'ms'), (1e-6, 'µs')]:
        if value >= unit or unit == 1e-6:
            return f'{value / unit:.3g} {name}'
    return ''


def table(found: list[Growth], about: str) -> str:
    rows = ['| over | cost | smallest | largest | exponent at first | at last | bends at |',
            '| --- | --- | --- | --- | --- | --- | --- |']
    for each in found:
        (first, quick), (last, slow) = each.points[0], each.points[-1]
        slopes, corner = exponents(each.points), bend(each.points)
        rows.append(f'| {each.size} | {each.cost} | {first:,.0f}: {in_seconds(quick)} | {last:,.0f}: {in_seconds(slow)} '
                    f'| {slopes[0][1]:.2f} | {slopes[-1][1]:.2f} | {f"{corner:,.0f}" if corner else ""} |')
    return f'{about}\n\n' + '\n'.join(rows) + '\n\n![How cost grows](growth.svg)'


STEPS = {'6+6 layers, d 512, FFN 1024, vocabulary 10,000, 64 × 32 tokens': ['train'],
         '4+4 layers, d 128, FFN 256, 128 × 32 tokens':
             ['train', '--d-model', '128', '--feed-forward', '256', '--layers', '4', '--sentences', '128'],
         'decoder with 42 million parameters: 8 layers, d 512, vocabulary 32,000, 4 × 1,024 tokens': ['decoder']}
LEAST = 0.02  # of a step: a part below it is drawn with the others


def shown_parts(profile: dict) -> list[dict]:
    """The parts above LEAST, then the sum of the others."""
    parts = [part for part in profile['parts'] if part['seconds'] > LEAST * profile['seconds'] and 'share' in part]
    rest = profile['seconds'] - sum(part['seconds'] for part in parts)
    return [*parts, {'name': 'all others', 'seconds': rest}]


def profile_table(profiles: dict[str, dict], about: str) -> str:
    rows = ['| step | operation | of the step | of its limit |', '| --- | --- | --- | --- |']
    for step, profile in profiles.items():
        rate = profile['operations'] / profile['seconds'] / profile['peak_rate']
        rows.append(f'| {step} | all: {in_seconds(profile["seconds"])} | 100% | {rate:.0%} of arithmetic |')
        for part in shown_parts(profile):
            limit = f'{part["share"]:.0%} of {part["limit"]}' if 'share' in part else ''
            rows.append(f'| | {part["name"]} | {part["seconds"] / profile["seconds"]:.1%} | {limit} |')
    return f'{about}\n\n' + '\n'.join(rows) + '\n\n![Time by operation](profile.svg)'


def profile_figure(profiles: dict[str, dict]) -> str:
    """A bar for each operation; its dark part is the time that its limit would take."""
    left, width, line = 200, 500, 18
    parts, y = [], 20
    for step, profile in profiles.items():
        parts.append(f'<text x="8" y="{y}" font-weight="bold">{step}: {in_seconds(profile["seconds"])}</text>')
        for part in shown_parts(profile):
            y += line
            length = part['seconds'] / profile['seconds'] * width
            needed = min(part.get('share', 0), 1) * length
            color = {'memory': '#2ca02c', 'arithmetic': '#1f77b4'}.get(part.get('limit', ''), '#999')
            parts.append(f'<text x="{left - 6}" y="{y}" text-anchor="end">{part["name"]}</text>'
                         f'<rect x="{left}" y="{y - 11}" width="{length:.1f}" height="13" fill="{color}" opacity="0.35"/>'
                         f'<rect x="{left}" y="{y - 11}" width="{needed:.1f}" height="13" fill="{color}"/>'
                         f'<text x="{left + length + 5:.1f}" y="{y}">{part["seconds"] / profile["seconds"]:.0%}</text>')
        y += 2 * line
    parts.append(f'<text x="8" y="{y}">Dark: what the limit would take, arithmetic in blue, memory in green. All others: below '
                 f'{LEAST:.0%} each, or unknown.</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 60} {y + 12}">'
            f'<style>text{{font:12px sans-serif;fill:#333}}</style><rect width="100%" height="100%" fill="#fff"/>'
            f'{"".join(parts)}</svg>\n')


def put(page: pathlib.Path, name: str, text: str) -> None:
    """Replaces what stands between the two comments with this name."""
    begin, end = f'<!-- bench_figures.py: {name} -->', f'<!-- bench_figures.py: end of {name} -->'
    old = page.read_text(encoding='utf-8')
    if old.count(begin) != 1 or old.count(end) != 1:
        sys.exit(f'bench_figures.py: {page} has no place for the {name}: {begin} and {end}')
    before, rest = old.split(begin)
    page.write_text(f'{before}{begin}\n{text}\n{end}{rest.split(end)[1]}', encoding='utf-8')


def figure(found: list[Growth]) -> str:
    """Panels with logarithmic axes; the dotted line is proportional to the size."""
    width, height, left, top, columns = 250, 190, 48, 24, 3
    inner_width, inner_height = width - left - 12, height - top - 40
    parts = []
    for index, each in enumerate(found):
        x0, y0 = (index % columns) * width + left, (index // columns) * height + top
        logs = [(math.log10(x), math.log10(y)) for x, y in each.points]
        low_x, high_x = logs[0][0], logs[-1][0]
        low_y, high_y = math.floor(min(y for _, y in logs)), math.ceil(max(y for _, y in logs))

        def place(point: tuple[float, float]) -> str:
            across = x0 + (point[0] - low_x) / (high_x - low_x) * inner_width
            return f'{across:.1f},{y0 + (high_y - point[1]) / (high_y - low_y) * inner_height:.1f}'

        parts.append(f'<text x="{x0}" y="{y0 - 8}" font-weight="bold">{each.title}</text>'
                     f'<rect x="{x0}" y="{y0}" width="{inner_width}" height="{inner_height}" class="frame"/>')
        for decade in range(low_y, high_y + 1):
            y = float(place((low_x, decade)).split(',')[1])
            parts.append(f'<path d="M{x0} {y}h{inner_width}" class="grid"/>'
                         f'<text x="{x0 - 4}" y="{y + 4}" text-anchor="end">{in_seconds(10.0 ** decade)}</text>')
        for value, anchor in [(each.points[0][0], 'start'), (each.points[-1][0], 'end')]:
            x = x0 if anchor == 'start' else x0 + inner_width
            parts.append(f'<text x="{x}" y="{y0 + inner_height + 14}" text-anchor="{anchor}">{value:,.0f}</text>')
        parts.append(f'<text x="{x0 + inner_width / 2}" y="{y0 + inner_height + 28}" text-anchor="middle">{each.size}</text>')
        steepest = min(high_y, logs[-1][1])
        begin = max(low_y, steepest - (high_x - low_x))
        parts.append(f'<path d="M{place((high_x - (steepest - begin), begin))}L{place((high_x, steepest))}" class="line"/>')
        parts.append(f'<polyline points="{" ".join(map(place, logs))}" class="cost"/>')
        parts += [f'<circle cx="{p.split(",")[0]}" cy="{p.split(",")[1]}" r="2.5"/>' for p in map(place, logs)]
    size = f'{columns * width} {(len(found) + columns - 1) // columns * height}'
    style = ('text{font:11px sans-serif;fill:#333}.frame{fill:none;stroke:#888}.grid{stroke:#ddd}'
             '.line{stroke:#888;stroke-dasharray:2 3}.cost{fill:none;stroke:#1f77b4;stroke-width:1.5}circle{fill:#1f77b4}')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}"><style>{style}</style>'
            f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--plumb', default='build/plumb')
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--only', default='', help='titles, separated by semicolons')
    parser.add_argument('--largest', type=float, default=math.inf, help='ratio of the largest size to the smallest')
    parser.add_argument('--json', type=pathlib.Path, help='also keeps what an earlier call with --only measured')
    parser.add_argument('--page', type=pathlib.Path, help='page whose tables are replaced; figures are put beside it')
    options = parser.parse_args()
    growths: dict[str, Growth] = {}
    profiles: dict[str, dict] = {}
    if options.json and options.json.exists():
        known = json.loads(options.json.read_text(encoding='utf-8'))
        growths = {each['title']: Growth(**each) for each in known['growth']}
        profiles = known['profiles']

    def keep() -> None:
        if options.json:
            known = {'growth': [dataclasses.asdict(each) for each in growths.values()], 'profiles': profiles}
            options.json.write_text(json.dumps(known, indent=1) + '\n', encoding='utf-8')

    def wanted(title: str) -> bool:
        return not options.only or title in options.only.split(';')

    with tempfile.TemporaryDirectory() as directory:
        work = Work(options.plumb, options.threads, pathlib.Path(directory), options.largest)
        all_works = works(work)
        for step, command in STEPS.items() if wanted('profile') else []:
            profiles[step] = work.plumb.bench([*command, '--profile'])['profile']
            keep()
        for title, size, cost, measure in all_works:
            if wanted(title):
                growths[title] = Growth(title, size, cost, measure())
                print(f'{title}: ' + ', '.join(f'{x:,.0f} {in_seconds(y)}' for x, y in growths[title].points), flush=True)
                keep()
    if options.page:
        missing = [title for title, *_ in all_works if len(growths[title].points if title in growths else []) < 4]
        missing += [step for step in STEPS if step not in profiles]
        if missing:
            sys.exit('bench_figures.py: the page is left as it is, since these are not measured: ' + '; '.join(missing))
        about = f'Machine: {machine.sentence(machine.describe())}; {options.threads} threads.'
        found = [growths[title] for title, *_ in all_works]
        profiles = {step: profiles[step] for step in STEPS}
        put(options.page, 'growth', table(found, about))
        put(options.page, 'profiles', profile_table(profiles, about))
        (options.page.parent / 'growth.svg').write_text(figure(found), encoding='utf-8')
        (options.page.parent / 'profile.svg').write_text(profile_figure(profiles), encoding='utf-8')


if __name__ == '__main__':
    main()
