"""Plumb's own models, and the models of others that it reads, by the program `plumb`, in a process for each call."""

import contextlib
import json
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._plumb import Error

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


@dataclass(frozen=True)
class Model:
    """A model that the program reads, anew for each call: the arguments of `plumb.load`, with whole paths."""

    path: str
    data: str
    libraries: tuple[str, ...]

    def generate(self, prompts: str | Sequence[str] = "", *, samples: int = 1, max_tokens: int = 256, lines: int = 1,
                 temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0,
                 repetition_penalty: float | None = None, seed: int = 1, stop: str | Sequence[str] = ()) -> list[Generated]:
        """Continues prompts, as `plumb generate`: for each, `samples` results. temperature: 0 takes the most probable token."""
        options = {"samples": samples, "max-tokens": max_tokens, "lines": lines, "temperature": temperature, "top-k": top_k,
                   "top-p": top_p, "min-p": min_p, "repetition-penalty": repetition_penalty, "seed": seed}
        stops = [f"--stop={text}" for text in ([stop] if isinstance(stop, str) else stop)]
        with _file_of([prompts] if isinstance(prompts, str) else prompts) as file:
            found = self._ask("generate", f"--prompts={file}", *_options(options), *stops)
        return [Generated(one["text"], one["tokens"], one["log_probability"], one["finish"]) for one in found["samples"]]

    def translate(self, texts: Sequence[str], *, beam: int = 5, length_penalty: float = 1.0) -> list[str]:
        """The translation of each text, as `plumb translate`."""
        with _file_of(_several(texts)) as file:
            found = self._ask("translate", f"--text={file}", *_options({"beam": beam, "length-penalty": length_penalty}))
        return list(found["translations"])

    def loss(self, texts: Sequence[str] | None = None, *, split: str = "valid") -> float:
        """The mean loss in nats. Of a language model on texts: per token, as `plumb evaluate` reads whole texts. Without texts:
        that of the model's task on a split of its data, per label, as `plumb train` computes it, label smoothing included."""
        if texts is None:
            return _number(self._ask("evaluate", f"--split={split}")["metrics"]["loss"], math.nan)
        task, answers = self._evaluate({"text": text} for text in _several(texts))
        return -sum(_number(one, -math.inf) for one in answers) / int(task["tokens"])

    def embed(self, texts: Sequence[str], *, pooling: str | None = None, normalize: bool | None = None,
              max_tokens: int | None = None) -> NDArray[np.float32]:
        """A vector for each text, (texts, features), as `plumb embed`.

        pooling: "first", "last", "max" or "mean". What is not given is as the sentence encoder's files say, else as the model
        was trained; max_tokens then is the model's number of positions, or 512.
        """
        options = _options({"pooling": pooling, "max-tokens": max_tokens})
        if normalize is not None:
            options.append("--normalize" if normalize else "--no-normalize")
        with _file_of(_several(texts)) as file:
            vectors = file.with_name("vectors.npy")
            self._ask("embed", f"--text={file}", f"--out={vectors}", *options)
            return np.asarray(np.load(vectors), np.float32)

    def classify(self, texts: Sequence[str | tuple[str, str]]) -> list[Classified]:
        """The label of each text, or pair of texts, as `plumb classify`."""
        several = _several(texts)
        pairs = any(not isinstance(one, str) for one in several)
        if any("\t" in one[0] for one in several if not isinstance(one, str)):
            raise Error("the first text of a pair has a tab, which ends it\nwrite a space in its place")
        lines: list[Any] = ["\t".join([one, ""] if isinstance(one, str) else one) for one in several] if pairs else several
        with _file_of(lines) as file:
            found = self._ask("classify", f"--text={file}", *(["--pair"] if pairs else []))
        return [Classified(one["label"], one["probability"], dict(zip(found["labels"], one["probabilities"], strict=True)))
                for one in found["examples"]]

    def log_likelihood(self, texts: Sequence[str]) -> list[float]:
        """log p of each text, read as by `loss`."""
        return [_number(one, -math.inf) for one in self._evaluate({"text": text} for text in _several(texts))[1]]

    def log_likelihoods(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[float, bool]]:
        """Of each context and continuation: log p(continuation | context), and whether greedy decoding yields it."""
        _, answers = self._evaluate({"context": context, "continuation": text} for context, text in pairs)
        return [(_number(one, -math.inf), greedy) for one, greedy in answers]

    def complete(self, prompts: Sequence[str], *, until: Sequence[str], max_tokens: int) -> list[str]:
        """The greedy continuation of each prompt, up to a string in `until`, as `plumb evaluate` writes answers."""
        items = ({"context": prompt, "answer": "", "until": _several(until)} for prompt in _several(prompts))
        return list(self._evaluate(items, f"--max-tokens={max_tokens}")[1])

    def _evaluate(self, items: Iterable[dict[str, Any]], *options: str) -> tuple[dict[str, Any], list[Any]]:
        """The results of `plumb evaluate` on these items, and the answer to each of them."""
        with _file_of(items) as file:
            out = file.with_name("out")
            found = self._ask("evaluate", f"--tasks={file}", f"--out={out}", "--samples", "--interval-samples=0", *options)
            with open(out / "samples_texts.jsonl", encoding="utf-8") as samples:
                return found["tasks"]["texts"], [json.loads(line)["resps"][0][0] for line in samples]

    def _ask(self, verb: str, *options: str) -> Any:
        """What a command answers. Throws Error as it does."""
        data = "--tokenizer" if verb == "evaluate" else "--data"
        command = [_program(), verb, self.path, "--json=-", "--quiet", *options,
                   *([f"{data}={self.data}"] if self.data else []), *(f"--load={library}" for library in self.libraries)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace")
        if done.returncode != 0:
            text = done.stderr.partition("error: ")[2] or done.stderr or f"plumb {verb} ended with status {done.returncode}"
            raise Error(text.strip().replace("\nhint: ", "\n"))
        return json.loads(done.stdout)


def load(path: str | os.PathLike[str], *, data: str | os.PathLike[str] = "",
         libraries: Sequence[str | os.PathLike[str]] = ()) -> Model:
    """A run directory (its last checkpoint), a checkpoint in one, or a folder of a Hugging Face model. The program that
    $PLUMB_PROGRAM names, or else `plumb` on the PATH, reads it. Raises Error if there is no such program or folder; an error
    in the model is raised by the first call that reads it.

    data: the data directory with the tokenizer, if the run's own has moved.
    libraries: those of variants that the run may load, whose code then runs, as with `--load`.
    """
    _program()
    if not os.path.isdir(path):
        raise Error(f"{path} is not a directory\npass a run, a checkpoint in one, or a folder of a Hugging Face model")
    return Model(os.path.abspath(path), os.path.abspath(data) if data else "", tuple(os.path.abspath(one) for one in libraries))


def _program() -> str:
    found = os.environ.get("PLUMB_PROGRAM") or shutil.which("plumb")
    if found is None:
        raise Error("there is no program `plumb`, which reads Plumb's models\n"
                    "install it as docs/building.md says, or name it in the environment variable PLUMB_PROGRAM")
    return found


@contextlib.contextmanager
def _file_of(lines: Iterable[Any]) -> Iterator[Path]:
    """A file of JSON Lines in a folder of its own, which is removed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "texts.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        yield file


def _options(values: dict[str, Any]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items() if value is not None]


def _several(texts: Sequence[_Text]) -> list[_Text]:
    if isinstance(texts, str):
        raise Error("texts are a list, and this is one alone\npass [text]")
    return list(texts)


def _number(value: float | None, otherwise: float) -> float:
    """JSON has null where a number is not finite."""
    return otherwise if value is None else value
