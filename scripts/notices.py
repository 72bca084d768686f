#!/usr/bin/env python3
"""Counts what Plumb says of runs that are healthy, and when it notices those that are not.

  scripts/notices.py --plumb build/plumb --raw raw --work DIR [--jobs N] [NAME ...]

Each run is first checked with a budget that leaves nothing but the alarms (`plumb check --budget 1g`), then trained with
the alarms watched. `raw` has what `plumb data get` downloads: shakespeare/, trec/ and multi30k/. A run that has ended in
DIR is not repeated. Writes the table of docs/check.md to standard output, and every notice to DIR/notices.json."""

import argparse
import concurrent.futures
import json
import re
import subprocess
import time
from pathlib import Path

DECODER = ["model.kind=decoder", "model.d_model=64", "model.feed_forward=256", "model.decoder_layers=4"]
LLAMA = [*DECODER, "model.norm=rmsnorm", "model.positions=rotary", "model.activation=swiglu"]
GOPHER = [*DECODER, "model.norm=rmsnorm", "model.positions=transformer-xl", "model.attention_bias=none",
          "model.feed_forward_bias=false", "model.activation=gelu", "model.initialization=gpt-2"]
TRANSLATION = ["model.d_model=64", "model.feed_forward=128", "model.encoder_layers=2", "model.decoder_layers=2"]
ENCODER = ["model.kind=encoder", "model.d_model=64", "model.feed_forward=128", "model.encoder_layers=2"]
ADAMW = ["train.optimizer=adamw", "train.learning_rate=2e-3", "train.warm_up=10%"]
COSINE = ["train.schedule=constant * linear_warmup * cosine_decay"]
LSTM = ["model.kind=awd-lstm", "model.initialization=lstm", "model.embedding_size=64", "model.hidden_size=128",
        "model.layers=2", "task.language-modeling.stream=20", "train.clip_norm=0.25"]

# name, data, keys; "from" names the run that a fine-tuning run starts from
HEALTHY = [
    ("translation, Pre-LN, AdamW", "pairs", [*TRANSLATION, *ADAMW]),
    ("translation, Post-LN, Adam, warm-up", "pairs",
     [*TRANSLATION, "model.residual=post-ln", "train.learning_rate=1e-3", "train.warm_up=25%"]),
    ("translation, DeepNorm, Adam", "multi30k",
     [*TRANSLATION, "model.residual=deepnorm", "train.learning_rate=1e-3", "train.warm_up=25%"]),
    ("translation, Multi30k, Pre-LN, RAdam", "multi30k",
     [*TRANSLATION, "train.optimizer=radam", "train.learning_rate=2e-3", "train.warm_up=0",
      "train.schedule=constant"]),
    ("language model as in the README", "text", ["train.steps=300"]),
    ("Llama-like, AdamW, cosine", "text", [*LLAMA, *ADAMW, *COSINE, "train.clip_norm=1"]),
    ("Gopher-like, Adam, cosine", "text", [*GOPHER, *COSINE, "train.optimizer=adam", "train.learning_rate=2e-3",
                                           "train.warm_up=10%", "train.clip_norm=1"]),
    ("GPT-2-like, learned positions", "text", [*DECODER, *ADAMW, *COSINE, "model.positions=learned",
                                               "model.initialization=gpt-2", "model.activation=gelu-tanh"]),
    ("decoder, SGD", "text", [*DECODER, "train.optimizer=sgd", "train.learning_rate=0.1", "train.warm_up=10%",
                              "train.clip_norm=1"]),
    ("decoder, Muon", "text", [*LLAMA, "train.optimizer=muon", "train.learning_rate=1e-2", "train.warm_up=10%"]),
    ("decoder, Schedule-Free AdamW", "text", [*LLAMA, "train.optimizer=schedule-free-adamw", "train.schedule=constant * "
                                              "linear_warmup", "train.learning_rate=3e-3", "train.warm_up=10%"]),
    ("decoder, Lion", "text", [*LLAMA, *COSINE, "train.optimizer=lion", "train.learning_rate=3e-4",
                               "train.warm_up=10%", "train.weight_decay=0.3"]),
    ("decoder, SOAP, QK-norm", "text", [*LLAMA, "model.qk_norm=rmsnorm", "train.optimizer=soap",
                                        "train.learning_rate=2e-3", "train.warm_up=10%"]),
    ("fast weights, gated delta rule", "text", [*LLAMA, *ADAMW, *COSINE, "model.attention=gated-delta",
                                                "model.positions=none", "train.clip_norm=1"]),
    ("fast weights, linear attention", "text", [*DECODER, *ADAMW, "model.attention=linear", "train.clip_norm=1"]),
    ("ReZero, no warm-up", "text", [*DECODER, "model.residual=rezero", "train.optimizer=adamw",
                                    "train.learning_rate=1e-3", "train.warm_up=0"]),
    ("BERT-like, masked tokens", "masked", [*ENCODER, *ADAMW, "model.pooling=none", "model.positions=learned",
                                            "model.activation=gelu"]),
    ("AWD-LSTM, SGD", "text", [*LSTM, "train.optimizer=nt-asgd", "train.schedule=constant", "train.learning_rate=20"]),
    ("classifier as in the README", "labels", ["train.steps=300"]),
    ("classifier, Post-LN, Adam", "labels", [*ENCODER, "model.residual=post-ln", "train.optimizer=adam",
                                             "train.learning_rate=5e-4", "train.warm_up=20%"]),
    ("fine-tuning, decoder to classify", "labels-text", ["train.learning_rate=5e-4", "train.steps=200"],
     "Llama-like, AdamW, cosine"),
    ("fine-tuning, BERT-like to classify", "labels-masked", ["train.learning_rate=5e-4", "train.steps=200"],
     "BERT-like, masked tokens"),
]
POST_LN = ["model.kind=decoder", "model.residual=post-ln", "model.d_model=64", "model.feed_forward=128",
           "model.decoder_layers=8", "train.optimizer=adamw", "train.schedule=constant * linear_warmup",
           "train.warm_up=0", "train.clip_norm=0"]
