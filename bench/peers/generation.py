"""The common part of the peers that continue prompts."""
from typing import Any

from turns import Figures, median_seconds


class Generation:
    """Prompts of equal length, continued together. A subclass generates, and scores Plumb's continuations."""

    def __init__(self, work: dict[str, Any], batch: dict[str, Any]) -> None:
        if work['sizes']['attention'] != 'softmax' or work['sizes']['positions'] != 'learned':
            raise ValueError('the peers continue prompts with GPT-2\'s architecture')
        self.length, self.tokens, self.rows = work['sizes']['length'], work['sizes']['tokens'], batch['rows']
        self.log_probabilities = batch['log_probabilities']

    def generate(self, tokens: int) -> list[list[int]]:
        """Continues each prompt by exactly `tokens` tokens, greedily; each prompt is read in one pass."""
        raise NotImplementedError

    def scores(self) -> list[float]:
        """log p of Plumb's continuation of each prompt."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises ValueError unless Plumb's continuations are as probable here as Plumb says."""
        for row, (found, expected) in enumerate(zip(self.scores(), self.log_probabilities)):
            if abs(found - expected) > 1e-3 * max(1.0, abs(expected)):
                raise ValueError(f'log p of continuation {row} is {found} here and {expected} in Plumb')

    def figures(self) -> Figures:
        """Times the prefill, which also gives the first token, and the decoding of the other tokens."""
        prefill = median_seconds(lambda: self.generate(1), runs=3)
        decode = max(median_seconds(lambda: self.generate(self.tokens), runs=1) - prefill, 1e-9)
        return {'prefill_seconds': prefill, 'prefill_tokens_per_second': self.rows * self.length / prefill,
                'decode_seconds': decode, 'decode_tokens_per_second': self.rows * (self.tokens - 1) / decode}
