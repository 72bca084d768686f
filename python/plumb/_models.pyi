"""Plumb's own models and those of others that it reads; there only if the package was built with the whole library."""

from collections.abc import Sequence

from torch import Tensor

class Generated:
    """A continuation."""

    @property
    def text(self) -> str: ...
    @property
    def ids(self) -> list[int]: ...
    @property
    def log_probability(self) -> float: ...
    @property
    def finish(self) -> str: ...

class Loaded:
    """A model with what its texts are read with."""

    def __init__(self, name: str, data: str, libraries: Sequence[str]) -> None: ...
    @property
    def kind(self) -> str: ...
    @property
    def parameters(self) -> int: ...
    @property
    def checkpoint(self) -> str: ...
    def generate(self, *, prompts: Sequence[str], samples: int, max_tokens: int, lines: int, temperature: float, top_k: int,
                 top_p: float, min_p: float, repetition_penalty: float | None, seed: int,
                 stop: Sequence[str]) -> list[Generated]:
        """Continues each prompt, `samples` times."""
    def loss_of(self, texts: Sequence[str]) -> tuple[float, int]:
        """Σ −log p over the tokens of the texts, and their number."""
    def log_likelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, bool]]:
        """Of each context and continuation: log p of the continuation, and whether greedy decoding yields it."""
    def complete(self, *, prompts: Sequence[str], until: Sequence[str], max_tokens: int) -> list[str]:
        """The greedy continuation of each prompt, up to a string in `until`."""
    def metrics_on(self, split: str) -> dict[str, float]:
        """The task's metrics on a split of the data."""
    def embed(self, *, texts: Sequence[str], pooling: str | None, normalize: bool | None, max_tokens: int | None) -> Tensor:
        """(texts, features)"""
    def classify(self, texts: Sequence[tuple[str, str]]) -> tuple[list[str], list[list[float]]]:
        """The labels, and their probabilities for each example (of two texts; the second may be empty)."""
    def translate(self, *, lines: Sequence[str], beam: int, length_penalty: float) -> list[str]:
        """Translates each line."""