FAILING = [
    ("rate a hundred times too high", "text", [*LLAMA, *COSINE, "train.optimizer=adamw", "train.learning_rate=0.3",
                                               "train.warm_up=10%"]),
    ("Post-LN of 8 layers without warm-up", "text", [*POST_LN, "train.learning_rate=2e-3"]),
    ("ε of 0.01 under Adam", "text", [*LLAMA, *ADAMW, "train.adamw.eps=0.01"]),
    ("SGD that explodes", "text", [*DECODER, "model.norm=none", "train.optimizer=sgd", "train.learning_rate=1",
                                   "train.warm_up=0"]),
    ("collapsed tokens: 8 layers without residuals", "text", [*DECODER, *ADAMW, "model.decoder_layers=8",
                                                              "model.residual=no-residual"]),
    ("targets a line late", "late", [*TRANSLATION, *ADAMW]),
    ("each pair three times", "thrice", [*TRANSLATION, *ADAMW]),
]
COMMON = ["train.steps=400", "train.batch_tokens=2048", "train.validate_every=25%", "train.log_every=10",
          "watch.every=25", 'watch.what=["alarms"]']


class Laboratory:
    def __init__(self, arguments):
        self.plumb, self.raw, self.work = Path(arguments.plumb).resolve(), Path(arguments.raw), Path(arguments.work)
        self.work.mkdir(parents=True, exist_ok=True)

    def run(self, *words):
        """Standard output and error, and the exit status."""
        done = subprocess.run([self.plumb, *map(str, words), "--threads", "1"], capture_output=True, text=True)
        return done.stdout + done.stderr, done.returncode

    def make(self, *words):
        text, status = self.run(*words)
        if status != 0:
            raise SystemExit(f"plumb {' '.join(map(str, words))}\n{text}")

    def prepare(self, name):
        """The data directory `name`, made if it does not exist."""
        out = self.work / "data" / name
        if out.exists():
            return out
        plays, questions = self.raw / "shakespeare/tinyshakespeare.txt", self.raw / "trec/train_5500.label"
        labels = ["data", "labels", "--train", questions, "--separator", "space", "--label-end", ":", "--encoding",
                  "latin-1"]
        text = ["data", "text", "--train", plays, "--block", 64, "--vocabulary", 1000]
        if name in ("pairs", "late", "thrice"):
            pair = [self.work / f"{name}.de", self.work / f"{name}.en"]
            self.make("data", "synthesize", "--pairs", 5000, "--raw", self.work / name)
            for file, first in zip(pair, (0, 1)):
                lines = file.read_text().splitlines(True)
                late = lines[first:] + lines[:first] if name == "late" else lines
                file.write_text("".join(late * 3 if name == "thrice" else late))
            self.make("data", "prepare", "--train", *pair, "--vocabulary", 1000, "--out", out)
        elif name == "multi30k":
            pair = [self.raw / "multi30k" / f"train.{language}" for language in ("de", "en")]
            self.make("data", "prepare", "--train", *pair, "--vocabulary", 2000, "--out", out)
        elif name == "text":
            self.make(*text, "--out", out)
        elif name == "masked":
            self.make(*text, "--mask-token", "--out", out)
        elif name == "labels":
            self.make(*labels, "--out", out)
        else:
            source = self.prepare(name.removeprefix("labels-"))
            self.make(*labels, "--tokenizer-from", source, "--out", out)
        return out

    def directory(self, name):
        return self.work / "runs" / re.sub(r"\W+", "-", name)

    def measure(self, run):
        name, data, keys, *origin = run
        directory = self.directory(name)
        found = directory.with_suffix(".json")
        if found.exists():
            return json.loads(found.read_text())
        data = self.prepare(data)
        words = ["--data", data, *(word for key in COMMON + keys for word in ("--set", key))]
        start = ["--from", self.directory(origin[0])] if origin else []
        began = time.time()
        check = directory.with_suffix(".check")
        directory.parent.mkdir(parents=True, exist_ok=True)
        text, _ = self.run("check", *(start[1:]), *words, "--budget", "1g", "--json", check)
        if not check.exists():
            raise SystemExit(f"{name}\n{text}")
        raised = [reason for reason in json.loads(check.read_text())["reasons"] if reason["raised"]]
        text, status = self.run("finetune" if origin else "train", *start, *words, "--out", directory)
        records = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
        losses = [(record["step"], record["loss"]) for record in records if "loss" in record and "step" in record]
        lines = [part for line in text.splitlines() for part in line.split("\r")]
        result = {
            "name": name, "seconds": time.time() - began, "status": status, "losses": losses,
            "check": [f"{reason['alarm']}: {reason['text']}" for reason in raised],
            "said": [line.strip() for line in lines if re.search(r"step \d+: |does not learn|did not learn|fail", line)],
            "records": [record for record in records if "cause" in record or "trouble" in record],
            "output": text,
        }
        found.write_text(json.dumps(result, indent=1))
        return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plumb", default="build/plumb")
    parser.add_argument("--raw", default="raw")
    parser.add_argument("--work", default="out/notices")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*", help="parts of names; default: all")
    arguments = parser.parse_args()
    laboratory = Laboratory(arguments)
    runs = [run for run in HEALTHY + FAILING if not arguments.names or any(part in run[0] for part in arguments.names)]
    for run in runs:
        laboratory.prepare(run[1])
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(laboratory.measure, [run for run in runs if len(run) == 3]))
        results += pool.map(laboratory.measure, [run for run in runs if len(run) > 3])
    (laboratory.work / "notices.json").write_text(json.dumps(results, indent=1))
    for result in results:
        losses = result["losses"]
        print(f"| {result['name']} | {losses[0][1]:.2f} → {losses[-1][1]:.2f} | {'; '.join(result['check']) or '–'} | "
              f"{'; '.join(result['said']) or '–'} | {result['seconds']:.0f} s |")


if __name__ == "__main__":
    main()
