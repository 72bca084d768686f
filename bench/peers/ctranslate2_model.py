"""Converts models of Plumb (safetensors) to CTranslate2's format: an encoder-decoder (Pre-LN, ReLU, sinusoidal positions),
and a language model with GPT-2's architecture. Tokens are named by their ids: "17"."""
import pathlib
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec
from numpy.typing import NDArray
from safetensors.numpy import load_file

Array = NDArray[np.float32]
PAD, BOS, EOS, UNKNOWN = 0, 1, 2, 3  # Plumb's special tokens


class Converter:
    """A CTranslate2 specification filled with the parameters of Plumb's model."""

    def __init__(self, weights: dict[str, Array], sizes: dict[str, Any]) -> None:
        self.weights, self.sizes = weights, sizes

    def linear(self, spec: Any, name: str, rows: slice = slice(None), separator: str = '.') -> None:
        spec.weight = self.weights[f'{name}{separator}weight'][rows]
        spec.bias = self.weights[f'{name}{separator}bias'][rows]

    def norm(self, spec: Any, name: str) -> None:
        spec.gamma, spec.beta = self.weights[name + '.weight'], self.weights[name + '.bias']

    def self_attention(self, spec: Any, name: str) -> None:
        self.linear(spec.linear[0], name + '.in_proj', separator='_')
        self.linear(spec.linear[1], name + '.out_proj')

    def cross_attention(self, spec: Any, name: str) -> None:
        width = self.sizes['d_model']
        self.linear(spec.linear[0], name + '.in_proj', slice(None, width), '_')
        self.linear(spec.linear[1], name + '.in_proj', slice(width, None), '_')
        self.linear(spec.linear[2], name + '.out_proj')

    def layer(self, spec: Any, name: str, decoder: bool) -> None:
        norms = [spec.self_attention.layer_norm, spec.ffn.layer_norm]
        self.self_attention(spec.self_attention, name + '.self_attn')
        if decoder:
            norms.insert(1, spec.attention.layer_norm)
            self.cross_attention(spec.attention, name + '.multihead_attn')
        for number, norm in enumerate(norms, start=1):
            self.norm(norm, f'{name}.norm{number}')
        self.linear(spec.ffn.linear_0, name + '.linear1')
        self.linear(spec.ffn.linear_1, name + '.linear2')

    def stack(self, spec: Any, name: str) -> None:
        for number, layer in enumerate(spec.layer):
            self.layer(layer, f'{name}.layers.{number}', decoder=name == 'decoder')
        self.norm(spec.layer_norm, name + '.norm')


def waves(length: int, width: int) -> Array:
    """(length, width): sines in the even features, cosines in the odd ones (Vaswani et al. 2017)."""
    angles = np.arange(length)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    return np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(length, width).astype(np.float32)


def convert(safetensors: pathlib.Path, sizes: dict[str, Any], directory: pathlib.Path) -> None:
    """Writes the model of `safetensors` into `directory`, in float32; CTranslate2 quantizes when loading."""
    converter = Converter(load_file(safetensors), sizes)
    spec = transformer_spec.TransformerSpec.from_config(
        sizes['layers'], sizes['heads'], pre_norm=True, activation=common_spec.Activation.RELU)
    spec.config.layer_norm_epsilon = sizes['norm_eps']
    spec.config.add_source_eos = True
    names = [str(i) for i in range(sizes['vocabulary'])]
    spec.config.bos_token, spec.config.eos_token = names[BOS], names[EOS]
    spec.config.unk_token, spec.config.decoder_start_token = names[UNKNOWN], names[BOS]
    converter.stack(spec.encoder, 'encoder')
    converter.stack(spec.decoder, 'decoder')
    spec.encoder.embeddings[0].weight = converter.weights['src_embed.weight']
    spec.decoder.embeddings.weight = converter.weights['tgt_embed.weight']
    spec.decoder.projection.weight = converter.weights['output.weight']
    positions = waves(1024, sizes['d_model'])
    spec.encoder.position_encodings.encodings = positions
    spec.decoder.position_encodings.encodings = positions
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.validate()
    directory.mkdir(parents=True, exist_ok=True)
    spec.save(str(directory))


def convert_decoder(safetensors: pathlib.Path, sizes: dict[str, Any], directory: pathlib.Path) -> None:
    """The same for a language model: Pre-LN, approximate GELU, learned positions, tied output matrix."""
    converter = Converter(load_file(safetensors), sizes)
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        sizes['layers'], sizes['heads'], pre_norm=True, activation=common_spec.Activation.GELUTanh)
    spec.config.layer_norm_epsilon = sizes['norm_eps']
    names = [str(i) for i in range(sizes['vocabulary'])]
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = names[BOS], names[EOS], names[UNKNOWN]
    for number, layer in enumerate(spec.decoder.layer):
        converter.layer(layer, f'decoder.layers.{number}', decoder=False)
    converter.norm(spec.decoder.layer_norm, 'decoder.norm')
    spec.decoder.scale_embeddings = False
    spec.decoder.embeddings.weight = converter.weights['tgt_embed.weight']
    spec.decoder.projection.weight = converter.weights['tgt_embed.weight']
    spec.decoder.position_encodings.encodings = converter.weights['tgt_position.weight']
    spec.register_vocabulary(names)
    spec.validate()
    directory.mkdir(parents=True, exist_ok=True)
    spec.save(str(directory))


def open_generator(directory: pathlib.Path, precision: str, generators: int, threads: int) -> ctranslate2.Generator:
    return ctranslate2.Generator(str(directory), device='cpu', compute_type=precision, inter_threads=generators,
                                 intra_threads=threads)


def open_translator(directory: pathlib.Path, precision: str, translators: int, threads: int) -> ctranslate2.Translator:
    return ctranslate2.Translator(str(directory), device='cpu', compute_type=precision, inter_threads=translators,
                                  intra_threads=threads)
