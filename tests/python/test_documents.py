"""The snippets of docs/python.md run as they are written, for a small Transformer."""

import pathlib
import re

import pytest
import torch
from torch import nn

import plumb

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
# Those that need runs and models of Plumb are in test_loading.py and test_runs.py.
SECTIONS = ["The spectrum of a loss", "What each module computes", "Will it train?",
            "Does a setting carry over to larger widths?", "In notebooks, and on a page", "Where two models part",
            "Watching a loop", "Is one arm better?"]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(40, 16)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(16, 2, 16, batch_first=True) for _ in range(2))
        self.head = nn.Linear(16, 40)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x).transpose(1, 2)


def blocks_of(section):
    text = PAGE.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return code + re.findall(r"^`(plumb\.\w+\(.*\))` writes", text, re.MULTILINE)


class Logger:
    def log(self, values):
        self.values = values


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What the page leaves to its readers."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    model, criterion = Model(), nn.CrossEntropyLoss()
    tokens = torch.randint(40, (32, 6))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tokens, tokens.roll(1, 1)), 8, shuffle=True)
    some, reference = list(loader)[:2], Model()
    reference.load_state_dict(model.state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)
    return {"torch": torch, "plumb": plumb, "math": __import__("math"), "model": model, "criterion": criterion,
            "loader": loader, "batches": some, "some": some, "x": some[0][0], "y": some[0][1], "tokens": some[0][0],
            "vector": torch.ones(sum(tensor.numel() for tensor in model.parameters())), "optimizer": optimizer,
            "mine": model, "reference": reference, "logger": Logger()}


def run(section, names):
    for code in blocks_of(section):
        exec(compile(code, f"docs/python.md, {section}", "exec"), names)


def test_all_sections_have_snippets():
    assert all(blocks_of(section) for section in SECTIONS)


def test_spectrum_probe_and_page(names):
    names["loss"] = lambda: names["criterion"](names["model"](names["x"]), names["y"])
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        run("The spectrum of a loss", names)
    names["spectrum"] = names["found"]
    names["loss"] = lambda model, batch: names["criterion"](model(batch[0]), batch[1])
    for section, name in (("What each module computes", "probed"), ("Will it train?", "checked")):
        # The page names modules of other models, and has the whole search.
        page = [code.replace("body.layers.3", "layers.1").replace("steps=3000", "steps=3000, budget=40").replace(
            "; found.to_pandas()", "") for code in blocks_of(section)]
        for code in page:
            exec(compile(code, f"docs/python.md, {section}", "exec"), names)
        names[name] = names["found"]
    run("In notebooks, and on a page", names)
    assert "Before training" in pathlib.Path("page.html").read_text()


def test_coordinate_check(names):
    names["batches"] = [(torch.randn(16, 4), torch.randn(16, 1)) for _ in range(3)]
    names["loss"] = lambda model, batch: (model(batch[0]) - batch[1]).square().mean()
    names["make_model"] = lambda width: nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))
    names["make_optimizer"] = lambda model: torch.optim.Adam(model.parameters(), 1e-3)
    code = blocks_of("Does a setting carry over to larger widths?")[0].replace("hidden.weight", "0.weight")
    exec(code, names)
    assert names["found"].verdict in ("yes", "no", "undecided")


def test_diff_watch_and_judge(names):
    run("Where two models part", names)
    code, = blocks_of("Watching a loop")
    step = "x, y = batch; optimizer.zero_grad(); criterion(model(x), y).backward(); optimizer.step()"
    assert "    …\n" in code
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        exec(code.replace("    …\n", f"    {step}\n"), names)
    assert names["logger"].values["step"] == 1 and names["logger"].values["sharpness"] > 0
    run("Is one arm better?", names)
    assert names["verdicts"]["new"].outcome == "supported"
