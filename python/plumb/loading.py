"""Plumb's own models, and the models of others that it reads, with the program's library."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING

from ._plumb import Error

if TYPE_CHECKING:
    from ._models import Loaded


@dataclass(frozen=True)
class Generated:
    """A continuation: its text and tokens, the log-probability of these, and why it ended: "end", "stop" or "length"."""

    text: str
    ids: list[int]
    log_probability: float
    finish: str


class Model:
    """A model that `plumb.load` has read. `kind`, `parameters` (their number), `checkpoint` (its folder)."""

    def __init__(self, loaded: "Loaded") -> None:
        self._loaded = loaded
        self.kind: str = loaded.kind
        self.parameters: int = loaded.parameters
        self.checkpoint: str = loaded.checkpoint

    def generate(self, prompts: str | Sequence[str] = "", *, samples: int = 1, max_tokens: int = 256, lines: int = 1,
                 temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0,
                 repetition_penalty: float | None = None, seed: int = 1, stop: str | Sequence[str] = ()) -> list[Generated]:
        """Continues prompts, as `plumb generate`: for each, `samples` results. temperature: 0 takes the most probable token."""
        several = [prompts] if isinstance(prompts, str) else list(prompts)
        found = self._loaded.generate(
            prompts=several, samples=samples, max_tokens=max_tokens, lines=lines, temperature=temperature, top_k=top_k,
            top_p=top_p, min_p=min_p, repetition_penalty=repetition_penalty, seed=seed,
            stop=[stop] if isinstance(stop, str) else list(stop))
        return [Generated(one.text, one.ids, one.log_probability, one.finish) for one in found]

    def translate(self, texts: Sequence[str], *, beam: int = 5, length_penalty: float = 1.0) -> list[str]:
        """The translation of each text, as `plumb translate`."""
        if isinstance(texts, str):
            raise Error("texts are a list\npass [text]")
        return self._loaded.translate(lines=list(texts), beam=beam, length_penalty=length_penalty)

    def __repr__(self) -> str:
        return f"{self.kind} of {self.parameters:,} parameters from {self.checkpoint}"


def load(path: str | PathLike[str], *, data: str | PathLike[str] = "") -> Model:
    """Reads a run directory (its last checkpoint), a checkpoint in one, or a folder of a Hugging Face model.

    data: the data directory with the tokenizer, if the run's own has moved.
    """
    try:
        from . import _models
    except ImportError as error:
        if importlib.util.find_spec("plumb._models") is not None:
            raise Error(f"Plumb's library cannot be loaded: {error}\n"
                        "is the build that the package was made with still in its place?") from error
        raise Error("this package was built without Plumb's library, which plumb.load needs\n"
                    "build it against the same PyTorch, and pass it as docs/python.md says") from error
    return Model(_models.Loaded(fspath(path), fspath(data)))
