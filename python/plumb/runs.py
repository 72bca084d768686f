"""The history of training runs, from the directories that `plumb train` and studies write."""

import contextlib
import json
import os
import pathlib
import stat
import tomllib
import warnings
from collections.abc import Iterator
from os import PathLike
from typing import IO, Any

import numpy as np

from ._plumb import Error
from .results import Array, data_frame

# Of a folder that may be anybody's, bytes of files and of a line, and dots on a line: a key costs the square of its parts.
_CONFIG, _HISTORY, _LINE, _DOTS = 1 << 20, 1 << 30, 16 << 20, 1000


class Run:
    """A run's directory: `name`, `config` (a dict of its config.toml), `outcome` (None while it trains), and the numbers of
    its history: run["loss"] has one per point of `columns`, NaN where a point has none. `watches` and `troubles` are the
    records of these kinds, as dicts with their step. A file that is missing or damaged is an Error."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = pathlib.Path(path)
        self.name = self.path.name
        with _reading(self.path / "config.toml", _CONFIG) as file:
            text = file.read(_CONFIG).decode()
            if any(line.count(".") > _DOTS for line in text.split("\n")):
                raise ValueError(f"a line has more than {_DOTS:,} dots")
            self.config: dict[str, Any] = tomllib.loads(text)
        with _reading(self.path / "metrics.jsonl", _HISTORY) as file:
            # A run that goes on may be writing its last line.
            lines = (line for line in iter(lambda: file.readline(_LINE), b"") if line.strip() and line.endswith(b"\n"))
            records: list[dict[str, Any]] = [json.loads(line.decode()) for line in lines]
            self.watches = _records(records, "watch")
            self.troubles = _records(records, "trouble")
            self.outcome: str | None = next((record["outcome"] for record in reversed(records) if "outcome" in record), None)
            self._points = [record | record.pop("metrics", {}) for record in records if "loss" in record]
            numbers = (number for point in self._points for number in (point["step"], *point.values()))
            if not (all(isinstance(record, dict) for record in records) and all(map(_is_number, numbers))
                    and str(self.outcome).isidentifier()):
                raise ValueError("a line is no record of a run")
        self.columns: list[str] = list(dict.fromkeys(key for point in self._points for key in point))

    def __getitem__(self, column: str) -> Array:
        if column not in self.columns:
            raise KeyError(f"{self.name} has no column {column!r}; it has {', '.join(self.columns)}")
        return np.array([point[column] if point.get(column) is not None else np.nan for point in self._points])

    def to_pandas(self) -> Any:
        """The points as a data frame."""
        return data_frame({column: self[column] for column in self.columns})

    def __repr__(self) -> str:
        ended = f"ended: {self.outcome}" if self.outcome else "not ended"
        last = f" to step {self._points[-1]['step']}" if self._points else ""
        return f"Run {self.name!r}: {len(self._points)} points{last}, {ended}"


@contextlib.contextmanager
def _reading(path: pathlib.Path, most: int) -> Iterator[IO[bytes]]:
    """A regular file of at most so many bytes: waits for no pipe and reads no device. What is wrong with it, or with what it
    contains, is an Error."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                raise ValueError(f"no regular file of at most {most >> 20:,} MiB")
            yield file
    except FileNotFoundError as error:
        raise Error(f"{str(path.parent)!r} is not a run that has begun: {path.name} is missing\n"
                    "name the folder that `plumb train --out` wrote") from error
    except Exception as error:
        raise Error(f"{str(path)!r} cannot be read: {type(error).__name__}: {error}") from error


def _records(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [{"step": record["step"], **record[kind]} for record in records if kind in record]


def _is_number(value: Any) -> bool:
    """Or null; NumPy has no larger integers."""
    return value is None or type(value) is float or type(value) is int and abs(value) < 1 << 63


def runs(folder: str | PathLike[str] = ".") -> list[Run]:
    """All runs in a folder and the folders within, by name; damaged ones are left out with a warning. Throws Error if there is no
    such folder."""
    if not os.path.isdir(folder):
        raise Error(f"{str(folder)!r} is not a directory\nname one that contains directories of `plumb train`")
    folders = [pathlib.Path(folder)]
    for place in folders:  # which grows: the recursion of pathlib and os.walk has a largest depth
        with contextlib.suppress(OSError):
            folders += [place / entry.name for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False)]
    found = []
    for place in sorted(folders):
        if not all(os.path.exists(place / name) for name in ("config.toml", "metrics.jsonl")):
            continue
        try:
            found.append(Run(place))
        except Error as error:
            warnings.warn(str(error), stacklevel=2)
    return found
