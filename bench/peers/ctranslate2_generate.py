"""Continuation of prompts in CTranslate2, in float32 and int8. The counterpart of `plumb bench generate`."""
import time
from collections.abc import Callable, Mapping
from typing import Any

import ctranslate2

from ctranslate2_model import convert_decoder, open_generator
from exported import arguments, read_work
from generation import Generation
from turns import Figures, take_turns

PRECISIONS = ['float32', 'int8']


class FastestGeneration(Generation):
    """Generation with the settings that are fastest on this machine."""

    def __init__(self, work: dict[str, Any], batch: dict[str, Any],
                 generators: list[tuple[ctranslate2.Generator, int]]) -> None:
        """`generators`: pairs of a generator and the number of threads that share the prompts."""
        super().__init__(work, batch)
        self.prompts = [[str(i) for i in prompt] for prompt in batch['prompts']]
        self.continuations = [[str(i) for i in ids] for ids in batch['continuations']]
        trials = {}
        for number, (generator, shares) in enumerate(generators):
            if shares > self.rows:
                continue
            self.generator, self.batch_rows = generator, -(-self.rows // shares)
            self.generate(2)
            trials[number] = self.seconds(self.tokens)
        self.generator, shares = generators[min(trials, key=lambda number: trials[number])]
        self.batch_rows = -(-self.rows // shares)

    def generate(self, tokens: int) -> list[list[int]]:
        results = self.generator.generate_batch(
            self.prompts, max_length=tokens, min_length=tokens, beam_size=1, include_prompt_in_result=False,
            max_batch_size=self.batch_rows)
        return [list(result.sequences_ids[0]) for result in results]

    def seconds(self, tokens: int) -> float:
        begin = time.perf_counter()
        self.generate(tokens)
        return time.perf_counter() - begin

    def scores(self) -> list[float]:
        texts = [prompt + more for prompt, more in zip(self.prompts, self.continuations)]
        return [sum(scored.log_probs[-self.tokens:]) for scored in self.generator.score_batch(texts)]


def prepare() -> tuple[Mapping[str, Callable[[], Figures]], Figures]:
    options = arguments(__doc__)
    work = read_work(options.export)
    directory = options.export / 'ctranslate2'
    convert_decoder(options.export / 'model.safetensors', work['sizes'], directory)
    generations = {}
    for precision in PRECISIONS:
        layouts = sorted({(1, options.threads), (options.threads, 1)})
        generators = [(open_generator(directory, precision, *layout), layout[0]) for layout in layouts]
        for batch in work['batches']:
            generation = FastestGeneration(work, batch, generators)
            if precision == 'float32':
                generation.check()
            generations[f'{precision}, {batch["rows"]} rows'] = generation
    works = {name: generation.figures for name, generation in generations.items()}
    return works, {'versions': {'CTranslate2': ctranslate2.__version__},
                   'settings': {name: f'batches of {generation.batch_rows}' for name, generation in generations.items()}}


if __name__ == '__main__':
    take_turns(prepare)
