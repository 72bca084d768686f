#!/usr/bin/env python3
"""Reference values of the PyPI package tokenizers for tests/text/hugging_face_test.cpp.

Writes tests/golden/tokenizers.json: small tokenizers of every kind, trained on the text below, and what the package gives
for lines in many scripts.

    pip install tokenizers
    scripts/golden/tokenizer_files.py

With --output DIRECTORY it writes one file per tokenizer there, with more lines and larger vocabularies, and also for
tokenizers in folders; PLUMB_TOKENIZERS=DIRECTORY build/tests/test_text --gtest_filter='HuggingFace*' compares.

    scripts/golden/tokenizer_files.py --output /tmp/reference --lines 10000 --corpus TEXT… --folder MODEL…
"""
import argparse
import json
import pathlib
import random
import time
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]

TEXT = '''The small ship sails to port with 1,250.5 tons of grain, and it doesn't fit; the crew (of seven) says "no".
We'll see what they've done, I'm sure: it's 28-year-old rope, isn't it? The rain in the port rains on the ships.
Das grüne Haus steht über dem Fluß und kostet 3.499,99 €. Äpfel, Öl und Straßen. Das Haus, das Schiff, die Häuser.
маленький корабль плывёт в порт , «завтра» пять-шесть. Ёлка стоит 12,5 рублей — да. корабли плывут
το μικρό πλοίο πλέει στο λιμάνι · κοστίζει 7,5 ευρώ Σοφία ΟΔΟΣ
小船今天驶向港口，“粮食”有三千吨（大约）价格是12.5元。船港口
小さな船が港へ行く、「明日」カタカナ・ｶﾅは5キロです。
작은 배가 항구로 갑니다, 내일은 3,000 톤 입니다. 배가 갑니다
السفينة الصغيرة تبحر إلى الميناء ، غدا ٣٫٥ طن
छोटा जहाज़ बंदरगाह को जाता है, कल १२.५ टन। नमस्ते
ไทย ภาษาไทยไม่มีช่องว่าง เรือเล็ก ১২৩ বাংলা தமிழ் ગુજરાતી ქართული עברית Tiếng Việt được
def sail(ship, port=None):\n    if ship.size > 10:\n\t\treturn [x ** 2 for x in range(port)]\n
naïve café résumé coöperate Łódź İstanbul ışık ŒUVRE ﬁnance ½ ² ① Ⅻ 😀 👍🏽 👨‍👩‍👧 🇩🇪 🇫🇷 ♥️'''.split('\n')

# Single characters and sequences that the rules treat specially.
PIECES = [
    ' ', '  ', '   ', '\t', '\n', '\r\n', '\r', '\n\n', '\u00a0', '\u3000', '\u2003', '\u200b', '\u200d', '\u2028',
    '\u0085', '\x0b', '\x0c', '\x1c', '\x1f', '\ufeff', '\u00ad', '\u2060', '\u180e', '\x00', '\x01', '\x7f', '\x9f',
    '\ufffd', '\ue000', '\U000f0000', '\u0301', 'e\u0301', 'q\u0307\u0323', '\u1e9b\u0323', 'Å', 'Å', 'Ω', 'ﬃ', '㎏', 'ｱﾞ', '한', '가',
    '\u0939\u093f', 'क्ष', 'ก็', 'ơ̛', 'ẞ', 'ǅ', 'ς', 'İ', 'ı', '\u0345', '👨‍👩‍👧‍👦', '🏳️‍🌈', '🇺🇸🇬', '☺️', '﷽', '⑳', '五', '𠮷', '\U0002b81d',
    '々', '〆', 'ー', 'ｶﾞ', '－', '～', '！', '。', '、', '…', '—', '„', '“', "'", "'s", "'LL", "'Re", '’s', 'n\'t', ' .', ' ,', ' !', '``', '^', '~', '|',
    '<s>', '</s>', '<unk>', '<pad>', '[CLS]', '[SEP]', '[MASK]', '[UNK]', '<|endoftext|>', '<mask>', ' <mask> ', '<0x41>', '##ing',
    '▁', '▁▁a', 'Ġ', 'Ċ', 'Ā', '0', '007', '12345678', '3.14', '٣', '१२', 'Ⅷ', '²', '1e-5', '__init__', 'camelCase', 'HTTPServer', 'a_b', 'x' * 30,
    'http://example.org/?q=1&r=%20#z', 'user@example.com', '#tag', '@name', '$5', '€5', 'A' * 101, '好' * 120, '\u0e33', '\u0958', '\u1100\u1161\u11a8',
]
WORD = 'newtoken'


