#!/usr/bin/env python3
"""Reference values of the PyPI package sacrebleu for tests/metrics/sacrebleu_test.cpp.

Writes tests/golden/scores.json: made-up sentences in several scripts as the output of three systems, with one or two
references, and sacreBLEU's scores for them under many options; then its intervals and p-values.

    pip install sacrebleu
    scripts/golden/scores.py
    scripts/golden/scores.py --sentences 300 --seed 7 --output /tmp/scores.json    # other sentences, and more of them
"""
import argparse
import json
import logging
import pathlib
import random

import numpy
import sacrebleu
from sacrebleu import significance
from sacrebleu.metrics import BLEU, CHRF

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOOTSTRAP_SAMPLES = 4000
RANDOMIZATION_TRIALS = 10000

# For each language: words, the separator, and sentence ends.
LANGUAGES = [
    ('the small ship Sails to Port with grain , and 1,250.5 tons of it don\'t fit ; Anna\'s crew (of seven) says "no" '
     '28-year-old 1999-2001 U.S. &quot;rope&quot; fish &amp; chips so-called A/B 50% $3.20 e.g. x_y [sic] wait...',
     ' ', '. . ! ? .'),
    ('das grüne Haus steht Über dem Fluß , „heute“ – sagt Jörg’s Tante – kostet 3.499,99 € Äpfel STRASSE straße Öl',
     ' ', '. ! …'),
    ('маленький КОРАБЛЬ плывёт в порт , «завтра» № 5 пять-шесть Ёлка стоит 12,5 рублей — да', ' ', '. ? !'),
    ('το μικρό ΠΛΟΊΟ ΟΔΟΣ πλέει στο λιμάνι · «αύριο» ; κοστίζει 7,5 ευρώ Σοφία', ' ', '. ;'),
    ('小船 今天 驶 向 港口 , “粮食” 有 三千 吨 ( 大约 ) 价格 是 12.5 元 、 ABC 公司 的 — 𠀋 々 ㎏ ㊣ 〇 龥 龻 鿏',
     '', '。 ! ? …'),
    ('小さな 船 が 港 へ 行く 、 「明日」 カタカナ ・ ｶﾅ は 5 キロ です ㍿ ㈱ ひらがな', '', '。 ？'),
    ('작은 배가 항구로 갑니다 , 내일은 3,000 톤 입니다', ' ', '.'),
    ('السفينة الصغيرة تبحر إلى الميناء ، غدا ٣٫٥ طن', ' ', '. ؟'),
    ('छोटा जहाज़ बंदरगाह को जाता है , कल १२.५ टन', ' ', '। ?'),
    ('İstanbul ILIK ışık Ǆ ŉ ﬁn 😀 👍🏽 a\u00a0b c\u3000d e\u200bf g\u0301h x² ½ ①', ' ', '. !'),
]

EDGES = [  # hypothesis, references
    ('', 'the ship sails today .', 'a ship sails'), ('the ship sails .', '', ''), ('', '', ''), (' \u3000', 'x', ''),
    ('a', 'a', 'b'), ('a b', 'a b', 'a'), ('x y z', 'a b c', 'd e f'), ('Yes .', 'yes .', 'YES .'),
    ('THE SHIP SAILS', 'the ship sails', 'The Ship Sails'), ('ΟΔΟΣ ΣΟΦΟΣ', 'οδος σοφος', 'οδοσ'),
    ('ひらがな', 'ひらがな', 'カタカナ'), ('he said .5 , 5. and 5.5 , a.b ..2 1..2 1.,2', 'he said 5.5 , a.b', '.5'),
    ('\ufa2e\ufa70\ufe20\u2000\u2001\u2a6d\u2a6e\u2014', '\ufa2e\ufa70 \ufe20\u2a6d\u2a6e', '\u2014'),
    ('&amp;lt; &quot;a&quot; <skipped> b', '< "a" b', '&lt; a'), ("Anna's boat's crews' 's", "Anna 's boat 's crew", 's'),
    (' leading and trailing  ', 'leading and trailing', 'leading  and'), ('c d a b', 'a b c d', 'd c b a'),
    ('5-6 7 - 8', '5 - 6 7-8', '5-6'), ('p q r s t u m n o', 'm n o p q r s t u', 'm n o'),
    ('a x b y c z d', 'd z c y b x a', 'a b c d x y z'),
]

