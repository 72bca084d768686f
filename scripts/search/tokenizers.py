#!/usr/bin/env python3
"""Random tokenizers and what `transformers` makes of them, for tests/search/tokenizers_search_test.cpp.

Writes a list of cases to standard output. A case is a folder with a tokenizer.json and the files beside it, drawn from
the seed and the case's number, with ids and decoded text of random lines as `AutoTokenizer.from_pretrained` gives them.
The tokenizer.json is one of those in tests/golden/tokenizers.json ("base") with other sections. Where `transformers`
fails, a case or line has an "error".

    pip install transformers
    scripts/search/tokenizers.py --seed 1 --first 0 --cases 20
    scripts/search/tokenizers.py --seed 1 --first 7 --cases 1 --folder DIRECTORY     # writes the folder as well
    scripts/search/tokenizers.py --golden     # writes tests/golden/tokenizer_settings.json
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import unicodedata

os.environ['HF_HUB_OFFLINE'] = '1'
os.environ['TRANSFORMERS_VERBOSITY'] = 'critical'
os.environ['RUST_BACKTRACE'] = '0'
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT / 'scripts/golden')  # instead of this folder, where this file has the package's name
from tokenizer_files import GPT4, PIECES, RULES, TEXT, precompiled, random_line  # noqa: E402

CLASSES = {
    'gpt2': ['GPT2Tokenizer', 'GPTNeoXTokenizer', 'RobertaTokenizer', 'Qwen2Tokenizer'],
    'roberta': ['RobertaTokenizer', 'BartTokenizer', 'GPT2Tokenizer'],
    'llama3': ['PreTrainedTokenizerFast', 'LlamaTokenizer', 'GPT2Tokenizer', 'Qwen2Tokenizer'],
    'qwen': ['Qwen2Tokenizer', 'PreTrainedTokenizerFast', 'GPTNeoXTokenizer'],
    'llama2': ['LlamaTokenizer', 'GemmaTokenizer', 'PreTrainedTokenizerFast'],
    'mistral': ['LlamaTokenizer', 'GemmaTokenizer', 'PreTrainedTokenizerFast'],
    'bert': ['BertTokenizer', 'DistilBertTokenizer', 'ElectraTokenizer'],
    'cased_bert': ['BertTokenizer', 'DistilBertTokenizer'],
    't5': ['T5Tokenizer', 'XLMRobertaTokenizer', 'PreTrainedTokenizerFast'],
    'unigram_bytes': ['XLMRobertaTokenizer', 'T5Tokenizer', 'PreTrainedTokenizerFast'],
}
OWN_CLASSES = {'BertTokenizer', 'DistilBertTokenizer', 'GPT2Tokenizer', 'GPTNeoXTokenizer', 'RobertaTokenizer',
               'XLMRobertaTokenizer', 'T5Tokenizer', 'LlamaTokenizer', 'Qwen2Tokenizer'}  # with rules in Plumb
IMPORTED_TYPES = {'bert', 'distilbert', 'gpt2', 'gpt_neox', 'llama', 'marian', 'qwen2', 'qwen3', 'roberta', 't5', 'xlm-roberta'}
MODEL_TYPES = ['bert', 'distilbert', 'roberta', 'bart', 'xlm-roberta', 'gpt2', 'gptj', 'gpt_neox', 'llama', 'mistral', 'qwen2',
               'qwen3', 'gemma', 'stablelm', 't5', 'olmo2', 'opt', 'none']
NAMES = ['bos_token', 'eos_token', 'unk_token', 'sep_token', 'pad_token', 'cls_token', 'mask_token', 'image_token']
USUAL = ['<s>', '</s>', '<unk>', '<pad>', '<mask>', '[CLS]', '[SEP]', '[MASK]', '[PAD]', '[UNK]', '<|endoftext|>', '<bos>', '<eos>']
CONTENTS = [' ', '  ', '\t', '\n', 'the', ' the', 'The', 'ship', 'Ship', ' port ', 'é', 'e\u0301', 'ﬁ', 'İ', '<x>', '[X]', '<|end|>',
            'a b', 'A  B', '▁', '▁the', 'Ġ', '.', 's', '\u00a0', '船', '👍🏽', 'newtoken', 'NewToken', '1', '##s', '<0x41>']

FOUND = [(20261124, 0), (31, 62), (32, 8), (31, 157), (51, 104), (61, 90), (31, 202), (72, 67), (73, 185)]  # seeds and numbers of cases with which a search found a fault


def chance(source, share):
    return source.random() < share


def draw_normalizer(source, depth=0):
    kind = source.randrange(14 if depth == 0 else 13)
    if kind == 13:
        return {'type': 'Sequence', 'normalizers': [draw_normalizer(source, 1) for _ in range(source.randrange(1, 4))]}
    flag = lambda: chance(source, 0.5)  # noqa: E731
    return [lambda: {'type': 'Lowercase'}, lambda: {'type': 'NFC'}, lambda: {'type': 'NFD'}, lambda: {'type': 'NFKC'},
            lambda: {'type': 'NFKD'}, lambda: {'type': 'StripAccents'}, lambda: {'type': 'Nmt'},
            lambda: {'type': 'Strip', 'strip_left': flag(), 'strip_right': flag()},
            lambda: {'type': 'Prepend', 'prepend': source.choice(['▁', ' ', 'x'])},
            lambda: {'type': 'Replace', 'pattern': source.choice([{'String': ' '}, {'String': 's'}, {'Regex': ' {2,}'}, {'Regex': r'\d+'}]),
                     'content': source.choice(['▁', ' ', '', 'a'])},
            lambda: {'type': 'BertNormalizer', 'clean_text': flag(), 'handle_chinese_chars': flag(),
                     'strip_accents': source.choice([None, True, False]), 'lowercase': flag()},
            lambda: {'type': 'Precompiled', 'precompiled_charsmap': precompiled(RULES)},
            lambda: {'type': 'ByteLevel'}][kind]()


def draw_metaspace(source):
    return {'type': 'Metaspace', 'replacement': source.choice(['▁', '▁', '_']),
            'prepend_scheme': source.choice(['always', 'first', 'never']), 'split': chance(source, 0.6)}


def draw_byte_level(source):
    return {'type': 'ByteLevel', 'add_prefix_space': chance(source, 0.5), 'trim_offsets': chance(source, 0.5),
            'use_regex': chance(source, 0.6)}


BEHAVIORS = ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous']


def draw_pre_tokenizer(source, depth=0):
    kind = source.randrange(13 if depth == 0 else 11)
    if kind >= 11:
        return {'type': 'Sequence', 'pretokenizers': [draw_pre_tokenizer(source, 1) for _ in range(source.randrange(1, 4))]}
    return [lambda: {'type': 'BertPreTokenizer'}, lambda: draw_byte_level(source), lambda: draw_metaspace(source),
            lambda: {'type': 'CharDelimiterSplit', 'delimiter': source.choice([' ', '-', 's'])},
            lambda: {'type': 'Digits', 'individual_digits': chance(source, 0.5)},
            lambda: {'type': 'Punctuation', 'behavior': source.choice(BEHAVIORS)},
            lambda: {'type': 'Split', 'behavior': source.choice(BEHAVIORS), 'invert': chance(source, 0.3),
                     'pattern': source.choice([{'String': ' '}, {'Regex': r'\w+'}, {'Regex': GPT4}, {'Regex': r'\s+|\p{P}'}])},
            lambda: {'type': 'UnicodeScripts'}, lambda: {'type': 'Whitespace'}, lambda: {'type': 'WhitespaceSplit'},
            lambda: {'type': 'FixedLength', 'length': source.randrange(1, 9)}][kind]()


def draw_decoder(source, depth=0):
    kind = source.randrange(10 if depth == 0 else 9)
    if kind == 9:
        return {'type': 'Sequence', 'decoders': [draw_decoder(source, 1) for _ in range(source.randrange(1, 4))]}
    return [lambda: {'type': 'ByteLevel', 'add_prefix_space': True, 'trim_offsets': True, 'use_regex': True},
            lambda: draw_metaspace(source), lambda: {'type': 'ByteFallback'}, lambda: {'type': 'Fuse'},
            lambda: {'type': 'WordPiece', 'prefix': source.choice(['##', 'a', '']), 'cleanup': chance(source, 0.5)},
            lambda: {'type': 'BPEDecoder', 'suffix': source.choice(['</w>', 's'])},
            lambda: {'type': 'Strip', 'content': source.choice([' ', 'a']), 'start': source.randrange(3), 'stop': source.randrange(3)},
            lambda: {'type': 'Replace', 'pattern': {'String': source.choice(['▁', 'a', ' '])}, 'content': source.choice([' ', ''])},
            lambda: {'type': 'CTC', 'pad_token': '<pad>', 'word_delimiter_token': '|', 'cleanup': chance(source, 0.5)}][kind]()


def draw_token(source, contents):
    return {'content': source.choice(contents), 'single_word': chance(source, 0.2), 'lstrip': chance(source, 0.3),
            'rstrip': chance(source, 0.3), 'normalized': chance(source, 0.5), 'special': chance(source, 0.4)}


def draw_post_processor(source, tokens):
    first, second = source.choice(tokens), source.choice(tokens)
    kind = source.randrange(5)
    if kind == 0:
        return {'type': 'BertProcessing', 'sep': list(first), 'cls': list(second)}
    if kind == 1:
        return {'type': 'RobertaProcessing', 'sep': list(first), 'cls': list(second), 'trim_offsets': True, 'add_prefix_space': False}
    if kind == 2:
        return {'type': 'ByteLevel', 'add_prefix_space': True, 'trim_offsets': False, 'use_regex': True}
    item = lambda token, segment: {'SpecialToken': {'id': token[0], 'type_id': segment}}  # noqa: E731
    text = lambda name, segment: {'Sequence': {'id': name, 'type_id': segment}}  # noqa: E731
    template = {'type': 'TemplateProcessing', 'single': [item(first, 0), text('A', 0), item(second, 0)],
                'pair': [item(first, 0), text('A', 0), item(second, 1), text('B', 1)],
                'special_tokens': {name: {'id': name, 'ids': [id], 'tokens': [name]} for name, id in (first, second)}}
    byte_level = {'type': 'ByteLevel', 'add_prefix_space': True, 'trim_offsets': False, 'use_regex': True}
    return template if kind == 3 else {'type': 'Sequence', 'processors': [byte_level, template]}


def draw_settings(source, contents, vocabulary):
    settings = {}
    flag = lambda: chance(source, 0.5)  # noqa: E731
    drawn = {'do_lower_case': flag, 'strip_accents': lambda: source.choice([None, True, False]), 'tokenize_chinese_chars': flag,
             'add_prefix_space': flag, 'legacy': flag, 'clean_up_tokenization_spaces': flag, 'add_bos_token': flag, 'add_eos_token': flag,
             'model_max_length': lambda: source.choice([5, 512]), 'padding_side': lambda: source.choice(['left', 'right'])}
    for name, value in drawn.items():
        if chance(source, 0.3):
            settings[name] = value()
    if chance(source, 0.1):
        settings['clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output'] = flag()
    if chance(source, 0.02):
        settings['split_special_tokens'] = True
    if chance(source, 0.2):
        settings['extra_ids'] = source.choice([0, 3])
    for name in NAMES:
        if chance(source, 0.2):
            content = source.choice(contents + USUAL)
            settings[name] = source.choice([content, content, content, {'__type': 'AddedToken', **draw_token(source, [content])}])
    if chance(source, 0.2):
        key = source.choice(['additional_special_tokens', 'extra_special_tokens'])
        settings[key] = source.sample(contents, source.randrange(3))
    elif chance(source, 0.1):
        settings['extra_special_tokens'] = {f'extra_{i}': content for i, content in enumerate(source.sample(contents, 2))}
    if chance(source, 0.25):
        tokens = [draw_token(source, contents) for _ in range(source.randrange(5))]
        settings['added_tokens_decoder'] = {str(vocabulary.get(token['content'], len(vocabulary) + i)): token for i, token in enumerate(tokens)}
    return settings


def names_in(document):
    vocabulary = document['model']['vocab']
    return vocabulary if isinstance(vocabulary, dict) else {token: i for i, (token, _) in enumerate(vocabulary)}


def draw(source, bases):
    """A case without expected values: the base, sections that replace its own, and the files beside it."""
    base = source.choice(sorted(bases))
    document = bases[base]
    vocabulary = names_in(document)
    tokens = sorted(vocabulary.items(), key=lambda entry: entry[1])
    contents = CONTENTS + [source.choice(tokens)[0] for _ in range(3)]
    sections = {}
    for name, section in {'normalizer': draw_normalizer, 'pre_tokenizer': draw_pre_tokenizer, 'decoder': draw_decoder}.items():
        if chance(source, 0.3):
            sections[name] = section(source) if chance(source, 0.9) else None
    if chance(source, 0.3):
        sections['post_processor'] = draw_post_processor(source, tokens) if chance(source, 0.8) else None
    if chance(source, 0.5):
        added = [draw_token(source, contents) for _ in range(source.randrange(1, 5))]
        kept = document['added_tokens'] if chance(source, 0.7) else []
        ids = {token['content']: token['id'] for token in kept}
        for token in added:
            ids.setdefault(token['content'], vocabulary.get(token['content'], max([len(vocabulary) - 1, *ids.values()]) + 1))
        sections['added_tokens'] = kept + [{'id': ids[token['content']], **token} for token in added]
    if chance(source, 0.15):
        sections['truncation'] = {'direction': 'Right', 'max_length': 4, 'strategy': 'LongestFirst', 'stride': 0}
    if chance(source, 0.15):
        sections['padding'] = {'strategy': {'Fixed': 9}, 'direction': 'Right', 'pad_to_multiple_of': None, 'pad_id': 0,
                               'pad_type_id': 0, 'pad_token': source.choice(contents)}
    model = {}
    if document['model'].get('type') == 'BPE':
        for name in ('fuse_unk', 'byte_fallback', 'ignore_merges'):
            if chance(source, 0.1):
                model[name] = not document['model'].get(name, False)
    files = {}
    if chance(source, 0.9):
        settings = draw_settings(source, contents, vocabulary) if chance(source, 0.9) else {}
        if chance(source, 0.75):
            likely = CLASSES.get(base, ['PreTrainedTokenizerFast'])
            every = sorted({name for names in CLASSES.values() for name in names}) + ['PreTrainedTokenizer', 'NoSuchTokenizer']
            settings['tokenizer_class'] = source.choice(likely if chance(source, 0.85) else every)
            if chance(source, 0.3) and not settings['tokenizer_class'].endswith('Fast'):
                settings['tokenizer_class'] += 'Fast'
        files['tokenizer_config.json'] = settings
    if chance(source, 0.4):
        files['config.json'] = {'model_type': source.choice(MODEL_TYPES)}
        if chance(source, 0.2):
            files['config.json']['tokenizer_class'] = source.choice(CLASSES.get(base, ['PreTrainedTokenizerFast']))
    if chance(source, 0.2):
        chosen = source.sample(NAMES, 2)
        files['special_tokens_map.json'] = {name: source.choice([token['content'], token]) for name in chosen
                                            for token in [draw_token(source, contents + USUAL)]}
    if chance(source, 0.15):
        files['added_tokens.json'] = {content: vocabulary.get(content, len(vocabulary) + i)
                                      for i, content in enumerate(source.sample(contents, 2))}
    return {'base': base, 'sections': sections, 'model': model, 'files': files}


def draw_lines(source, count, case, bases):
    """Lines of words and odd characters, with special and added tokens in them."""
    added = list(USUAL)
    for text in (json.dumps(case['sections'].get('added_tokens', bases[case['base']]['added_tokens'])), json.dumps(case['files'])):
        stack = [json.loads(text)]
        while stack:
            part = stack.pop()
            if isinstance(part, dict):
                stack += part.values()
                if isinstance(part.get('content'), str):
                    added += [part['content']] * 4
            elif isinstance(part, list):
                stack += part
            elif isinstance(part, str) and part and len(part) < 20:
                added.append(part)
    lines = [' ' * source.randrange(4)]
    while len(lines) < count:
        if chance(source, 0.4):
            lines.append(random_line(source, TEXT))
            continue
        parts = []
        for _ in range(source.randrange(1, 10)):
            parts.append(source.choice(added) if chance(source, 0.4) else
                         source.choice(PIECES) if chance(source, 0.2) else source.choice(source.choice(TEXT).split(' ')))
            parts.append(source.choice(['', ' ', ' ', ' ', '  ', '\n', '\t']))
        lines.append(''.join(parts))
    return [line for line in lines if len(line) < 200]


def write_folder(folder, case, bases):
    document = {**bases[case['base']], **case['sections']}
    document['model'] = {**document['model'], **case['model']}
    folder.mkdir(parents=True)
    for name, content in {'tokenizer.json': document, **case['files']}.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding='utf-8')


def reason(error):
    if isinstance(error, KeyboardInterrupt):
        raise error
    return f'{type(error).__name__}: {error}'[:200]


def expected_line(tokenizer, text, second):
    line = {'text': text}
    try:
        line['ids'] = tokenizer.encode(text, add_special_tokens=False)
        line['decoded'] = tokenizer.decode(line['ids'], skip_special_tokens=True)
        whole = tokenizer(text, return_token_type_ids=True)
        line |= {'input': whole['input_ids'], 'segments': whole['token_type_ids'], 'all': tokenizer.decode(whole['input_ids'])}
        pair = tokenizer(text, second, return_token_type_ids=True)
        line |= {'second': second, 'pair': pair['input_ids'], 'pair_segments': pair['token_type_ids']}
    except BaseException as error:  # the package may panic, which is no Exception
        return {'text': text, 'error': reason(error)}
    return line


def strings_in(part):
    if isinstance(part, str):
        return {part}
    if isinstance(part, (dict, list)):
        return set().union(*map(strings_in, part.values() if isinstance(part, dict) else part))
    return set()


def has_token_of_nothing(document, files):
    """Whether the normalizer may leave nothing of an added token, with which `tokenizers` fills the memory."""
    from tokenizers import Tokenizer
    normalizer = Tokenizer.from_str(json.dumps({**document, 'added_tokens': [], 'post_processor': None})).normalizer
    contents = strings_in(document['added_tokens']) | strings_in(files)
    if any(content and all(unicodedata.category(c).startswith('M') for c in content) for content in contents):
        return True  # accents, which BERT's classes strip by their own settings
    return normalizer is not None and any(content and not normalizer.normalize_str(content) for content in contents)


def may_collide(document, files):
    """Whether two different added tokens may become equal once they are normalized; which one is then found may differ
    each time that `tokenizers` reads the file."""
    def plain(content):
        return unicodedata.normalize('NFKC', content).casefold().replace('▁', ' ').strip()
    contents = {token['content'] for token in document['added_tokens']} | strings_in(files)
    return len(set(map(plain, contents))) < len(contents)


def answers(folder, lines):
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    size = max(tokenizer.get_vocab().values()) + 1
    return {'class': type(tokenizer).__name__, 'size': size,
            'lines': [expected_line(tokenizer, line, 'ships 船') for line in lines]}


def expected(folder, lines):
    try:
        document = json.loads((folder / 'tokenizer.json').read_text(encoding='utf-8'))
        files = [json.loads(path.read_text(encoding='utf-8')) for path in folder.iterdir() if path.name != 'tokenizer.json']
        if has_token_of_nothing(document, files):
            return {'error': 'a token is normalized to nothing'}
        given = answers(folder, lines)
        if may_collide(document, files) and any(answers(folder, lines) != given for _ in range(6)):
            return {'error': 'it reads the file differently each time'}
        return given
    except BaseException as error:
        return {'error': reason(error)}


def cases(seed, first, count, lines, bases, folder=None):
    result = []
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(first, first + count):
            source = random.Random(f'{seed} {number}')
            case = draw(source, bases)
            texts = draw_lines(source, lines, case, bases)
            place = pathlib.Path(scratch) / str(number)
            write_folder(place, case, bases)
            result.append({'name': f'{number}', **case, **expected(place, texts)})
            if folder is not None:
                shutil.copytree(place, folder / str(number), dirs_exist_ok=True)
    return result


def contradicts(case):
    """Whether tokenizer.json and added_tokens.json give an id to different tokens, or two added tokens may be equal once
    they are normalized: `transformers` keeps either, not always the same."""
    normalized = [token['content'].casefold().replace('▁', ' ').strip() for token in case['sections'].get('added_tokens') or []
                  if token.get('normalized')]
    if len(set(normalized)) < len(normalized):
        return True
    listed = {token['id']: token['content'] for token in case['sections'].get('added_tokens') or []}
    return any(listed.get(id, content) != content for content, id in case['files'].get('added_tokens.json', {}).items())


def is_taken_as_it_is(case):
    """Whether `transformers` has a class of its own for this file, but Plumb takes the file as it is: models of this type
    cannot be imported, or the class is not theirs."""
    files = case['files']
    model = files.get('config.json', {})
    name = files.get('tokenizer_config.json', {}).get('tokenizer_class') or model.get('tokenizer_class') or ''
    own = model.get('model_type') == 'qwen2' or not name or name.removesuffix('Fast') in OWN_CLASSES
    return case.get('class') != 'TokenizersBackend' and not (own and model.get('model_type', 'bert') in IMPORTED_TYPES)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--cases', type=int, default=20)
    parser.add_argument('--lines', type=int, default=16)
    parser.add_argument('--folder', type=pathlib.Path)
    parser.add_argument('--golden', action='store_true')
    options = parser.parse_args()
    with open(ROOT / 'tests/golden/tokenizers.json', encoding='utf-8') as file:
        bases = {case['name']: case['tokenizer'] for case in json.load(file)['cases']}
    if options.golden:
        made = [case for case in cases(options.seed, 0, 160, 5, bases)
                if "error" not in case and not contradicts(case) and not is_taken_as_it_is(case)
                and (case["class"] != "TokenizersBackend" or int(case["name"]) % 4 == 0)]
        for seed, number in FOUND:
            for case in cases(seed, number, 1, 5, bases):
                made.append(case | {"name": f"{seed}/{case['name']}"})
        with open(ROOT / 'tests/golden/tokenizer_settings.json', 'w', encoding='utf-8') as file:
            json.dump({'cases': made}, file, separators=(',', ':'), ensure_ascii=False)
        return
    drawn = cases(options.seed, options.first, options.cases, options.lines, bases, options.folder)
    json.dump({'cases': [case for case in drawn if not contradicts(case) and not is_taken_as_it_is(case)]}, sys.stdout)


if __name__ == '__main__':
    main()
