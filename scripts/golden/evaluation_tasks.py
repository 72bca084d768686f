"""The harness's own tasks on made-up files in the formats of their authors, and what its filters find in made-up answers;
used by evaluation.py."""
import json
import pathlib
import tempfile

import lm_eval
from lm_eval.api.metrics import exact_match_hf_evaluate
from lm_eval.api.task import ConfigurableTask
from lm_eval.filters.extraction import RegexFilter
from lm_eval.tasks._yaml_loader import load_yaml
from lm_eval.tasks.bbh.zeroshot.utils import MultiChoiceRegexFilter

SCIENCE = [
    ('What carries grain?', [('A', 'a ship'), ('B', 'a cloud'), ('C', 'a port'), ('D', 'a book')], 'A'),
    ('Which is a season?', [('1', 'noon'), ('2', 'spring')], '2'),
    ('What do plants need?', [('A', 'noise'), ('B', 'dust'), ('C', 'light')], 'C'),
    ('Was ist größer?', [('A', 'das Meer'), ('B', 'der Fluß')], 'A'),
]
BOOLEAN = [('is rain wet', 'Rain', 'Rain is water. It falls.', True), ('do ships fly', 'Ship', 'Ships sail.', False),
           ('is the sea flat', 'Sea', 'The sea has waves (and tides).', False), ('is grain food', 'Grain', 'Bread.', True)]
GAPS = [('The baker thanked the sailor because _ had brought grain.', 'the baker', 'the sailor', '2'),
        ('The rope broke at the knot, so the _ was blamed.', 'rope', 'knot', '1'),
        ('Anna gave Ben the oar when _  was tired .', 'Anna', 'Ben', '1'),
        ('The ship left the port while _ slept.', 'the port', 'the ship', '2')]


def science_line(item):
    stem, choices, key = item
    return {'id': stem[:4], 'question': {'stem': stem, 'choices': [{'text': t, 'label': l} for l, t in choices]},
            'answerKey': key}


def science_document(key):
    return lambda item: {key: item[0], 'answerKey': item[2],
                         'choices': {'label': [l for l, _ in item[1]], 'text': [t for _, t in item[1]]}}


def gap_line(item):
    return dict(zip(('sentence', 'option1', 'option2', 'answer'), item), qID=item[0][:3])


# For each task: the harness's settings file, our files of items and of examples, the items, and two functions from an
# item to a line of our file and to a document of the harness.
AUTHORS = {
    'arc_challenge': ('arc/arc_challenge.yaml', 'ARC-Challenge-Test.jsonl', 'ARC-Challenge-Train.jsonl', SCIENCE,
                      science_line, science_document('question')),
    'openbookqa': ('openbookqa/openbookqa.yaml', 'openbookqa/test.jsonl', 'openbookqa/train.jsonl', SCIENCE, science_line,
                   science_document('question_stem')),
    'boolq': ('super_glue/boolq/default.yaml', 'boolq/dev.jsonl', 'boolq/train.jsonl', BOOLEAN,
              lambda item: dict(zip(('question', 'title', 'passage', 'answer'), item)),
              lambda item: {'question': item[0], 'passage': f'{item[1]} -- {item[2]}', 'label': int(item[3])}),
    'winogrande': ('winogrande/default.yaml', 'winogrande/dev.jsonl', 'winogrande/train_xl.jsonl', GAPS, gap_line, gap_line),
}

# What models write, about a question, and the right answer.
QUESTION = 'Which one?\nOptions:\n(A) The blue jay, alone\n(B) the blue\n(C) U.S. $5\n(D) the blue'
TRUTHS = [' True', 'it is False, not True', 'Untrue. True.', 'true', 'TrueFalse', '', 'False.', 'True_', '«True»', 'True1 False',
          ' True.', 'False,']
OPTIONS = ['(B)', ' (B)', 'The answer is (C) or (A).', 'b', 'The Blue Jay alone!', 'maybe the blue', 'THE BLUE', 'us $5', 'US 5',
           'Answer: C', 'Answer:\n D.', 'Answer: E', 'x: y: B', '(b)', '(B).', '"(B)"', '(B', '(B),\n', '((B))', 'the blue jay: A', '',
           'The blue jay  alone', '(E)', 'U.S. $5.', ':', '(B).\n', '(B)\\']


def write_lines(file, documents):
    file.write_text(''.join(json.dumps(document, ensure_ascii=False) + '\n' for document in documents))


def write_authors_files(folder):
    for _, file, examples, items, line, _ in AUTHORS.values():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        write_lines(folder / file, [line(item) for item in items[:2]])
        write_lines(folder / examples, [line(item) for item in items[1:]])


def settings_of(file):
    """The settings of one of the harness's own tasks, without the location of its documents."""
    settings = load_yaml(pathlib.Path(lm_eval.__file__).parent / 'tasks' / file)
    return {key: value for key, value in settings.items()
            if key not in ('task', 'tag', 'dataset_path', 'dataset_name') and not key.endswith('_split')}


def authors_task(name, folder):
    """The harness's own task, on documents in the form of its data set."""
    file, _, _, items, _, document = AUTHORS[name]
    files = {'test': folder / f'{name}.test', 'train': folder / f'{name}.train'}
    write_lines(files['test'], [document(item) for item in items[:2]])
    write_lines(files['train'], [document(item) for item in items[1:]])
    return ConfigurableTask(config=dict(
        settings_of(file), task=name, dataset_path='json', dataset_kwargs={'data_files': {k: str(v) for k, v in files.items()}},
        test_split='test', training_split='train'))


def golden_tasks():
    """The requests of the harness's own tasks, as [context, continuation], and the right choices."""
    made = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in AUTHORS:
            for shots in (0, 2):
                task = authors_task(name, pathlib.Path(scratch))
                task.set_fewshot_seed(1234)
                requests, gold = [], []
                for i, document in enumerate(task.eval_docs):
                    context = task.fewshot_context(document, shots)
                    asked = task.construct_requests(document, context, doc_id=i, metadata=(name, i, 1))
                    requests.append([list(request.args) for request in asked])
                    gold.append(task.doc_to_text(document) if name == 'winogrande' else int(task.doc_to_target(document)))
                made.append({'task': name, 'few_shot': shots, 'requests': requests, 'gold': gold})
    return made


def golden_filters():
    """What the harness's BIG-bench Hard filters extract, and whether strict and flexible matches are right."""
    made = []
    options = MultiChoiceRegexFilter(regex_pattern='(\\([A-Z]\\))', group_select=0, ignore_case=True,
                                     ignore_punctuation=True)
    truths = RegexFilter(regex_pattern='\\b(True|False)\\b', group_select=0)
    comparison = dict(ignore_case=True, regexes_to_ignore=['\\.$', ',', '\n', '\\\\', '"'])
    for finder, texts, target in ((truths, TRUTHS, 'True'), (options, OPTIONS, '(B)')):
        for text in texts:
            ((found,),) = finder.apply([[text]], [{'input': QUESTION}])
            right = [bool(exact_match_hf_evaluate([answer], [target], **comparison)['exact_match'])
                     for answer in (text, found)]
            made.append({'written': text, 'target': target, 'found': found, 'strict': right[0], 'flexible': right[1]})
    return {'question': QUESTION, 'answers': made}
