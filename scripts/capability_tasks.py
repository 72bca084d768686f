#!/usr/bin/env python3
"""Writes capability tasks for `scale.tasks` and `plumb evaluate`, in the format of a user's own tasks.

  scripts/capability_tasks.py BENCHMARKS OUT [--text NAME=FILE ...]

BENCHMARKS may hold, under the names with which they are published or as in the Mosaic Eval Gauntlet,
  lambada_openai.jsonl (Paperno et al. 2016), hellaswag*.txt (Zellers et al. 2019; six lines an item), piqa.jsonl (Bisk et
  al. 2020), copa.jsonl (Roemmele et al. 2011), arc_easy.jsonl (Clark et al. 2018),
  mmlu/test/SUBJECT_test.csv (Hendrycks et al. 2021), bbh/PART.json (BIG-bench Hard, Suzgun et al. 2022; three parts),
  fever/paper_dev.jsonl (Thorne et al. 2018), truthfulqa/TruthfulQA.csv (Lin et al. 2022),
  symbolic/bigbench_simple_arithmetic.jsonl and symbolic/bigbench_logical_deduction.jsonl (BIG-bench), and
  symbolic/svamp.jsonl (Patel et al. 2021).
Each becomes a file of questions with a category, and each text a file of passages to be read, of at most 500 bytes. Prompts
of benchmarks are those of lm-evaluation-harness, without examples.
"""

import argparse
import csv
import json
import pathlib


