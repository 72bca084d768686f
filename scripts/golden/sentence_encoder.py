#!/usr/bin/env python3
"""Reference values of the PyPI packages transformers and sentence-transformers for
tests/interop/sentence_encoder_test.cpp.

Without options, writes tests/golden/sentence_encoder: a tiny BERT with random weights and a WordPiece vocabulary as
sentence-transformers saves it, and for a few lines in many scripts
  texts.json             the lines, and the folder of the model, relative to this file or absolute
  reference.safetensors  `ids` and `lengths`: the token ids of all lines, concatenated, and their number per line;
                         `hidden`: the state of each token in float64;
                         `vectors`: the vector of each line, in float64

    pip install torch transformers sentence-transformers tokenizers
    scripts/golden/sentence_encoder.py

With --model it does the same for a sentence encoder in a folder, with more lines, and
PLUMB_SENTENCE_ENCODER=DIRECTORY build/tests/test_interop --gtest_filter='SentenceEncoder*' compares:

    scripts/golden/sentence_encoder.py --model FOLDER --output /tmp/reference --lines 2000 --corpus TEXT…
"""
import argparse
import json
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers import __version__ as version
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizer_files import TEXT, lines_of
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers_models import ROOT, fill_randomly

SPECIALS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
LENGTH = 40  # of the tiny encoder's texts; some are truncated


def word_piece(folder):
    tokenizer = Tokenizer(models.WordPiece(unk_token='[UNK]'))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(TEXT, trainers.WordPieceTrainer(vocab_size=300, show_progress=False,
                                                                  special_tokens=SPECIALS))
    tokenizer.post_processor = processors.BertProcessing(('[SEP]', 3), ('[CLS]', 2))
    names = {'unk_token': '[UNK]', 'sep_token': '[SEP]', 'pad_token': '[PAD]', 'cls_token': '[CLS]',
             'mask_token': '[MASK]'}
    fast = transformers.BertTokenizerFast(tokenizer_object=tokenizer, model_max_length=LENGTH, **names)
    fast.save_pretrained(folder)
    return fast.vocab_size


def make_tiny(folder):
    """Writes a folder as sentence-transformers saves it."""
    with tempfile.TemporaryDirectory() as plain:
        size = word_piece(plain)
        config = transformers.BertConfig(vocab_size=size, hidden_size=12, intermediate_size=20, num_hidden_layers=2,
                                         num_attention_heads=3, max_position_embeddings=48)
        model = transformers.BertModel(config).double()
        fill_randomly(model, 0.0, torch.Generator().manual_seed(1))
        model.float().save_pretrained(plain)
        encoder = Transformer(plain, max_seq_length=LENGTH)
        SentenceTransformer(modules=[encoder, Pooling(12, 'mean'), Normalize()]).save(str(folder), create_model_card=False)


def states(model, rows):
    """Runs each row separately, without padding."""
    with torch.no_grad():
        return torch.cat([model(torch.tensor(row)[None]).last_hidden_state[0] for row in rows])


def reference(folder, texts):
    encoder = SentenceTransformer(str(folder), device='cpu')
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    rows = [tokenizer(text, truncation=True, max_length=encoder.max_seq_length)['input_ids'] for text in texts]
    load = transformers.AutoModel.from_pretrained
    single = states(load(folder, attn_implementation='eager').float().eval(), rows)
    hidden = states(load(folder, attn_implementation='eager').double().eval(), rows)
    print(f'{len(texts)} lines, {len(hidden)} tokens; {sum(len(row) == encoder.max_seq_length for row in rows)} lines '
          f'of the full length; hidden states up to {hidden.abs().max():.2f}; float32 differs from float64 by '
          f'{(single - hidden).abs().max():.1e}')
    vectors = encoder.double().encode(texts, convert_to_tensor=True, show_progress_bar=False)
    return {'ids': torch.tensor([i for row in rows for i in row]), 'lengths': torch.tensor([len(row) for row in rows]),
            'hidden': hidden, 'vectors': vectors}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--model', type=pathlib.Path, help='folder of a sentence encoder (default: a tiny one)')
    parser.add_argument('--output', type=pathlib.Path, default=ROOT / 'tests' / 'golden' / 'sentence_encoder',
                        help='folder to write (default: %(default)s)')
    parser.add_argument('--lines', type=int, default=80, help='how many lines (default: %(default)s)')
    parser.add_argument('--corpus', type=pathlib.Path, nargs='+', default=[], help='text from which lines are taken, too')
    arguments = parser.parse_args()
    if arguments.corpus and arguments.model is None:
        parser.error('--corpus needs --model: the committed lines are made up')

    transformers.utils.logging.disable_progress_bar()
    output = arguments.output
    output.mkdir(parents=True, exist_ok=True)
    model = arguments.model
    if model is None:
        model = output / 'model'
        make_tiny(model)
    corpora = [[line for line in path.read_text().split('\n') if line] for path in arguments.corpus]
    share = arguments.lines // 2 // max(1, len(corpora))
    texts = [text for lines in corpora for text in lines[::max(1, len(lines) // share)][:share]]
    texts += lines_of(arguments.lines - len(texts), TEXT, seed=5)
    values = reference(model, texts)
    save_file({name: value.contiguous() for name, value in values.items()}, output / 'reference.safetensors')
    place = str(model.resolve()) if arguments.model else 'model'
    (output / 'texts.json').write_text(json.dumps(
        {'made_by': {'script': 'scripts/golden/sentence_encoder.py', 'torch': torch.__version__.split('+')[0],
                     'transformers': transformers.__version__, 'sentence-transformers': version},
         'model': place, 'texts': texts}, ensure_ascii=False, indent=1) + '\n')
    for file in output.rglob('*'):
        file.chmod(0o755 if file.is_dir() else 0o644)


if __name__ == '__main__':
    main()