def numbered(letter, begin, end):
    return ' '.join(f'{letter}{i}' for i in range(begin, end))


class Text:
    """Draws sentences and errors."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def sentence(self):
        words, joiner, ends = self.random.choice(LANGUAGES)
        vocabulary = words.split(' ')
        drawn = [self.random.choice(vocabulary) for _ in range(self.random.randint(3, 16))]
        return drawn, vocabulary, joiner, self.random.choice(ends.split(' '))

    def changed(self, words, vocabulary, rate):
        """Deletes, replaces or inserts words (rate/3 each), swaps case (rate/6) and two blocks (2·rate)."""
        result = []
        for word in words:
            draw = self.random.random()
            if draw < rate / 3:
                continue
            result.append(self.random.choice(vocabulary) if draw < 2 * rate / 3 else word)
            if draw > 1 - rate / 3:
                result.append(self.random.choice(vocabulary))
            elif draw > 1 - rate / 2:
                result[-1] = result[-1].swapcase()
        if len(result) > 3 and self.random.random() < 2 * rate:
            first, second, third = sorted(self.random.sample(range(len(result) + 1), 3))
            result = result[:first] + result[second:third] + result[first:second] + result[third:]
        return result

    def corpus(self, sentences, rates):
        systems, references = [[] for _ in rates], [[], []]
        for _ in range(sentences):
            words, vocabulary, joiner, end = self.sentence()
            references[0].append(joiner.join(words) + end)
            references[1].append(joiner.join(self.changed(words, vocabulary, 0.3)) + end)
            for system, rate in zip(systems, rates):
                ending = end if self.random.random() > 0.1 else ''
                system.append(joiner.join(self.changed(words, vocabulary, rate)) + ending)
        return {'systems': systems, 'references': references}


# The options of each case, under Plumb's names and as sacreBLEU's arguments.

def bleu_cases():
    for tokenizer in ('13a', 'intl', 'zh', 'char', 'none'):
        yield {'tokenizer': tokenizer}, {'tokenize': tokenizer}
    yield {'lowercase': True}, {'lowercase': True}
    yield {'tokenizer': 'zh', 'lowercase': True}, {'tokenize': 'zh', 'lowercase': True}
    for smoothing, values in (('exp', [None]), ('none', [None]), ('floor', [None, 0.01, 0.5]), ('add-k', [None, 0.5, 2])):
        for value in values:
            for effective in (False, True):
                ours, theirs = {'smoothing': smoothing}, {'smooth_method': smoothing}
                if value is not None:
                    ours['smoothing_value'] = theirs['smooth_value'] = value
                if effective:
                    ours['effective_order'] = theirs['effective_order'] = True
                yield ours, theirs
    for order in (1, 2, 6):
        yield {'order': order}, {'max_ngram_order': order}
        yield {'order': order, 'effective_order': True}, {'max_ngram_order': order, 'effective_order': True}


def chrf_cases():
    for word_order in (0, 1, 2):
        for more in ({}, {'lowercase': True}, {'whitespace': True}):
            for epsilon in (False, True):
                ours, theirs = {'word_order': word_order, **more}, {'word_order': word_order, **more}
                if epsilon:
                    ours['epsilon_smoothing'] = theirs['eps_smoothing'] = True
                yield ours, theirs
    yield {'beta': 1}, {'beta': 1}
    yield {'beta': 3, 'character_order': 4}, {'beta': 3, 'char_order': 4}


CASES = {'bleu': (BLEU, bleu_cases), 'chrf': (CHRF, chrf_cases)}


def details(score):
    if hasattr(score, 'precisions'):
        return {'precisions': score.precisions, 'brevity_penalty': score.bp, 'system_length': score.sys_len,
                'reference_length': score.ref_len}
    return {}


def scored(corpus):
    for key, (metric_type, options) in CASES.items():
        for index, (ours, theirs) in enumerate(options()):
            for count in (1, 2) if index == 0 else (1 + index % 2,):
                references = corpus['references'][:count]
                metric = metric_type(**theirs)
                systems = []
                metric._ref_cache = metric._cache_references(references)
                for system in corpus['systems']:
                    counts = metric._extract_corpus_statistics(system, None)
                    score = metric._aggregate_and_compute(counts)
                    sentences = [metric._aggregate_and_compute([list(row)]).score for row in counts]
                    systems.append({'score': score.score, **details(score), 'sentences': sum(sentences),
                                    'last_sentences': sentences[-4:]})
                signature = metric.get_signature().format().rsplit('|version:', 1)[0]
                yield {'metric': key, 'options': ours, 'references': count, 'name': score.name,
                       'signature': signature, 'systems': systems}


def with_ties(statistics, difference):
    """sacreBLEU's p-value with ≥ instead of >."""
    as_extreme = int(numpy.sum(statistics >= difference - 1e-10))
    return (as_extreme + 1) / (len(statistics) + 1)


