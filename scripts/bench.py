#!/usr/bin/env python3
"""Races `plumb bench` against the newest PyTorch (eager and compiled), CTranslate2 and, if they are there, llama.cpp and
llm.c, alternating, with the same weights and threads; writes the table of docs/performance.md and, with --json, all
measurements."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'bench' / 'race'))
sys.dont_write_bytecode = True

import environment  # noqa: E402
import machine  # noqa: E402
import table  # noqa: E402
from contestants import Failed, Kernels, Peer, Plumb  # noqa: E402
from works import KERNELS, Race, races  # noqa: E402

BEGIN, END = '<!-- bench.py: begin -->', '<!-- bench.py: end -->'


def run_race(race: Race, plumb: Plumb | Kernels, python: pathlib.Path | None, threads: int, rounds: int) -> None:
    """Runs `rounds` rounds; in each, Plumb and its peer run all of their work, one after the other."""
    with tempfile.TemporaryDirectory() as directory:
        peer = None
        if python is not None and race.peer is not None:
            if isinstance(plumb, Kernels):
                work = ['--names', *plumb.names(race.sizes)]
            else:
                plumb.bench([*race.arguments(race.precisions[0]), '--runs', '1', '--export', directory])
                work = ['--export', directory]
            peer = Peer(python, race.peer, [*work, *race.options], threads)
            race.description = peer.description
        for _ in range(rounds):
            for precision in race.precisions:
                race.plumb.setdefault(precision, []).append(plumb.bench(race.arguments(precision)))
            if peer is not None:
                for work in peer.works:
                    race.peers.setdefault(work, []).append(peer.call(work))
        if peer is not None:
            peer.close()


def start_seconds(program: str, verb: str) -> float:
    """The duration of `plumb VERB`: `list` is answered from the manual; `plan` loads all libraries, and then finds that
    it was given nothing to plan."""
    begin = time.perf_counter()
    subprocess.run([program, verb], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def write_page(path: pathlib.Path, text: str) -> None:
    page = path.read_text(encoding='utf-8')
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        sys.exit(f'bench.py: {path} has no place for the table: {BEGIN} and {END}')
    before, rest = page.split(BEGIN)
    path.write_text(f'{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}', encoding='utf-8')


def write_json(path: pathlib.Path, measured: list[Race], starts: dict[str, list[float]], threads: int,
               absent: str) -> None:
    document = {'schema': 'plumb.bench-table/3', 'machine': machine.describe(), 'threads': threads,
                'peers_absent': absent, 'start_seconds': starts,
                'races': [{'title': race.title, 'commands': [race.command(p) for p in race.precisions],
                           'peer': race.description, 'plumb': race.plumb, 'peers': race.peers} for race in measured]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + '\n', encoding='utf-8')


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--plumb', default=str(ROOT / 'build' / 'plumb'), help='the program (default: %(default)s)')
    parser.add_argument('--kernels', default=str(ROOT / 'build' / 'bench' / 'kernels'), metavar='FILE',
                        help='the benchmarks of kernels (default: %(default)s)')
    parser.add_argument('--peers', type=pathlib.Path, default=ROOT / 'build-peers', metavar='DIR',
                        help='virtual environment of the peers, created if missing (default: %(default)s)')
    parser.add_argument('--no-peers', action='store_true', help='measure Plumb alone')
    parser.add_argument('--only', nargs='+', help='only these',
                        choices=['train', 'decoder', 'hvp', 'decode', 'generate', KERNELS])
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)), help='default: all processors')
    parser.add_argument('--rounds', type=int, default=3, help='how often everything is measured (default: 3)')
    parser.add_argument('--json', type=pathlib.Path, help='write all that was measured')
    parser.add_argument('--page', type=pathlib.Path, help='write the table into this page, between the marks')
    parser.add_argument('--data', help='a data directory: measure batches of its lengths too')
    parser.add_argument('--llm-c', metavar='DIR', help='a clone of llm.c: race it, too')
    parser.add_argument('--tiny', action='store_true', help='tiny sizes, to try this script')
    options = parser.parse_args()
    if options.llm_c and not (pathlib.Path(options.llm_c) / 'train_gpt2.c').is_file():
        parser.error(f'--llm-c {options.llm_c}: has no train_gpt2.c')
    if options.llm_c and not shutil.which('cc'):
        parser.error('--llm-c: there is no C compiler (cc)')
    return options


def main() -> None:
    options = arguments()
    python, absent = None, 'not asked for'
    if not options.no_peers:
        try:
            python, absent = environment.make(options.peers.resolve()), ''
        except environment.Missing as reason:
            absent = str(reason)
            print(f'bench.py: Plumb is measured without peers: {absent}', file=sys.stderr)
    listed = races(options.tiny, options.data, options.llm_c if python else None)
    measured = [race for race in listed if not options.only or race.verb in options.only]
    plumb, kernels = Plumb(options.plumb, options.threads), Kernels(options.kernels, options.threads)
    starts = {verb: [start_seconds(options.plumb, verb) for _ in range(options.rounds)] for verb in ('list', 'plan')}
    for race in list(measured):
        if race.packages and not (python and environment.has(python, race.packages)):
            reason = f'needs {" and ".join(race.packages)} in {options.peers}' if python else 'no peers'
            print(f'bench.py: left out: {race.title} ({reason})', file=sys.stderr)
            measured.remove(race)
            continue
        if race.verb == KERNELS and not os.access(options.kernels, os.X_OK):
            print(f'bench.py: left out: {race.title} ({options.kernels} is not built)', file=sys.stderr)
            measured.remove(race)
            continue
        print(race.title, file=sys.stderr)
        try:
            run_race(race, kernels if race.verb == KERNELS else plumb, python, options.threads, options.rounds)
        except Failed as error:
            sys.exit(f'bench.py: {error}')
    text = table.text(measured, starts, machine.sentence(machine.describe()), absent, options.threads)
    print(text)
    if options.json:
        write_json(options.json, measured, starts, options.threads, absent)
    if options.page:
        write_page(options.page, text)


if __name__ == '__main__':
    main()
