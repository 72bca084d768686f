"""Plumb's models as the model "plumb" of EleutherAI's lm-evaluation-harness:

    python -m plumb.harness --model plumb --model_args pretrained=models/gpt2 --tasks lambada_openai,hellaswag

takes the arguments of `lm_eval`. From Python, `plumb.harness.register()` makes the name "plumb" known to
`lm_eval.simple_evaluate`. The harness is imported only then.
"""

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any

from ._plumb import Error
from .loading import load

_PART = 512  # requests between two additions to the harness's cache
_log = logging.getLogger(__name__)


class HarnessModel:
    """What the harness asks of a model; `model_class` adds the harness's own base class.

    pretrained: what `plumb.load` reads. data: the data directory with the tokenizer, if the run's own has moved.
    The sizes of batches mean nothing here: requests are read in batches of a number of tokens. Throws Error on a device
    other than the CPU, and as `plumb.load`: without the program, models cannot be read.
    """

    cache_hook: Any  # the harness's

    def __init__(self, pretrained: str, data: str = "", device: str | None = None, batch_size: object = None,
                 max_batch_size: object = None) -> None:
        super().__init__()
        if device not in (None, "cpu"):
            raise Error(f"device {device}: plumb.load computes on the CPU\nleave --device out")
        self._model = load(pretrained, data=data)

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Of (context, continuation): log p(continuation), and whether greedy decoding yields it."""
        return self._answer("loglikelihood", requests, self._model.log_likelihoods)

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        """Of (text,): log p(text), read in windows as long as the model's context."""
        return self._answer("loglikelihood_rolling", requests,
                            lambda texts: self._model.log_likelihood([text for (text,) in texts]))

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """Of (context, options): the greedy continuation, up to a string in `until` or after `max_gen_toks` tokens. Throws
        Error if the options ask for samples."""
        return self._answer("generate_until", requests, self._complete)

    def _answer(self, kind: str, requests: Sequence[Any], answer: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """The answers to requests, each part of which is kept in the harness's cache (`--use_cache`)."""
        found: list[Any] = []
        for begin in range(0, len(requests), _PART):
            asked = [request.args for request in requests[begin:begin + _PART]]
            for arguments, one in zip(asked, answer(asked), strict=True):
                self.cache_hook.add_partial(kind, arguments, one)
                found.append(one)
            _log.info("%s: %d of %d requests", kind, len(found), len(requests))
        return found

    def _complete(self, asked: list[tuple[str, dict[str, Any]]]) -> list[str]:
        numbers: dict[tuple[tuple[str, ...], int], list[int]] = {}  # of the requests with the same options
        for number, (_, options) in enumerate(asked):
            numbers.setdefault(_completion(options), []).append(number)
        texts = [""] * len(asked)
        for (until, most), same in numbers.items():
            written = self._model.complete(prompts=[asked[number][0] for number in same], until=list(until), max_tokens=most)
            for number, text in zip(same, written, strict=True):
                texts[number] = text
        return texts


def _completion(options: dict[str, Any]) -> tuple[tuple[str, ...], int]:
    """The stop strings and the most tokens of a request's options."""
    if options.get("do_sample") and options.get("temperature", 1) != 0:
        raise Error("a task that asks for samples (do_sample), and answers are greedy\n"
                    "pass --gen_kwargs do_sample=False,temperature=0, or leave the task out")
    until = options.get("until") or []
    return (until,) if isinstance(until, str) else tuple(until), int(options.get("max_gen_toks", 256))


@functools.cache
def model_class() -> Any:
    """The subclass of `lm_eval.api.model.LM`. Throws ImportError without lm-evaluation-harness."""
    try:
        from lm_eval.api.model import LM  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError("plumb.harness needs lm-evaluation-harness: run `pip install lm_eval`") from error
    return type("PlumbModel", (HarnessModel, LM), {})


@functools.cache
def register() -> Any:
    """Makes the model known to the harness as "plumb", and returns its class. Throws as `model_class`."""
    made = model_class()
    from lm_eval.api.registry import register_model  # type: ignore[import-not-found, import-untyped, unused-ignore]

    return register_model("plumb")(made)


if __name__ == "__main__":
    register()
    from lm_eval.__main__ import cli_evaluate  # type: ignore[import-not-found, import-untyped, unused-ignore]

    cli_evaluate()
