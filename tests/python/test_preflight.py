"""plumb.preflight on small training scripts in the styles that people use: ten healthy ones, and twelve with one mistake each."""

import copy
import functools
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import plumb
from conftest import same
from plumb.loops import draw

KINDS, LENGTH = 24, 12
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """The Trainers make folders."""
    monkeypatch.chdir(tmp_path)


def counting(count=128):
    """Sequences that count on by one, two or three."""
    return (torch.randint(KINDS, (count, 1)) + torch.arange(LENGTH + 1) * torch.randint(1, 4, (count, 1))) % KINDS


def pairs(count=128):
    sequences = counting(count)
    return TensorDataset(sequences[:, :-1], sequences[:, 1:])


class Reader(nn.Module):
    """A decoder."""

    def __init__(self, causal=True, dropout=0.1):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout, batch_first=True, norm_first=True)
        self.embed, self.place = nn.Embedding(KINDS, 16), nn.Embedding(LENGTH, 16)
        self.body, self.norm = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.LayerNorm(16)
        self.head, self.causal = nn.Linear(16, KINDS), causal

    def forward(self, tokens, targets=None):
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length) if self.causal else None
        logits = self.head(self.norm(self.body(self.embed(tokens) + self.place.weight[:length], mask)))
        return logits if targets is None else (logits, F.cross_entropy(logits.view(-1, KINDS), targets.reshape(-1)))


class Classifier(nn.Module):
    def __init__(self, softmax=False):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
        self.softmax = softmax

    def forward(self, x):
        return self.layers(x).softmax(-1) if self.softmax else self.layers(x)


def points(count=128):
    x = torch.randn(count, 8)
    return TensorDataset(x, x[:, :4].argmax(1))


def criterion(model, batch):
    scores = model(batch[0])
    return F.cross_entropy(scores.flatten(0, -2), batch[1].flatten())


def plain(model, data, rate=3e-3, loss=criterion, optimizer=None, **options):
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=rate)
    loader = DataLoader(data, 16, shuffle=True, generator=torch.Generator().manual_seed(1))
    return dict(model=model, optimizer=optimizer, loss=loss, loader=loader, steps=500, **options)


def nano(**options):
    """As nanoGPT: a function that makes batches, and a model that computes the loss."""
    data, model = torch.cat(list(counting(200))), Reader(**options)

    def get_batch():
        at = torch.randint(len(data) // (LENGTH + 1), (16,)) * (LENGTH + 1)
        x = torch.stack([data[i:i + LENGTH] for i in at])
        return x, torch.stack([data[i + 1:i + 1 + LENGTH] for i in at])

    return dict(model=model, optimizer=torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95)),
                loss=lambda model, batch: model(*batch)[1], loader=get_batch, steps=500, warm_up=20, clip_norm=1.0)


def warming():
    keywords = plain(Reader(), pairs())
    schedule = torch.optim.lr_scheduler.LambdaLR(keywords["optimizer"], lambda step: min(1, (step + 1) / 30))
    return keywords | {"scheduler": schedule}


def cycle():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.body, self.head = nn.Embedding(KINDS, 16), nn.GRU(16, 32, batch_first=True), nn.Linear(32, KINDS)

        def forward(self, tokens):
            return self.head(self.body(self.embed(tokens))[0])

    keywords = plain(Recurrent(), pairs(), 1e-4)
    return keywords | {"scheduler": torch.optim.lr_scheduler.OneCycleLR(keywords["optimizer"], 1e-2, total_steps=500)}


def regression():
    x = torch.randn(128, 8)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    return plain(model, TensorDataset(x, x.sum(1, keepdim=True)), loss=lambda model, batch: F.mse_loss(model(batch[0]), batch[1]),
                 optimizer=torch.optim.SGD(model.parameters(), 0.02, momentum=0.9))


def masked():
    """Says what stands where tokens are hidden."""
    tokens = counting()[:, :LENGTH]
    hidden = torch.rand(tokens.shape) < 0.3
    data = TensorDataset(tokens.masked_fill(hidden, 0), tokens.masked_fill(~hidden, -100))
    return plain(Reader(causal=False), data)