def write(path, category, lines):
    """One JSON object a line; `category` is what reports group by."""
    with open(path, "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line | {"category": category}, ensure_ascii=False) + "\n")
    print(f"{path}: {len(lines)} items, {category}")


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def lambada(folder):
    """The last word of a passage."""
    return [{"context": line["context"], "continuation": " " + line["continuation"]}
            for line in read_lines(folder / "lambada_openai.jsonl")]


def hellaswag(folder):
    """Which of four sentences follows."""
    files = sorted(folder.glob("hellaswag*.txt"))
    if not files:
        raise FileNotFoundError(2, "no such file", str(folder / "hellaswag*.txt"))
    lines = files[0].read_text(encoding="utf-8").splitlines()
    return [{"context": lines[i], "choices": lines[i + 2:i + 6], "gold": int(lines[i + 1])}
            for i in range(0, len(lines), 6)]


def gauntlet(file, context, choice=str):
    """Lines with "query", "choices" and "gold"."""
    return [{"context": context(line["query"]), "choices": [choice(one) for one in line["choices"]], "gold": line["gold"]}
            for line in read_lines(file)]


def piqa(folder):
    return gauntlet(folder / "piqa.jsonl", lambda query: query.removesuffix("\n") + "\nAnswer:")


def copa(folder):
    """No comma before the connecting word that ends the context, and two spaces before choices, as in the harness."""
    def context(query):
        before, comma, last = query.rpartition(", ")
        return f"{before} {last}" if comma and " " not in last else query

    return gauntlet(folder / "copa.jsonl", context, lambda choice: " " + choice)


def arc_easy(folder):
    return gauntlet(folder / "arc_easy.jsonl", lambda query: query + "\nAnswer:")


def mmlu(file):
    """One subject; the answers are letters."""
    subject = file.name.removesuffix("_test.csv").replace("_", " ")
    items = []
    with open(file, encoding="utf-8", newline="") as lines:
        for question, *answers, letter in csv.reader(lines):
            listed = "".join(f"\n{name}. {answer}" for name, answer in zip("ABCD", answers, strict=True))
            items.append({"context": f"The following are multiple choice questions (with answers) about {subject}.\n\n"
                                     f"{question.strip()}{listed}\nAnswer:",
                          "choices": list("ABCD"), "gold": "ABCD".index(letter)})
    return items


HARD = {
    "boolean_expressions": ("Evaluate the result of a random Boolean expression.", ["False", "True"]),
    "date_understanding": ("Infer the date from context.", [f"({letter})" for letter in "ABCDEF"]),
    "logical_deduction_three_objects": (
        "A logical deduction task which requires deducing the order of a sequence of objects.",
        [f"({letter})" for letter in "ABC"]),
}


def hard(file):
    """A part of BIG-bench Hard, whose answers come from a fixed list."""
    description, choices = HARD[file.stem]
    with open(file, encoding="utf-8") as text:
        return [{"context": f"{description}Q: {example['input']}\nA:", "choices": choices,
                 "gold": choices.index(example["target"])} for example in json.load(text)["examples"]]


def fever(folder):
    """Whether a claim is true; those that nothing decides are left out."""
    return [{"context": f"Claim: {line['claim']}\nThis claim is", "choices": ["true", "false"],
             "gold": 0 if line["label"] == "SUPPORTS" else 1}
            for line in read_lines(folder / "fever/paper_dev.jsonl") if line["label"] != "NOT ENOUGH INFO"]


def truthful_qa(folder):
    """The best answer against the first wrong one, in an order that alternates."""
    items = []
    with open(folder / "truthfulqa/TruthfulQA.csv", encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            answers = [row["Best Answer"].strip(), row["Incorrect Answers"].split(";")[0].strip()]
            gold = len(items) % 2
            items.append({"context": f"Question: {row['Question'].strip()}\nAnswer:",
                          "choices": answers if gold == 0 else answers[::-1], "gold": gold})
    return items


def with_numbers(context, answer, place):
    """The right number among three that are near it; `place` is where it stands."""
    wrong = [answer + 1, answer - 1 if answer > 0 else answer + 2, answer + 10]
    gold = place % 4
    choices = [str(number) for number in wrong[:gold] + [answer] + wrong[gold:]]
    return {"context": context, "choices": choices, "gold": gold}


def simple_arithmetic(folder):
    lines = read_lines(folder / "symbolic/bigbench_simple_arithmetic.jsonl")
    return [with_numbers(line["context"], int(line["continuation"]), i) for i, line in enumerate(lines)]


def svamp(folder):
    lines = read_lines(folder / "symbolic/svamp.jsonl")
    return [with_numbers(f"Question: {line['context']}\nAnswer:", round(float(line["answer"])), i)
            for i, line in enumerate(lines)]


def logical_deduction(folder):
    return [{"context": line["query"].rstrip(), "choices": line["choices"], "gold": line["gold"]}
            for line in read_lines(folder / "symbolic/bigbench_logical_deduction.jsonl")]


TASKS = {
    "lambada_openai": ("reading comprehension", lambada),
    "hellaswag": ("common sense", hellaswag),
    "piqa": ("common sense", piqa),
    "copa": ("common sense", copa),
    "arc_easy": ("question answering", arc_easy),
    "fever": ("fact checking", fever),
    "truthfulqa": ("truthfulness", truthful_qa),
    "simple_arithmetic": ("arithmetic", simple_arithmetic),
    "svamp": ("mathematics", svamp),
    "logical_deduction": ("logical reasoning", logical_deduction),
}


def passages(path):
    """Lines of a text, joined until they have 400 bytes, and cut at 500."""
    found, current = [], ""
    with open(path, encoding="utf-8") as file:
        for line in file:
            current += line
            if len(current.encode()) >= 400:
                found.append({"text": current.encode()[:500].decode(errors="ignore")})
                current = ""
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmarks", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--text", action="append", default=[], metavar="NAME=FILE")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    tasks = [(name, category, items, arguments.benchmarks) for name, (category, items) in TASKS.items()]
    tasks += [(f"mmlu_{file.name.removesuffix('_test.csv')}", "MMLU", mmlu, file)
              for file in sorted(arguments.benchmarks.glob("mmlu/test/*_test.csv"))]
    tasks += [(f"leaderboard_bbh_{part}", "BIG-bench Hard", hard, arguments.benchmarks / f"bbh/{part}.json") for part in HARD]
    for name, category, items, place in tasks:
        try:
            write(arguments.out / f"{name}.jsonl", category, items(place))
        except FileNotFoundError as error:
            print(f"{name}: left out, no {error.filename}")
    for text in arguments.text:
        name, separator, path = text.partition("=")
        if not separator:
            parser.error(f"--text {text}: write NAME=FILE")
        write(arguments.out / f"{name}.jsonl", "text", passages(path))


if __name__ == "__main__":
    main()
