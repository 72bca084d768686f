"""Translation in CTranslate2, in float32 and int8. The counterpart of `plumb bench decode`."""
import time
from collections.abc import Callable, Mapping
from typing import Any

import ctranslate2

from ctranslate2_model import convert, open_translator
from exported import arguments, read_work
from turns import Figures, median_seconds, take_turns

PRECISIONS = ['float32', 'int8']


class Decoding:
    """One search, with the settings that are fastest on this machine."""

    def __init__(self, work: dict[str, Any], beam: dict[str, Any], translators: list[ctranslate2.Translator]) -> None:
        self.beam, self.reference, self.tokens = beam['beam'], beam['translations'], beam['tokens']
        self.sources = [[str(i) for i in source] for source in work['sources']]
        lengths = {len(source) for source in self.sources}
        if len(lengths) != 1:
            raise ValueError('CTranslate2 has one limit for all: sentences have to be of equal length')
        self.limit = int(work['length_factor'] * lengths.pop()) + work['length_extra']
        # As many steps as in Plumb, which with a beam also asks the model for the score of EOS at the limit.
        self.steps = self.limit + (0 if self.beam == 1 else 1)
        batch_tokens = [1024, 4096] if self.beam == 1 else [512, 2048]
        trials = {(i, size): self.seconds(translator, size)
                  for i, translator in enumerate(translators) for size in batch_tokens}
        number, self.batch_tokens = min(trials, key=lambda key: trials[key])
        self.translator = translators[number]

    def translate(self, translator: ctranslate2.Translator, batch_tokens: int, sentences: int, steps: int,
                  hypotheses: int = 1) -> list[list[list[int]]]:
        results = translator.translate_batch(
            self.sources[:sentences], beam_size=self.beam, num_hypotheses=hypotheses, max_decoding_length=steps,
            max_batch_size=batch_tokens, batch_type='tokens', length_penalty=1.0)
        return [[[int(token) for token in tokens] for tokens in result.hypotheses] for result in results]

    def seconds(self, translator: ctranslate2.Translator, batch_tokens: int) -> float:
        """The time for a quarter of the sentences, which still keeps all threads busy."""
        begin = time.perf_counter()
        self.translate(translator, batch_tokens, len(self.sources) // 4 + 1, self.steps)
        return time.perf_counter() - begin

    def agreement(self) -> float:
        """The fraction of sentences for which Plumb's float32 translation is among the hypotheses."""
        found = self.translate(self.translator, self.batch_tokens, len(self.sources), self.limit, self.beam)
        return sum(mine in theirs for mine, theirs in zip(self.reference, found)) / len(found)

    def settings(self) -> str:
        return f'{self.translator.num_translators} translators, batches of {self.batch_tokens} tokens'

    def figures(self, runs: int) -> Figures:
        seconds = median_seconds(
            lambda: self.translate(self.translator, self.batch_tokens, len(self.sources), self.steps), runs)
        return {'seconds': seconds, 'decode_tokens_per_second': self.tokens / seconds}


def prepare() -> tuple[Mapping[str, Callable[[], Figures]], Figures]:
    options = arguments(__doc__)
    work = read_work(options.export)
    directory = options.export / 'ctranslate2'
    convert(options.export / 'model.safetensors', work['sizes'], directory)
    decodings = {}
    for precision in PRECISIONS:
        layouts = {(options.threads, 1), (1, options.threads)}
        translators = [open_translator(directory, precision, *layout) for layout in sorted(layouts)]
        for beam in work['beams']:
            decodings[f'{precision}, beam {beam["beam"]}'] = Decoding(work, beam, translators)
    works = {name: lambda d=decoding: d.figures(runs=1) for name, decoding in decodings.items()}
    return works, {'versions': {'CTranslate2': ctranslate2.__version__},
                   'agreement': {name: decoding.agreement() for name, decoding in decodings.items()},
                   'settings': {name: decoding.settings() for name, decoding in decodings.items()}}


if __name__ == '__main__':
    take_turns(prepare)
