"""Plumb's own models, and the models of others that it reads, with the program's library."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ._plumb import Error

if TYPE_CHECKING:
    from torch import Tensor

_Text = TypeVar("_Text", str, str | tuple[str, str])


@dataclass(frozen=True)
class Generated:
    """A continuation: its text and tokens, the log-probability of these, and why it ended: "end", "stop" or "length"."""

    text: str
    ids: list[int]
    log_probability: float
    finish: str


@dataclass(frozen=True)
class Classified:
    """The most probable label of a text and its probability; `probabilities`: of all labels, by name."""

    label: str
    probability: float
    probabilities: dict[str, float]


class Model:
    """A model that `plumb.load` has read. `kind`, `parameters` (their number), `checkpoint` (its folder)."""

    def __init__(self, loaded: Any) -> None:
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
        return list(self._loaded.translate(lines=_several(texts), beam=beam, length_penalty=length_penalty))

    def loss(self, texts: Sequence[str] | None = None, *, split: str = "valid") -> float:
        """The mean loss in nats. Of a language model on texts: per token, as `plumb evaluate` reads whole texts. Without texts:
        that of the model's task on a split of its data, per label, as `plumb train` computes it, label smoothing included."""
        if texts is None:
            return float(self._loaded.metrics_on(split)["loss"])
        total, tokens = self._loaded.loss_of(_several(texts))
        return float(total / tokens)

    def embed(self, texts: Sequence[str], *, pooling: str | None = None, normalize: bool | None = None,
              max_tokens: int | None = None) -> "Tensor":
        """A vector for each text, (texts, features), as `plumb embed`.

        pooling: "first", "last", "max" or "mean". What is not given is as the sentence encoder's files say, else as the model
        was trained; max_tokens then is the model's number of positions, or 512.
        """
        return cast("Tensor", self._loaded.embed(texts=_several(texts), pooling=pooling, normalize=normalize,
                                                 max_tokens=max_tokens))

    def classify(self, texts: Sequence[str | tuple[str, str]]) -> list[Classified]:
        """The label of each text, or pair of texts, as `plumb classify`."""
        pairs = [(one, "") if isinstance(one, str) else one for one in _several(texts)]
        labels, found = self._loaded.classify(pairs)
        results = []
        for row in found:
            probabilities = dict(zip(labels, row, strict=True))
            best = max(probabilities, key=probabilities.__getitem__)
            results.append(Classified(best, probabilities[best], probabilities))
        return results

    def __repr__(self) -> str:
        return f"{self.kind} of {self.parameters:,} parameters from {self.checkpoint}"


def _several(texts: Sequence[_Text]) -> list[_Text]:
    if isinstance(texts, str):
        raise Error("texts are a list\npass [text]")
    return list(texts)


def load(path: str | PathLike[str], *, data: str | PathLike[str] = "", libraries: Sequence[str | PathLike[str]] = ()) -> Model:
    """Reads a run directory (its last checkpoint), a checkpoint in one, or a folder of a Hugging Face model.

    data: the data directory with the tokenizer, if the run's own has moved.
    libraries: those of variants that the run may load, whose code then runs here, as with `--load`.
    """
    try:
        importlib.import_module("torch")  # with the libraries that the module shares
        models = importlib.import_module("._models", __package__)
    except ImportError as error:
        if importlib.util.find_spec("plumb._models") is not None:
            raise Error(f"Plumb's library cannot be loaded: {error}\n"
                        "is the build that the package was made with still in its place?") from error
        raise Error("this package was built without Plumb's library, which plumb.load needs\n"
                    "build it against the same PyTorch, and pass it as docs/python.md says") from error
    return Model(models.Loaded(fspath(path), fspath(data), [fspath(library) for library in libraries]))