def random_line(source, text):
    """A few words of the text with various separators, or characters from anywhere in Unicode."""
    kind = source.random()
    if kind < 0.35:
        words = source.choice(text).split(' ')
        begin = source.randrange(len(words))
        line = words[begin:begin + source.randrange(1, 30)]
        return ''.join(word + (' ' if source.random() < 0.9 else source.choice(PIECES)) for word in line)
    if kind < 0.75:
        parts = []
        for _ in range(source.randrange(1, 12)):
            parts.append(source.choice(PIECES) if source.random() < 0.6 else source.choice(source.choice(text).split(' ')))
            if source.random() < 0.4:
                parts.append(' ')
        return ''.join(parts)
    blocks = [(0x20, 0x7f), (0x80, 0x24f), (0x250, 0x52f), (0x530, 0x8ff), (0x900, 0xdff), (0xe00, 0x11ff), (0x1200, 0x1fff),
              (0x2000, 0x2bff), (0x2c00, 0x2fff), (0x3000, 0x33ff), (0x3400, 0x9fff), (0xa000, 0xabff), (0xac00, 0xd7a3),
              (0xf900, 0xffff), (0x10000, 0x11fff), (0x1d000, 0x1dfff), (0x1f000, 0x1faff), (0x20000, 0x2fa1f)]
    block = source.choice(blocks)
    length = source.randrange(1, 25)
    if source.random() < 0.3:
        block = source.choice(blocks)
    drawn = ''.join(chr(source.randrange(*block)) if source.random() < 0.85 else ' ' for _ in range(length))
    # Leaves out unassigned characters, which depend on the Unicode version of a library.
    return ''.join(c for c in drawn if unicodedata.category(c) != 'Cn')


def lines_of(count, text, seed):
    source = random.Random(seed)
    lines = ['', ' ', '  ', 'a', '\n', '\x00', '▁'] + text[:len(TEXT)] + PIECES
    while len(lines) < count:
        lines.append(random_line(source, text))
    return lines[:count]


GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = GPT4.replace('{1,3}', '')


def trained(tokenizer, trainer, text):
    tokenizer.train_from_iterator(text, trainer)
    return tokenizer


def gpt2(text, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return trained(tokenizer, trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=['<|endoftext|>'],
                                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), text)


def roberta(text, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    names = ['<s>', '<pad>', '</s>', '<unk>', AddedToken('<mask>', lstrip=True, special=True)]
    tokenizer = trained(tokenizer, trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=names), text)
    tokenizer.post_processor = processors.RobertaProcessing(('</s>', 2), ('<s>', 0))
    tokenizer.add_tokens([AddedToken(WORD, single_word=True), AddedToken('port', rstrip=True, normalized=False)])
    return tokenizer


def llama3(text, size):
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(GPT4), 'isolated'),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer = trained(tokenizer, trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), text)
    tokenizer.add_special_tokens(['<|begin_of_text|>', '<|endoftext|>'])
    begin = tokenizer.token_to_id('<|begin_of_text|>')
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single='<|begin_of_text|> $A', pair='<|begin_of_text|> $A <|begin_of_text|>:1 $B:1',
                                      special_tokens=[('<|begin_of_text|>', begin)])])
    return tokenizer


def qwen(text, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN), 'isolated'),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer = trained(tokenizer, trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), text)
    tokenizer.add_tokens([AddedToken('<|endoftext|>', special=True, normalized=False), AddedToken('café')])
    return tokenizer


def with_bytes(tokenizer, specials):
    """The vocabulary with the special tokens and byte tokens before all others."""
    document = json.loads(tokenizer.to_str())
    vocabulary = document['model']['vocab']
    first = specials + [f'<0x{byte:02X}>' for byte in range(256)]
    names = first + [token for token, _ in sorted(vocabulary.items(), key=lambda entry: entry[1]) if token not in first]
    document['model']['vocab'] = {token: i for i, token in enumerate(names)}
    return document


