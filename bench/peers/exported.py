"""The output of `plumb bench ... --export DIR`: weights, data, and results to compare with."""
import argparse
import json
import pathlib
from typing import Any


def _parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the arguments that all peers share."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument('--threads', type=int, default=2)
    made.add_argument('--device', default='cpu', help='cpu or cuda')
    made.add_argument('--runs', type=int, default=3, help='timed runs of a turn, of which the median counts')
    return made


def parser(description: str | None) -> argparse.ArgumentParser:
    """For a peer of `plumb bench`."""
    made = _parser(description)
    made.add_argument('--export', type=pathlib.Path, required=True, metavar='DIR', help='what `plumb bench` exported')
    return made


def arguments(description: str | None) -> argparse.Namespace:
    return parser(description).parse_args()


def kernel_arguments(description: str | None) -> argparse.Namespace:
    """For a peer of build/bench/kernels, which does work of the same sizes with weights of its own."""
    made = _parser(description)
    made.add_argument('--names', nargs='+', required=True, metavar='NAME', help='benchmarks of build/bench/kernels')
    return made.parse_args()


def read_work(directory: pathlib.Path) -> dict[str, Any]:
    work: dict[str, Any] = json.loads((directory / 'work.json').read_text(encoding='utf-8'))
    if work.get('schema') != 'plumb.bench-work/1':
        raise ValueError(f'{directory} holds no exported work of this version of Plumb')
    return work