def paired(corpus, test, samples):
    """The result of the paired test for each metric, with p-values as published and with ties counted."""
    published = significance._compute_p_value
    named = [(f'system {i}', system) for i, system in enumerate(corpus['systems'])]
    for key, metric in (('bleu', BLEU()), ('chrf', CHRF())):
        results = []
        for p_value in (published, with_ties):
            significance._compute_p_value = p_value
            tested = significance.PairedTest(named, {key: metric}, corpus['references'][:1], test_type=test,
                                             n_samples=samples)
            results.append(next(values for name, values in tested()[1].items() if name != 'System'))
        significance._compute_p_value = published
        yield {'metric': key, 'samples': samples,
               'systems': [{'score': strict.score, 'mean': strict.mean, 'half_width': strict.ci,
                            'p_value': strict.p_value, 'p_value_with_ties': tied.p_value}
                           for strict, tied in zip(*results)]}


def listed(sentences):
    """A corpus of one system from a list of hypotheses with their references."""
    systems, *references = [list(column) for column in zip(*sentences)]
    return {'systems': [systems], 'references': references}


def plain(value):
    """Converts numpy's numbers to Python's."""
    return value.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--sentences', type=int, default=50)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--output', type=pathlib.Path, default=ROOT / 'tests' / 'golden' / 'scores.json')
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)

    text = Text(arguments.seed)
    drawn = text.corpus(arguments.sentences, (0.30, 0.26, 0.15))
    golden = {'made_by': {'script': 'scripts/golden/scores.py', 'sacrebleu': sacrebleu.__version__},
              'corpora': [], 'bootstrap': list(paired(drawn, 'bs', BOOTSTRAP_SAMPLES)),
              'randomization': list(paired(drawn, 'ar', RANDOMIZATION_TRIALS))}
    for corpus in (drawn, listed(EDGES)):
        golden['corpora'].append({**corpus, 'cases': list(scored(corpus))})
    arguments.output.write_text(lines_of(golden))


def lines_of(golden):
    """JSON with one line per list of sentences, case and test."""
    def block(items):
        return '[\n' + ',\n'.join(json.dumps(item, ensure_ascii=True, default=plain) for item in items) + '\n]'

    corpora = ',\n'.join('{' + ',\n'.join(f'"{key}": {block(corpus[key])}' for key in corpus) + '}'
                         for corpus in golden['corpora'])
    return ('{' + f'"made_by": {json.dumps(golden["made_by"])},\n"corpora": [{corpora}],\n"bootstrap": '
            f'{block(golden["bootstrap"])},\n"randomization": {block(golden["randomization"])}' + '}\n')


if __name__ == '__main__':
    main()