def accelerated(summed=False):
    accelerate = pytest.importorskip("accelerate")
    model = Reader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=20)
    model, optimizer, loader, schedule = accelerate.Accelerator(cpu=True).prepare(model, optimizer, DataLoader(pairs(), 16), schedule)

    def loss(model, batch):
        return F.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten(), reduction="sum" if summed else "mean")

    return dict(model=model, optimizer=optimizer, scheduler=schedule, loss=loss, loader=loader, steps=500)


def trainer(labels=lambda row: row, rate=3e-3, **options):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=KINDS, n_positions=LENGTH + 1, n_embd=16, n_layer=1, n_head=2)
    rows = [{"input_ids": row, "labels": labels(row)} for row in counting()]
    arguments = transformers.TrainingArguments(
        "unused", learning_rate=rate, warmup_steps=20, max_steps=500, per_device_train_batch_size=16, report_to="none", use_cpu=True,
        **options)
    return dict(trainer=transformers.Trainer(transformers.GPT2LMHeadModel(config), arguments, train_dataset=rows))


def sorting():
    """A classifier of transformers, whose labels its Trainer smooths."""
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=KINDS, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=3)
    rows = [{"input_ids": row, "labels": (row[1] - row[0]) % KINDS - 1} for row in counting()]
    arguments = transformers.TrainingArguments(
        "unused", learning_rate=3e-3, num_train_epochs=50, per_device_train_batch_size=16, label_smoothing_factor=0.1, report_to="none",
        use_cpu=True)
    return dict(trainer=transformers.Trainer(transformers.BertForSequenceClassification(config), arguments, train_dataset=rows))


def lightning(model, data, mistake=None, **trainer):
    pytorch = pytest.importorskip("lightning.pytorch")

    class Task(pytorch.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, batch_idx):
            loss = criterion(self.model, batch)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW((copy.deepcopy(self.model) if mistake == "other" else self).parameters(), lr=3e-3)
            if mistake == "list":  # not a mistake: Lightning accepts it
                return [optimizer]
            schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=self.trainer.estimated_stepping_batches)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    if mistake == "eval":
        model.eval()
    made = pytorch.Trainer(max_steps=500, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                           enable_model_summary=False, gradient_clip_val=1.0, **trainer)
    return dict(trainer=made, module=Task(), loader=DataLoader(data, 16, shuffle=True))


def spoiled(data, place, value):
    data.tensors[0][place] = value
    return data


def in_order(keywords):
    return keywords | {"loader": DataLoader(keywords["loader"].dataset, 16)}


def half_of(model):
    return torch.optim.AdamW(model.body.parameters(), lr=3e-3)


HEALTHY = {
    "classifier": lambda: plain(Classifier(), points()), "schedule": warming, "one cycle": cycle, "regression": regression,
    "masked tokens": masked, "nanoGPT": nano, "accelerate": accelerated, "Trainer": trainer, "Trainer, smoothed": sorting,
    "Lightning": lambda: lightning(Reader(), pairs()),
}
# The mistake, the subject and a part of the text of the alarm, and the batches to blame.
MISTAKES = {
    "rate": (lambda: plain(Classifier(), points(), 3.0), "rate", "3", ()),
    "ignored": (lambda: trainer(lambda row: torch.full_like(row, -100)), "labels", "all are ignored", ()),
    "not shifted": (lambda: plain(Reader(), TensorDataset(*pairs().tensors[:1] * 2)), "labels", "at the same places", ()),
    "shifted twice": (lambda: trainer(lambda row: torch.cat([row[1:], torch.tensor([-100])])), "labels", "two places ahead", ()),
    "no mask": (lambda: nano(causal=False), "start", "a causal mask", ()),
    "NaN": (lambda: in_order(plain(Classifier(), spoiled(points(), 37, torch.nan))), "inputs", "not finite", (2,)),
    "vocabulary": (lambda: in_order(plain(Reader(), spoiled(pairs(), 50, KINDS))), "inputs", f"beyond the {KINDS} rows", (3,)),
    "another model": (lambda: lightning(Reader(), pairs(), "other"), "optimizer", "not the model's", ()),
    "softmax": (lambda: plain(Classifier(softmax=True), points()), "labels", "takes the softmax itself", ()),
    "sum": (lambda: accelerated(summed=True), "labels", "take the mean", ()),
    "evaluation": (lambda: lightning(Classifier(), points(), "eval"), "mode", "call model.train()", ()),
    "left out": (lambda: plain(model := Reader(), pairs(), optimizer=half_of(model)), "optimizer", "does not update embed.weight", ()),
}


