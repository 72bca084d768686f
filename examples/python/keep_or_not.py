"""Sixty changes to a small training script, kept by plumb.gate, and what "keep if lower" would have kept. Takes ten seconds.

The script trains a net of one hidden layer on a function of eight inputs with noise. Fifty of the changes leave the training
as it is, or nearly so. --truth N measures each that was kept with N more seeds, beside N of the best at that time.
"""

import argparse
import json
import math
import pathlib
import tempfile

import numpy

import plumb

BASE = {"rate": 0.1, "momentum": 0.0, "width": 16, "batch": 16, "scale": 1.0, "decay": 0.0, "steps": 120, "final": 1.0}


def train(settings, seed):
    """The loss on validation data that all runs share; data order and initial weights are those of the seed."""
    data = numpy.random.default_rng(0)
    inputs = data.standard_normal((1500, 8))
    labels = numpy.sin(inputs @ data.standard_normal(8) / 2) + 0.3 * data.standard_normal(1500)
    random = numpy.random.default_rng([seed, 1])
    width = settings["width"]
    first = random.standard_normal((8, width)) * settings["scale"] / math.sqrt(8)
    bias, last = numpy.zeros(width), random.standard_normal(width) / math.sqrt(width)
    speeds = [numpy.zeros_like(each) for each in (first, bias, last)]
    for step in range(settings["steps"]):
        rows = random.integers(0, 500, settings["batch"])
        x, y = inputs[rows], labels[rows]
        hidden = numpy.tanh(x @ first + bias)
        error = (hidden @ last - y) / len(y)
        back = numpy.outer(error, last) * (1 - hidden ** 2)
        rate = settings["rate"] * (1 + (settings["final"] - 1) * step / settings["steps"])
        for weights, speed, gradient in zip((first, bias, last), speeds, (x.T @ back, back.sum(0), hidden.T @ error)):
            speed *= settings["momentum"]
            speed += gradient + settings["decay"] * weights
            weights -= rate * speed
    return float(numpy.mean((numpy.tanh(inputs[500:] @ first + bias) @ last - labels[500:]) ** 2))


def ideas():
    """Names and changes: ten that do something, better or worse, and fifty that do next to nothing."""
    large = [{"rate": 0.3}, {"momentum": 0.6}, {"steps": 240}, {"scale": 0.5}, {"batch": 48}]
    large += [{"rate": 0.02}, {"scale": 3}, {"batch": 2}, {"decay": 0.05}, {"width": 3}]
    nothing = [{"decay": 1e-7 * (i + 1)} if i % 2 else {"final": 1 - 0.001 * (i + 1)} for i in range(50)]
    changes = nothing
    for i, change in enumerate(large):
        changes.insert(6 * i + 3, change)
    return [(f"{i + 1} " + ", ".join(f"{key} {value:g}" for key, value in change.items()), change)
            for i, change in enumerate(changes)]


def gated(ledger):
    """The loop: every run that the gate asks for, until each candidate is kept or not. Returns what was kept, and the runs."""
    settings, best, kept, seed = {"base": BASE}, "base", [], 0
    for name, change in ideas():
        settings[name] = settings[best] | change
        answer = plumb.gate(ledger, name, metric="valid_loss")
        while answer.next:
            seed += 1
            value = train(settings[answer.next], seed)
            answer = plumb.gate(ledger, name, {answer.next: {seed: value}}, metric="valid_loss")
        if answer.decision == "keep":
            kept.append((name, settings[best], settings[name]))
            best = name
    return kept, seed


def lower():
    """The usual loop: one run for each candidate, kept if it is lower than all before."""
    settings, kept = BASE, []
    lowest = train(settings, 1)
    for i, (name, change) in enumerate(ideas()):
        value = train(settings | change, i + 2)
        if value < lowest:
            kept.append((name, settings, settings | change))
            settings, lowest = settings | change, value
    return kept, len(ideas()) + 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--truth", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    found = {"gate": gated(pathlib.Path(tempfile.mkdtemp()) / "gate.jsonl"), "lower": lower()}
    document = {"schema": "plumb.gate_loop/1", "candidates": len(ideas()),
                "runs": {rule: runs for rule, (_, runs) in found.items()}}
    for rule, (kept, _) in found.items():
        document[rule] = []
        for name, before, after in kept:
            row = {"kept": name}
            if arguments.truth:
                gains = [train(before, seed) - train(after, seed + arguments.truth)
                         for seed in range(1000, 1000 + arguments.truth)]
                row |= {"gain": float(numpy.mean(gains)), "error": float(numpy.std(gains, ddof=1) / math.sqrt(len(gains)))}
            document[rule].append(row)
            print(f"{rule} kept {name}", *(f"{key} {row[key]:.4f}" for key in ("gain", "error") if key in row))
    print(f"runs: {document['runs']}")
    if arguments.out:
        arguments.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
