"""The table of docs/performance.md."""
import statistics
from collections.abc import Iterator
from typing import Any

from works import KERNELS, Figures, Race

HEADER = ['| work | command | Plumb | of the ceiling | peers | times as fast as the best peer |',
          '| --- | --- | --- | --- | --- | --- |']


def median(results: list[Figures], *path: Any) -> float | None:
    """The median of one figure over the rounds; None if it was not measured."""
    values = []
    for result in results:
        found: Any = result
        for key in path:
            found = found.get(key) if isinstance(found, dict) else found[key]
            if found is None:
                return None
        values.append(found)
    return statistics.median(values) if values else None


def seconds(value: float | None) -> str:
    if value is None:
        return ''
    if value < 1e-3:
        return f'{value * 1e6:.3g} µs'
    return f'{value * 1e3:.3g} ms' if value < 0.1 else f'{value:.3g} s'


def rate(value: float | None) -> str:
    return '' if value is None else f'{value:,.0f} tokens/s'


def percent(value: float | None) -> str:
    return '' if value is None else f'{100 * value:.0f}%'


def row(title: str, command: str, plumb: str, of_ceiling: float | None = None, peers: str = '',
        factor: float | None = None) -> str:
    last = '' if factor is None else f'{factor:.2f}'
    return f'| {title} | `{command}` | {plumb} | {percent(of_ceiling)} | {peers} | {last} |'


def compared(race: Race, mine: float | None, key: Any, prefix: str = '') -> tuple[str, float | None]:
    """The peers' times, and the fastest peer's time relative to Plumb's. `key`: the key of the seconds; only works
    whose names begin with `prefix` count."""
    path = key if isinstance(key, tuple) else (key,)
    found = {name.removeprefix(prefix): median(results, *path) for name, results in race.peers.items()
             if name.startswith(prefix)}
    known = {name: value for name, value in found.items() if value is not None}
    if not known or mine is None:
        return '', None
    return '; '.join(f'{name} {seconds(value)}' for name, value in known.items()), min(known.values()) / mine


def train_rows(race: Race) -> Iterator[str]:
    for precision, ours in race.plumb.items():
        mine = median(ours, 'seconds_per_step')
        theirs, factor = compared(race, mine, 'seconds_per_step')
        yield row(race.title, race.command(precision),
                  f'{seconds(mine)}, {rate(median(ours, "target_tokens_per_second"))}',
                  median(ours, 'ceiling_fraction'), theirs, factor)


def hvp_rows(race: Race) -> Iterator[str]:
    for precision, ours in race.plumb.items():
        command = race.command(precision)
        mine = median(ours, 'gradient_seconds')
        theirs, factor = compared(race, mine, 'gradient_seconds', 'gradient, ')
        yield row(f'gradient, {race.title}', command, seconds(mine), None, theirs, factor)
        mine = median(ours, 'hvp_seconds')
        theirs, factor = compared(race, mine, 'hvp_seconds')
        yield row('its Hessian-vector product, keeping the gradient\'s graph', command,
                  f'{seconds(mine)} = {median(ours, "ratio"):.2f} gradients', median(ours, 'ceiling_fraction'), theirs,
                  factor)
        yield row(f'products with the diagonal blocks of its {ours[0]["layers"]} layers, one vector each, all at once',
                  command,
                  f'{seconds(median(ours, "layers_seconds"))} = {median(ours, "layers_ratio"):.2f} products')
        yield row('its Lanczos step: the product, then orthogonalization against 50 vectors', command,
                  f'{seconds(median(ours, "lanczos_step_seconds"))}, of which '
                  f'{seconds(median(ours, "orthogonalize_seconds"))} at '
                  f'{median(ours, "orthogonalize_gigabytes_per_second"):.0f} GB/s '
                  f'(sums alone read {median(ours, "reading_gigabytes_per_second"):.0f} GB/s)')
        yield row('Hessian-vector product, graph not kept; four at once, each', command,
                  f'{seconds(median(ours, "hvp_seconds_graph_not_kept"))}; '
                  f'{seconds(median(ours, "hvp_seconds_four_at_once"))}')


