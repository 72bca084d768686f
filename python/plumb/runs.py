"""The history of training runs, from the directories that `plumb train` and studies write."""

import json
import pathlib
import tomllib
import warnings
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ._plumb import Error
from .results import Array

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped, unused-ignore]


class Run:
    """A run's directory: `name`, `config` (a dict of its config.toml), `outcome` (None while it trains), and the numbers of
    its history: run["loss"] has one per point of `columns`, NaN where a point has none. `watches` and `troubles` are the
    records of these kinds, as dicts with their step."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = pathlib.Path(path)
        self.name = self.path.name
        try:
            self.config: dict[str, Any] = tomllib.loads((self.path / "config.toml").read_text(encoding="utf-8"))
            lines = (self.path / "metrics.jsonl").read_text(encoding="utf-8").split("\n")
        except FileNotFoundError as error:
            raise Error(f"{self.path} is not a run that has begun: {error.filename} is missing\n"
                        "name the folder that `plumb train --out` wrote") from error
        except tomllib.TOMLDecodeError as error:
            raise Error(f"{self.path / 'config.toml'} is damaged: {error}") from error
        try:
            # A run that goes on may be writing its last line.
            records = [json.loads(line) for line in lines[:-1] if line]
        except json.JSONDecodeError as error:
            raise Error(f"{self.path / 'metrics.jsonl'} is damaged: {error}") from error
        self.watches = _records(records, "watch")
        self.troubles = _records(records, "trouble")
        self.outcome: str | None = next((record["outcome"] for record in reversed(records) if "outcome" in record), None)
        self._points = [record | record.pop("metrics", {}) for record in records if "loss" in record]
        self.columns: list[str] = list(dict.fromkeys(key for point in self._points for key in point))

    def __getitem__(self, column: str) -> Array:
        if column not in self.columns:
            raise KeyError(f"{self.name} has no column {column!r}; it has {', '.join(self.columns)}")
        return np.array([point[column] if point.get(column) is not None else np.nan for point in self._points])

    def to_pandas(self) -> "pandas.DataFrame":
        """The points as a data frame."""
        import pandas  # type: ignore[import-untyped, unused-ignore]

        return pandas.DataFrame({column: self[column] for column in self.columns})

    def __repr__(self) -> str:
        ended = f"ended: {self.outcome}" if self.outcome else "not ended"
        last = f" to step {self._points[-1]['step']}" if self._points else ""
        return f"Run {self.name}: {len(self._points)} points{last}, {ended}"


def _records(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [{"step": record["step"], **record[kind]} for record in records if kind in record]


def runs(folder: str | PathLike[str] = ".") -> list[Run]:
    """All runs in a folder and the folders within, by name; damaged ones are left out with a warning."""
    found = []
    for file in sorted(pathlib.Path(folder).rglob("metrics.jsonl")):
        if not (file.parent / "config.toml").exists():
            continue
        try:
            found.append(Run(file.parent))
        except Error as error:
            warnings.warn(str(error), stacklevel=2)
    return found
