"""A peer's side of the race: prepare once, then work when it is called.

bench.py starts the program and reads one line of JSON when it is ready: what takes turns, versions, and whatever else is
worth telling. From then on it writes the name of what is to work next, and reads a line of JSON with the figures.
"""
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

Figures = dict[str, Any]


def median_seconds(work: Callable[[], object], runs: int) -> float:
    """The median over `runs` calls, after one that warms up."""
    work()
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def take_turns(prepare: Callable[[], tuple[Mapping[str, Callable[[], Figures]], Figures]]) -> None:
    """Serves what `prepare` returns, the works by name and a description, until there is nothing left to read."""
    # What libraries print is not an answer: it goes to standard error.
    answers = os.fdopen(os.dup(1), 'w', encoding='utf-8')
    os.dup2(2, 1)

    def answer(figures: Figures) -> None:
        answers.write(json.dumps(figures) + '\n')
        answers.flush()

    works, description = prepare()
    answer({'works': list(works), **description})
    for line in sys.stdin:
        answer(works[line.strip()]())