def state(keywords):
    """Copies of all that a preflight might touch."""
    loader, optimizer = keywords.get("loader"), keywords.get("optimizer")
    model = keywords.get("model") or keywords.get("module") or keywords["trainer"].model
    generator = getattr(loader, "generator", None)
    groups = [{name: value for name, value in group.items() if name != "params"} for group in getattr(optimizer, "param_groups", [])]
    return copy.deepcopy((
        model.state_dict(), [parameter.grad for parameter in model.parameters()], [module.training for module in model.modules()], groups,
        optimizer.state_dict()["state"] if optimizer else None, torch.get_rng_state(), random.getstate(), np.random.get_state()[1],
        generator.get_state() if generator else None, sorted(vars(keywords.get("module") or keywords.get("trainer") or model))))


def looked(build):
    torch.manual_seed(0)
    keywords, said = build(), []
    before = state(keywords)
    found = plumb.preflight(**keywords, seconds=40, out=said.append)
    assert same(before, state(keywords))
    assert said == [repr(found)] and len(said[0].split("\n")) <= 25
    assert json.loads(found.to_json())["exit_status"] == found.exit_status == (0 if found else 3)
    return found, [finding for finding in found.findings if finding.raised]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_script_has_no_alarm(name):
    found, alarms = looked(HEALTHY[name])
    assert not alarms, found
    assert found.checked.planned_steps in (500, 400) and "no alarms" in found._repr_html_()
    assert [finding.subject for finding in found.findings] == ["memory", "rate", "overfit", "resuming"]


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(name):
    build, subject, text, batches = MISTAKES[name]
    found, alarms = looked(build)
    assert any(one.subject == subject and text in one.text and one.batches == batches for one in alarms), found
    assert len(alarms) <= 3, found


@pytest.mark.parametrize("generator", [None, 3])
def test_batches_have_the_numbers_that_the_loader_gives_them(generator):
    own = None if generator is None else torch.Generator().manual_seed(generator)
    loader = DataLoader(TensorDataset(torch.arange(64)), 4, shuffle=True, generator=own)
    torch.manual_seed(0)
    drawn = draw(loader, 5)
    torch.manual_seed(0)
    assert same(drawn, list(itertools.islice(loader, 5)))


class Counting(torch.optim.SGD):
    """Halves its rate at each step, and saves nothing of that."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, lr=lr)
        self.taken = 0

    def step(self, closure=None):
        self.taken += 1
        for group in self.param_groups:
            group["lr"] /= 2**self.taken
        return super().step(closure)


def test_what_no_state_dict_has_is_found():
    torch.manual_seed(0)
    model = Classifier()
    found = plumb.preflight(**plain(model, points(), optimizer=Counting(model.parameters(), 0.3)), seconds=5, out=None)
    assert any(one.subject == "resuming" and one.raised and "layers.0.weight" in one.text for one in found.findings), found


def test_check_of_a_trainer():
    torch.manual_seed(0)
    keywords = trainer()
    before = state(keywords)
    checked = plumb.check(keywords["trainer"], budget=100)
    assert checked.verdict == "trains" and checked.planned_rate == 3e-3 and checked.planned_steps == 500
    assert checked.planned_warm_up == 20 and same(before, state(keywords))
    keywords = lightning(Classifier(), points())
    checked = plumb.check(keywords["trainer"], module=keywords["module"], batches=keywords["loader"], budget=100)
    assert checked.planned_rate == 3e-3 and checked.planned_warm_up > 0


def test_a_list_of_one_optimizer_of_lightning():
    torch.manual_seed(0)
    keywords = lightning(Classifier(), points(), "list")
    checked = plumb.check(keywords["trainer"], module=keywords["module"], batches=keywords["loader"], budget=20)
    assert checked.planned_rate == 3e-3 and checked.planned_warm_up == 0


def test_what_is_no_loop():
    with pytest.raises(plumb.Error, match="there is no Trainer"):
        plumb.preflight(Classifier())
    with pytest.raises(plumb.Error, match="there is no Trainer"):
        plumb.check(Classifier())
    with pytest.raises(plumb.Error, match="has model=, optimizer=, loss= and loader="):
        plumb.preflight(model=Classifier())
    keywords = plain(Classifier(), points())
    with pytest.raises(plumb.Error, match="runs of one optimizer\nof several, call plumb.check"):
        plumb.preflight(**keywords | {"optimizer": [keywords["optimizer"]] * 2})
    with pytest.raises(plumb.Error, match="taken from an iterator"):
        plumb.preflight(**keywords | {"loader": iter(keywords["loader"])})
    with pytest.raises(plumb.Error, match="at least one batch"):
        plumb.preflight(**keywords | {"loader": []})


SCRIPT = """
import sys
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

