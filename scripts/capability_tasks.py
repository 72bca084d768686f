#!/usr/bin/env python3
"""Writes capability tasks for `scale.tasks` and `plumb evaluate`, in the format of a user's own tasks.

  scripts/capability_tasks.py BENCHMARKS OUT [--text NAME=FILE ...]

BENCHMARKS may hold fever/paper_dev.jsonl (Thorne et al. 2018), truthfulqa/TruthfulQA.csv (Lin et al. 2022),
symbolic/bigbench_simple_arithmetic.jsonl and symbolic/bigbench_logical_deduction.jsonl (BIG-bench), and
symbolic/svamp.jsonl (Patel et al. 2021). Each becomes a file of questions with choices and a category, and each text a
file of passages to be read, of at most 500 bytes.
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
    for name, (category, items) in TASKS.items():
        try:
            write(arguments.out / f"{name}.jsonl", category, items(arguments.benchmarks))
        except FileNotFoundError as error:
            print(f"{name}: left out, no {error.filename}")
    for text in arguments.text:
        name, separator, path = text.partition("=")
        if not separator:
            parser.error(f"--text {text}: write NAME=FILE")
        write(arguments.out / f"{name}.jsonl", "text", passages(path))


if __name__ == "__main__":
    main()