def llama2(text, size):
    tokenizer = Tokenizer(models.BPE(unk_token='<unk>', fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend('▁'), normalizers.Replace(' ', '▁')])
    words = [f' {word}' for line in text for word in line.split(' ')]
    tokenizer = trained(tokenizer, trainers.BpeTrainer(vocab_size=size, show_progress=False, limit_alphabet=90), words)
    document = with_bytes(tokenizer, ['<unk>', '<s>', '</s>'])
    document['model']['byte_fallback'] = True
    # As in converted models: every way to combine two tokens into a token is a merge.
    vocabulary = document['model']['vocab']
    merges = []
    for token in sorted(vocabulary, key=vocabulary.get):
        if not token.startswith('<'):
            pairs = [(token[:i], token[i:]) for i in range(1, len(token))]
            merges += [list(pair) for pair in pairs if pair[0] in vocabulary and pair[1] in vocabulary]
    document['model']['merges'] = merges
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.add_special_tokens(['<unk>', '<s>', '</s>'])
    tokenizer.decoder = decoders.Sequence([decoders.Replace('▁', ' '), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(' ', 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing(single='<s> $A', pair='<s> $A <s>:1 $B:1', special_tokens=[('<s>', 1)])
    return tokenizer


def mistral(text, size):
    tokenizer = llama2(text, size)
    tokenizer.normalizer = None
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme='first', split=False)
    return tokenizer


def bert(text, size, lowercase=True):
    tokenizer = Tokenizer(models.WordPiece(unk_token='[UNK]'))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer = trained(tokenizer, trainers.WordPieceTrainer(vocab_size=size, show_progress=False,
                                                            special_tokens=['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']), text)
    if lowercase:
        tokenizer.post_processor = processors.TemplateProcessing(
            single='[CLS]:0 $A:0 [SEP]:0', pair='[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1', special_tokens=[('[CLS]', 2), ('[SEP]', 3)])
    else:
        tokenizer.post_processor = processors.BertProcessing(('[SEP]', 3), ('[CLS]', 2))
    return tokenizer


def cased_bert(text, size):
    return bert(text, size, lowercase=False)


def precompiled(rules):
    """Compiled rules as SentencePiece stores them: a double array with a separate unit for each byte."""
    import base64
    import struct
    tree, strings = {}, b''
    for key, value in rules.items():
        node = tree
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[None] = len(strings)
        strings += value.encode() + b'\0'
    units = {0: 0}
    used = set()

    def place(node, at):
        labels = [0 if byte is None else byte for byte in node]
        base = 256
        while any((base ^ label) in units for label in labels) or base in used:
            base += 1
        used.add(base)
        offset = at ^ base
        assert offset < 1 << 21
        units[at] = units.get(at, 0) & 0xFF | offset << 10 | (0x100 if None in node else 0)
        for byte, child in node.items():
            if byte is None:
                units[base] = 1 << 31 | child
            else:
                units[base ^ byte] = byte
        for byte, child in node.items():
            if byte is not None:
                place(child, base ^ byte)

    place(tree, 0)
    array = [units.get(i, 0) for i in range(max(units) + 256)]
    # The reader adds the offset of a unit to the unit's own index.
    return base64.b64encode(struct.pack(f'<I{len(array)}I', 4 * len(array), *array) + strings).decode()


RULES = {'\t': ' ', '\n': ' ', '\r': ' ', '\u00a0': ' ', '\u3000': ' ', '\u200b': ' ', '\x00': '', '\x01': '', '\x7f': '', '\u00ad': '',
         'ﬁ': 'fi', 'ﬃ': 'ffi', '½': '1⁄2', '²': '2', '①': '1', '㎏': 'kg', 'e\u0301': 'é', 'Å': 'Å', 'ｶ': 'カ', 'ｶﾞ': 'ガ', '…': '...', '！': '!', '한': '한',
         '😀': ':)', '\u0301': '', 'Ⅷ': 'VIII'}


def t5(text, size):
    """As in T5 and XLM-R: unigram."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer = trained(tokenizer, trainers.UnigramTrainer(vocab_size=size, show_progress=False, unk_token='<unk>',
                                                          special_tokens=['<pad>', '</s>', '<unk>']), text)
    document = json.loads(tokenizer.to_str())
    document['normalizer'] = {'type': 'Sequence', 'normalizers': [
        {'type': 'Precompiled', 'precompiled_charsmap': precompiled(RULES)},
        {'type': 'Replace', 'pattern': {'Regex': ' {2,}'}, 'content': ' '}]}
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.post_processor = processors.TemplateProcessing(single='$A </s>', pair='$A </s> $B </s>', special_tokens=[('</s>', 1)])
    return tokenizer


def unigram_bytes(text, size):
    """Unigram with byte fallback, a space only before the first word, and rules that may drop the first character."""
    tokenizer = t5(text, size)
    document = json.loads(tokenizer.to_str())
    first = [[token, 0.0] for token in ['<pad>', '</s>', '<unk>'] + [f'<0x{byte:02X}>' for byte in range(256)]]
    document['model']['vocab'] = first + document['model']['vocab'][3:]
    document['model']['byte_fallback'] = True
    document['pre_tokenizer'] = {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'first', 'split': True}
    document['normalizer'] = {'type': 'Sequence', 'normalizers': [
        {'type': 'Nmt'}, {'type': 'NFKC'}, {'type': 'Strip', 'strip_left': True, 'strip_right': True},
        {'type': 'Precompiled', 'precompiled_charsmap': precompiled(RULES)}]}
    document['decoder'] = {'type': 'Sequence', 'decoders': [
        {'type': 'ByteFallback'}, {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'first', 'split': True}]}
    return Tokenizer.from_str(json.dumps(document))


def words(text, size):
    """Whole words between symbols, without case and accents."""
    tokenizer = Tokenizer(models.WordLevel(unk_token='[UNK]'))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)])
    return trained(tokenizer, trainers.WordLevelTrainer(vocab_size=size, show_progress=False, special_tokens=['[UNK]']), text)


def word_ends(text, size):
    """The original byte-pair encoding: a suffix ends a word; not byte-level."""
    tokenizer = Tokenizer(models.BPE(unk_token='<unk>', end_of_word_suffix='</w>'))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation('contiguous')])
    tokenizer.decoder = decoders.BPEDecoder(suffix='</w>')
    return trained(tokenizer, trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=['<unk>'],
                                                  end_of_word_suffix='</w>', limit_alphabet=100), text)


def word_starts(text, size):
    """A prefix continues a word; unknown characters are fused; five kinds of splits."""
    tokenizer = Tokenizer(models.BPE(unk_token='<unk>', continuing_subword_prefix='##', fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(Regex('[aeiou]{2}'), '')
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.CharDelimiterSplit('-'), pre_tokenizers.Split(' ', 'merged_with_next'),
        pre_tokenizers.Split(Regex(r'[,.;]'), 'merged_with_previous'), pre_tokenizers.Split(Regex(r'\w+'), 'isolated', invert=True),
        pre_tokenizers.UnicodeScripts(), pre_tokenizers.Digits(), pre_tokenizers.FixedLength(9)])
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    return trained(tokenizer, trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=['<unk>'],
                                                  continuing_subword_prefix='##', limit_alphabet=100), text)


def byte_normalizer(text, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.ByteLevel()
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.CTC(pad_token='xx', word_delimiter_token='y')])
    tokenizer.pre_tokenizer = pre_tokenizers.Split('Ġ', 'removed')
    return trained(tokenizer, trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), text)


KINDS = [gpt2, roberta, llama3, qwen, llama2, mistral, bert, cased_bert, t5, unigram_bytes, words, word_ends, word_starts, byte_normalizer]


def reference(tokenizer, lines, every):
    """Ids without special tokens for all lines; all other results only for every `every`-th line."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    result = []
    for i, line in enumerate(lines):
        ids = tokenizer.encode(line, add_special_tokens=False).ids
        entry = {'text': line, 'ids': ids, 'decoded': tokenizer.decode(ids)}
        if i % every == 0:
            whole = tokenizer.encode(line)
            pair = tokenizer.encode(line, lines[i // 2])
            entry |= {'input': whole.ids, 'segments': whole.type_ids, 'all': tokenizer.decode(whole.ids, skip_special_tokens=False),
                      'second': lines[i // 2], 'pair': pair.ids, 'pair_segments': pair.type_ids}
        result.append(entry)
    return result


def tokenizer_in(folder):
    from transformers import AutoTokenizer, BertTokenizer, GPT2Tokenizer
    if (folder / 'tokenizer.json').exists():
        return Tokenizer.from_file(str(folder / 'tokenizer.json'))
    if (folder / 'vocab.txt').exists():
        return BertTokenizer.from_pretrained(str(folder))._tokenizer
    if (folder / 'merges.txt').exists():
        return GPT2Tokenizer.from_pretrained(str(folder))._tokenizer
    return AutoTokenizer.from_pretrained(str(folder))._tokenizer


def speed(tokenizer, lines):
    """Tokens per second in one thread, the best of three rounds, and the number of tokens."""
    best = 0
    for _ in range(3):
        start = time.perf_counter()
        count = sum(len(tokenizer.encode(line, add_special_tokens=False).ids) for line in lines)
        best = max(best, count / (time.perf_counter() - start))
    return best, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--output', type=pathlib.Path, help='a directory for a large comparison')
    parser.add_argument('--lines', type=int, default=10000)
    parser.add_argument('--vocabulary', type=int, default=8000)
    parser.add_argument('--corpus', type=pathlib.Path, nargs='*', default=[], help='text to train on and to take lines from')
    parser.add_argument('--folder', type=pathlib.Path, nargs='*', default=[], help='folders with tokenizers of models')
    parser.add_argument('--characters', action='store_true', help='the lines are all characters below U+20000')
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()

    if options.output is None:
        cases = []
        for i, kind in enumerate(KINDS):
            tokenizer = kind(TEXT, 320)
            document = json.loads(tokenizer.to_str())
            lines = lines_of(400, TEXT, options.seed)[i % 7:280:7] + lines_of(400, TEXT, options.seed + i)[-10:]
            lines = [line for line in lines if len(line) < 200]
            cases.append({'name': kind.__name__, 'tokenizer': document, 'lines': reference(tokenizer, lines, 12)})
        with open(ROOT / 'tests/golden/tokenizers.json', 'w', encoding='utf-8') as file:
            json.dump({'cases': cases}, file, separators=(',', ':'), ensure_ascii=False)
        return
    text = list(TEXT)
    for path in options.corpus:
        text += [line for line in path.read_text(encoding='utf-8', errors='replace').split('\n') if line.strip()][:30000]
    lines = lines_of(options.lines, text, options.seed)
    if options.characters:
        characters = [chr(c) for c in range(0x20, 0x20000)
                      if not 0xd800 <= c < 0xe000 and unicodedata.category(chr(c)) != 'Cn']
        lines = ['a' + ''.join(characters[i:i + 40]) for i in range(0, len(characters), 40)]
    options.output.mkdir(parents=True, exist_ok=True)
    cases = [(kind.__name__, kind(text, options.vocabulary), None) for kind in KINDS]
    cases += [(str(folder).strip('/').replace('/', '_'), tokenizer_in(folder), folder) for folder in options.folder]
    for name, tokenizer, folder in cases:
        case = {'name': name, 'lines': reference(tokenizer, lines, 1)}
        if folder is None:
            tokenizer.save(str(options.output / f'{name}.tokenizer'))
        case['folder'] = str(folder.resolve()) if folder else str((options.output / f'{name}.tokenizer').resolve())
        rate, count = speed(tokenizer, text[-5000:])
        case['speed'] = {'lines': text[-5000:], 'tokens': count, 'tokens_per_second': rate}
        print(f'{name}: {tokenizer.get_vocab_size()} tokens, {rate:.0f} tokens/s', flush=True)
        with open(options.output / f'{name}.json', 'w', encoding='utf-8') as file:
            json.dump({'cases': [case]}, file, separators=(',', ':'))


if __name__ == '__main__':
    main()
