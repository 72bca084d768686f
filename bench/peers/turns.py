"""A peer's side of the race: prepares once, then works on request.

bench.py starts the program and reads one line of JSON when it is ready: the names of the works, versions, and other
information. From then on it writes the name of the next work, and reads one line of JSON with the results.
"""
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

Figures = dict[str, Any]


def synchronize() -> None:
    """Waits until a GPU has finished its queued work."""
    torch = sys.modules.get('torch')
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def median_seconds(work: Callable[[], object], runs: int) -> float:
    """Seconds per call: the median of `runs` calls after a warm-up call."""
    work()
    seconds = []
    for _ in range(runs):
        synchronize()
        begin = time.perf_counter()
        work()
        synchronize()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def take_turns(prepare: Callable[[], tuple[Mapping[str, Callable[[], Figures]], Figures]]) -> None:
    """Serves the works by name that `prepare` returns, with a description, until the end of standard input."""
    # Output that libraries print is not an answer; it goes to standard error.
    answers = os.fdopen(os.dup(1), 'w', encoding='utf-8')
    os.dup2(2, 1)

    def answer(figures: Figures) -> None:
        answers.write(json.dumps(figures) + '\n')
        answers.flush()

    works, description = prepare()
    answer({'works': list(works), **description})
    for line in sys.stdin:
        answer(works[line.strip()]())
