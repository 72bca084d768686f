"""Continuation of prompts in llama.cpp, in float32 and int8 (Q8_0). The counterpart of `plumb bench generate`."""
import ctypes
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import gguf
import llama_cpp
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from exported import arguments, read_work
from generation import Generation
from turns import Figures, take_turns

Array = NDArray[np.float32]
TYPES = {'float32': gguf.GGMLQuantizationType.F32, 'int8': gguf.GGMLQuantizationType.Q8_0}
# Plumb's names within a layer, and GGUF's.
LAYER = {'self_attn.in_proj_': 'attn_qkv.', 'self_attn.out_proj.': 'attn_output.', 'norm1.': 'attn_norm.',
         'norm2.': 'ffn_norm.', 'linear1.': 'ffn_up.', 'linear2.': 'ffn_down.'}


def convert(safetensors: pathlib.Path, sizes: dict[str, Any], precision: str, path: pathlib.Path) -> None:
    """Writes a model with GPT-2's architecture and without a tokenizer; its matrices have the given precision."""
    weights = load_file(safetensors)
    writer = gguf.GGUFWriter(str(path), 'gpt2')
    writer.add_context_length(weights['tgt_position.weight'].shape[0])
    writer.add_embedding_length(sizes['d_model'])
    writer.add_feed_forward_length(weights['decoder.layers.0.linear1.weight'].shape[0])
    writer.add_block_count(sizes['layers'])
    writer.add_head_count(sizes['heads'])
    writer.add_layer_norm_eps(sizes['norm_eps'])
    writer.add_vocab_size(sizes['vocabulary'])
    writer.add_tokenizer_model('no_vocab')

    def add(name: str, values: Array, matrix: bool) -> None:
        kind = TYPES[precision] if matrix else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)

    add('token_embd.weight', weights['tgt_embed.weight'], True)
    add('position_embd.weight', weights['tgt_position.weight'], False)
    for part in ('weight', 'bias'):
        add(f'output_norm.{part}', weights[f'decoder.norm.{part}'], False)
        for number in range(sizes['layers']):
            for plumb, name in LAYER.items():
                values = weights[f'decoder.layers.{number}.{plumb}{part}']
                add(f'blk.{number}.{name}{part}', values, values.ndim == 2)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class BatchedGeneration(Generation):
    """All prompts are sequences of one batch."""

    def __init__(self, work: dict[str, Any], batch: dict[str, Any], model: Any, precision: str,
                 threads: int) -> None:
        super().__init__(work, batch)
        self.vocabulary = work['sizes']['vocabulary']
        self.prompts, self.continuations = batch['prompts'], batch['continuations']
        places = self.rows * (self.length + self.tokens)
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_ubatch = places, places, 512  # 512: llama.cpp's default
        settings.n_seq_max = self.rows
        settings.kv_unified = False
        if precision == 'float32':
            settings.type_k = settings.type_v = gguf.GGMLQuantizationType.F32
        settings.n_threads = settings.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(model, settings)
        if not self.context:
            raise ValueError('llama.cpp cannot make a context')
        self.batch = llama_cpp.llama_batch_init(places, 0, self.rows)

    def run(self, texts: list[list[int]], position: int, all_logits: bool) -> Array:
        """Reads more tokens of each sequence from `position` on. Returns the logits of the last token of each, or of
        all: (rows, vocabulary), (rows, tokens, vocabulary)."""
        wanted = []
        place = 0
        for row, ids in enumerate(texts):
            for i, token in enumerate(ids):
                self.batch.token[place] = token
                self.batch.pos[place] = position + i
                self.batch.n_seq_id[place] = 1
                self.batch.seq_id[place][0] = row
                self.batch.logits[place] = all_logits or i + 1 == len(ids)
                if self.batch.logits[place]:
                    wanted.append(place)
                place += 1
        self.batch.n_tokens = place
        if llama_cpp.llama_decode(self.context, self.batch) != 0:
            raise ValueError('llama_decode failed')
        rows = [np.ctypeslib.as_array(
            ctypes.cast(llama_cpp.llama_get_logits_ith(self.context, i), ctypes.POINTER(ctypes.c_float)),
            (self.vocabulary,)) for i in wanted]
        return np.stack(rows) if not all_logits else np.stack(rows).reshape(len(texts), -1, self.vocabulary)

    def clear(self) -> None:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)

    def generate(self, tokens: int) -> list[list[int]]:
        self.clear()
        found: list[list[int]] = [[] for _ in self.prompts]
        texts = self.prompts
        for i in range(tokens):
            best = self.run(texts, 0 if i == 0 else self.length + i - 1, False).argmax(axis=1)
            for row, token in enumerate(best):
                found[row].append(int(token))
            texts = [[int(token)] for token in best]
        return found

    def scores(self) -> list[float]:
        self.clear()
        texts = [prompt + more for prompt, more in zip(self.prompts, self.continuations)]
        logits = self.run([text[:-1] for text in texts], 0, True).astype(np.float64)
        found = []
        for row, continuation in enumerate(self.continuations):
            scores = logits[row, self.length - 1:]
            largest = scores.max(1, keepdims=True)
            normalized = scores - largest - np.log(np.exp(scores - largest).sum(1, keepdims=True))
            found.append(float(sum(normalized[i, token] for i, token in enumerate(continuation))))
        return found


def prepare() -> tuple[Mapping[str, Callable[[], Figures]], Figures]:
    options = arguments(__doc__)
    work = read_work(options.export)
    llama_cpp.llama_backend_init()
    generations = {}
    for precision in TYPES:
        path = options.export / f'{precision}.gguf'
        convert(options.export / 'model.safetensors', work['sizes'], precision, path)
        model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
        if not model:
            raise ValueError(f'llama.cpp cannot read {path}')
        for batch in work['batches']:
            generation = BatchedGeneration(work, batch, model, precision, options.threads)
            if precision == 'float32':
                generation.check()
            generations[f'{precision}, {batch["rows"]} rows'] = generation
    works = {name: generation.figures for name, generation in generations.items()}
    return works, {'versions': {'llama.cpp': f'of llama-cpp-python {llama_cpp.__version__}'}}


if __name__ == '__main__':
    take_turns(prepare)