rows = [{"input_ids": torch.arange(8), "labels": torch.full((8,), int(sys.argv[1]))}] * 32
model = GPT2LMHeadModel(GPT2Config(vocab_size=8, n_positions=8, n_embd=8, n_layer=1, n_head=1))
arguments = TrainingArguments("unused", max_steps=40, report_to="none", use_cpu=True)
Trainer(model, arguments, train_dataset=rows).train()
print("trained")
"""
LOOP = """
import torch
weight = torch.ones(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
weight.sum().backward()
optimizer.step()
print("trained")
"""


@pytest.mark.parametrize("script, status, text", [(SCRIPT, 3, "all are ignored (-100)"), (LOOP, 2, "a loop of its own")])
def test_the_command(tmp_path, script, status, text):
    if script is SCRIPT:
        pytest.importorskip("transformers"), pytest.importorskip("accelerate")
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "-m", "plumb", "preflight", "script.py", "-100"], cwd=tmp_path, capture_output=True, text=True,
                          env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == status and text in done.stdout + done.stderr, done.stdout + done.stderr
    assert "trained" not in done.stdout


@pytest.mark.parametrize("style", ["transformers", "Lightning", "accelerate", "A loop", "nanoGPT"])
def test_the_recipes_of_the_page(style, monkeypatch):
    """They run as they are written."""
    torch.manual_seed(0)
    section = PAGE.read_text().split("\n## Before the first step\n")[1].split("\n## ")[0]
    code = next(code for name, code in re.findall(r"\*\*(.*?)\*\*.*?```python\n(.*?)```", section, re.DOTALL) if style in name)
    assert len(code.split("\n")) <= 11
    names = {"torch": torch, "plumb": plumb, "F": F}
    if style == "transformers":
        made = trainer()["trainer"]
        made.args.max_steps = 2
        names |= {"Trainer": lambda *arguments, **options: made, "model": None, "arguments": None, "rows": None}
    elif style == "Lightning":
        keywords = lightning(Reader(), pairs())
        keywords["trainer"].fit = lambda module, loader: None
        names |= {"L": type("L", (), {"Trainer": lambda **options: keywords["trainer"]}), "module": keywords["module"],
                  "loader": keywords["loader"]}
    else:
        accelerate = pytest.importorskip("accelerate") if style == "accelerate" else None
        keywords = warming()
        names |= {**keywords, "criterion": nn.CrossEntropyLoss(), "get_batch": nano()["loader"], "max_iters": 2, "warmup_iters": 1,
                  "grad_clip": 1.0, "model": nano()["model"] if style == "nanoGPT" else keywords["model"],
                  "accelerator": accelerate and accelerate.Accelerator(cpu=True)}
        names["optimizer"] = torch.optim.AdamW(names["model"].parameters(), lr=3e-3)
        names["scheduler"] = torch.optim.lr_scheduler.LambdaLR(names["optimizer"], lambda step: min(1, (step + 1) / 30))
    monkeypatch.setattr(plumb, "preflight", functools.partial(plumb.preflight, seconds=5))
    exec(compile(code, f"docs/python.md, {style}", "exec"), names)
    assert names["found"], names["found"]