def decode_rows(race: Race) -> Iterator[str]:
    names = {'float32': '', 'bf16': ', bfloat16', 'int8': ', int8'}
    for precision, ours in race.plumb.items():
        for i, entry in enumerate(ours[0]['beams']):
            name = f'{precision}, beam {entry["beam"]}'
            mine, peer = median(ours, 'beams', i, 'seconds'), median(race.peers.get(name, []), 'seconds')
            theirs = rate(median(race.peers.get(name, []), 'decode_tokens_per_second'))
            yield row(f'{race.title}, beam {entry["beam"]}{names[precision]}', race.command(precision),
                      rate(median(ours, 'beams', i, 'decode_tokens_per_second')),
                      median(ours, 'beams', i, 'ceiling_fraction'), 'CTranslate2 ' + theirs if theirs else '',
                      None if mine is None or peer is None else peer / mine)


def generate_rows(race: Race) -> Iterator[str]:
    name = next(iter(race.description.get('versions', {})), '')
    names = {'float32': '', 'bf16': ', bfloat16', 'int8': ', int8'}
    for precision, ours in race.plumb.items():
        for i, entry in enumerate(ours[0]['batches']):
            peers = race.peers.get(f'{precision}, {entry["rows"]} rows', [])
            for what, verb in [('prefill', 'read'), ('decode', 'continued')]:
                mine, peer = median(ours, 'batches', i, f'{what}_seconds'), median(peers, f'{what}_seconds')
                theirs = rate(median(peers, f'{what}_tokens_per_second'))
                yield row(f'{race.title}: {entry["rows"]} {verb} at a time{names[precision]}', race.command(precision),
                          rate(median(ours, 'batches', i, f'{what}_tokens_per_second')), None,
                          f'{name} {theirs}' if theirs else '', None if mine is None or peer is None else peer / mine)
        for i, entry in enumerate(ours[0].get('contexts', [])):
            yield row(f'{race.title}: one token after {entry["context"]:,} others{names[precision]}', race.command(precision),
                      f'{seconds(median(ours, "contexts", i, "seconds_per_token"))}, state of '
                      f'{entry["state_bytes"] / 2 ** 20:.2f} MiB')


def kernel_rows(race: Race) -> Iterator[str]:
    for precision, ours in race.plumb.items():
        for name in ours[0]['seconds']:
            mine = median(ours, 'seconds', name)
            theirs, factor = compared(race, mine, ('seconds', name))
            yield row(f'{race.title}: {name}', race.command(precision), seconds(mine), None, theirs, factor)


ROWS = {'train': train_rows, 'decoder': train_rows, 'hvp': hvp_rows, 'decode': decode_rows, 'generate': generate_rows,
        KERNELS: kernel_rows}


def versions(races: list[Race]) -> str:
    """The versions of the peers."""
    found: dict[str, str] = {}
    for race in races:
        found.update(race.description.get('versions', {}))
    *others, last = [f'{name} {version}' for name, version in found.items()] or ['none']
    return f'{", ".join(others)} and {last}' if others else last


def agreements(races: list[Race]) -> str:
    found = {name: share for race in races for name, share in race.description.get('agreement', {}).items()
             if name.startswith('float32')}
    return ', '.join(f'{100 * share:.1f}% ({name.removeprefix("float32, ")})' for name, share in found.items())


def text(races: list[Race], starts: dict[str, list[float]], machine: str, absent: str, threads: int) -> str:
    """The whole table as text. `absent`: the reason why there are no peers, or empty."""
    results = [result for race in races for ours in race.plumb.values() for result in ours]
    builds = {f' Plumb was built by {result["compiler"]} with LibTorch {result["libtorch"]}.' for result in results
              if 'compiler' in result}
    ceilings = [result['ceiling_gflops'] for result in results if 'ceiling_gflops' in result]
    rounds = max(len(ours) for race in races for ours in race.plumb.values())
    lines = [f'Machine: {machine}.{"".join(builds)} '
             f'{threads} thread{"" if threads == 1 else "s"}, medians of {rounds} round{"" if rounds == 1 else "s"}.']
    if ceilings:
        lines[0] += (f' Ceiling (float32 matrix products as a model has them, in the same process): '
                     f'{min(ceilings):,.0f} to {max(ceilings):,.0f} GFLOP/s.')
    if absent:
        lines.append(f'The peers are left out: {absent}.')
    else:
        lines.append(f'Peers: {versions(races)}, with the same weights and threads, taking turns with Plumb.')
    if agreed := agreements(races):
        lines.append(f'CTranslate2 finds Plumb\'s translations in float32 for {agreed} of the sentences.')
    lines += ['', *HEADER]
    for race in races:
        lines.extend(ROWS[race.verb](race))
    for verb, what in (('list', 'answered from the manual'), ('plan', 'with all libraries')):
        lines.append(row(f'start of the program, {what}', f'plumb {verb}', seconds(statistics.median(starts[verb]))))
    return '\n'.join(lines)
