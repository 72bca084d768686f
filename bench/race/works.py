"""The workloads of the race."""
from dataclasses import dataclass, field
from typing import Any

Figures = dict[str, Any]

SMALL_MODEL = ['--d-model', '128', '--feed-forward', '256', '--layers', '4', '--sentences', '128']
TINY_MODEL = ['--d-model', '32', '--feed-forward', '64', '--layers', '1', '--vocabulary', '100']
KERNELS = 'kernels'  # the verb of races of build/bench/kernels
LONG_TEXTS = ['--attention', 'linear', '--positions', 'none', '--layers', '4', '--d-model', '256', '--feed-forward', '1024',
              '--heads', '4', '--vocabulary', '8192', '--batch', '1', '--contexts', '1024,8192,65536']
TINY = {  # for trying out the race: by verb, or by the peer of kernels
    'train': [*TINY_MODEL, '--sentences', '4', '--length', '8'],
    'decoder': ['--d-model', '32', '--feed-forward', '128', '--layers', '1', '--vocabulary', '100', '--heads', '4',
                '--texts', '2', '--length', '8'],
    'hvp': [*TINY_MODEL, '--sentences', '4', '--length', '8'],
    'decode': [*TINY_MODEL, '--sentences', '16', '--length', '4'],
    'generate': [*TINY_MODEL, '--heads', '4', '--length', '5', '--tokens', '4', '--batch', '1,3'],
    'torch_attention.py': ['--benchmark_filter=self_attention.*/softmax/64$'],
    'torch_lstm.py': ['--benchmark_filter=lstm.*/400/20$'],
    'torch_optimizer.py': ['--benchmark_filter=update/sgd'],
}


@dataclass
class Race:
    """Plumb's work in one or several precisions, and the peer that does the same. Benchmarks of build/bench/kernels are
    selected by `sizes`, and the peer is told their names."""

    title: str
    verb: str
    sizes: list[str] = field(default_factory=list)
    peer: str | None = None                                          # a script of bench/peers
    options: list[str] = field(default_factory=list)                 # of the peer's script
    packages: list[str] = field(default_factory=list)                # beyond the usual ones
    precisions: list[str] = field(default_factory=lambda: ['float32'])
    description: Figures = field(default_factory=dict)               # the peer's description of itself
    plumb: dict[str, list[Figures]] = field(default_factory=dict)    # by precision: a result per round
    peers: dict[str, list[Figures]] = field(default_factory=dict)    # by the peer's name of the work

    def arguments(self, precision: str) -> list[str]:
        """The arguments of `plumb bench`, or of build/bench/kernels."""
        if self.verb == KERNELS:
            return self.sizes
        extra = [] if precision == 'float32' else ['--precision', precision]
        return [self.verb, *self.sizes, *extra]

    def command(self, precision: str) -> str:
        program = 'build/bench/kernels' if self.verb == KERNELS else 'plumb bench'
        return ' '.join([program, *self.arguments(precision)])


def races(tiny: bool, data: str | None, llm_c: str | None) -> list[Race]:
    large = 'training step, 6+6 layers, d 512, FFN 1024, vocabulary 10,000, 64 × 32 tokens'
    decoder = 'training step, decoder with 42 million parameters: 8 layers, d 512, vocabulary 32,000, 4 × 1,024 tokens'
    listed = [
        Race(large, 'train', peer='torch_train.py'),
        Race('the same in bfloat16', 'train', peer='torch_train.py', precisions=['bf16']),
        Race('training step, 4+4 layers, d 128, FFN 256, 128 × 32 tokens', 'train', SMALL_MODEL, 'torch_train.py'),
        Race(decoder, 'decoder', peer='torch_train.py'),
        Race('the same in bfloat16', 'decoder', peer='torch_train.py', precisions=['bf16']),
        Race('6+6 layers, d 256, 16 × 24 tokens', 'hvp', peer='torch_hvp.py'),
        Race('translation, 6+6 layers, d 512, 500 sentences of 12 tokens', 'decode', ['--sentences', '500'],
             peer='ctranslate2_decode.py',
             precisions=['float32', 'bf16', 'int8']),
        Race('GPT-2 with 124 million parameters, prompts of 128 tokens, 63 more', 'generate',
             peer='ctranslate2_generate.py', precisions=['float32', 'bf16', 'int8']),
        Race('the same, beside llama.cpp', 'generate', peer='llama_cpp_generate.py', precisions=['float32', 'int8'],
             packages=['llama_cpp', 'gguf']),
        Race('linear attention, 4 layers, d 256', 'generate', LONG_TEXTS),
        Race('causal self-attention, d 256, 4 heads, a sequence of that length', KERNELS,
             ['--benchmark_filter=self_attention.*/softmax/'], 'torch_attention.py'),
        Race('LSTM, 3 layers of that width, that many rows of 70 tokens', KERNELS, ['--benchmark_filter=lstm'],
             'torch_lstm.py'),
        Race('update of a decoder, 8 layers, d 512, vocabulary 32,000', KERNELS, ['--benchmark_filter=update'],
             'torch_optimizer.py'),
    ]
    if llm_c:
        listed.insert(5, Race('the same in float32, beside llm.c', 'decoder', peer='llm_c_train.py',
                              options=['--llm-c', llm_c]))
    if data:
        real = ['--data', data]
        listed.insert(3, Race('training step, batches of 4,096 tokens of real lengths', 'train', real))
        listed.append(Race('translation of 1,000 sentences of real lengths', 'decode', real,
                           precisions=['float32', 'bf16', 'int8']))
    for race in listed if tiny else []:
        race.sizes = TINY[race.peer if race.peer in TINY else race.verb] + (real if '--data' in race.sizes else [])
    return listed
