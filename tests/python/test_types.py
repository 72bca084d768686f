"""Type checkers know the package: its own annotations, and the stub of the extension module."""

import ast
import importlib.util
import pathlib
import subprocess
import sys

import pytest
import torch

import plumb
from plumb import _plumb

# Uses every public function, and says what each returns: a wrong or missing annotation is an error.
PROGRAM = '''
import pathlib
from typing import assert_type

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import plumb

model, x = nn.Linear(2, 1), torch.randn(5, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def loss() -> Tensor:
    return torch.as_tensor(model(x)).square().mean()


def of_batch(batch: Tensor) -> Tensor:
    return torch.as_tensor(model(batch)).square().mean()


def of_model(some: nn.Module, batch: Tensor) -> Tensor:
    return torch.as_tensor(some(batch)).square().mean()


def said(done: int, planned: int, known: str) -> None:
    print(known)


spectrum = plumb.spectrum(loss, model, steps=3, seed=1, progress=said)
assert_type(spectrum, plumb.Spectrum)
assert_type(spectrum.max.value, float)
assert_type(spectrum.trace.error, float | None)
assert_type(spectrum.probes, list[plumb.Probe])
assert_type(spectrum.density, plumb.Density)
assert_type(plumb.spectrum(loss, model.parameters(), by=".*"), plumb.Spectra)
plumb.spectrum(of_batch, list(model.parameters()), batches=[x, x])
hessian = plumb.Hessian([loss, loss], dict(model.named_parameters()))
assert_type(hessian.spectrum(), plumb.Spectrum)
assert_type(hessian.spectrum(by={"all": [".*", model.weight]}), plumb.Spectra)
assert_type(hessian @ torch.ones(3), Tensor)
assert_type(hessian @ list(model.parameters()), list[Tensor])
logits = plumb.GaussNewton(lambda z: z.square().mean(), model, outputs=lambda: torch.as_tensor(model(x)))
assert_type(logits @ torch.ones(3), Tensor)
assert_type(plumb.spectrum(of_batch, model, outputs=lambda: torch.as_tensor(model(x))), plumb.Spectrum)
assert_type(plumb.hvp(loss, model.named_parameters(), torch.ones(3)), Tensor)
assert_type(plumb.hvp(loss, model, dict(model.named_parameters())), dict[str, Tensor])

probed = plumb.probe(model, of_model, [x], seeds=2)
assert_type(probed[""], plumb.ModuleProbe)
assert_type(probed.loss, plumb.Measured)
checked = plumb.coordinate_check(lambda width: nn.Linear(2, width), of_model, [x], widths=[4, 8])
assert_type(checked, plumb.CoordinateCheck)
assert_type(checked["weight"], list[plumb.ScalingExponent])
parted = plumb.diff(model, model, x, of_model, map={"a": "b"})
assert_type(parted.first, plumb.FirstDifference | None)
assert_type(parted.outputs, list[plumb.TensorDifference])

with_loss = plumb.Watch(model, optimizer, every=10, loss=[loss, loss])
assert_type(with_loss.values, dict[str, float])
with_loss.close()
plumb.transformers_callback(every=10)
plumb.lightning_callback(every=10)

flight = plumb.preflight(model=model, optimizer=optimizer, loss=of_model, loader=[x], steps=100)
assert_type(flight.findings, list[plumb.Finding])
assert_type(flight.to_json(), str)
answer = plumb.check(model, optimizer, of_model, [x], budget="20g", warm_up=10)
assert_type(answer, plumb.CheckResult)
assert_type(answer.exit_status, int)
loaded = plumb.load("run")
assert_type(loaded.translate(["a text"]), list[str])
assert_type(loaded.loss(["a text"]), float)
assert_type(loaded.embed(["a text"]), NDArray[np.float32])
assert_type(loaded.classify(["a text", ("one", "another")]), list[plumb.Classified])

verdicts = plumb.judge({"a": [1.0, 2.0], "b": {0.1: [1, 2]}}, margin=0.01)
assert_type(verdicts["b"], plumb.Verdict)
assert_type(verdicts.arms, list[plumb.ArmSummary])
kept = plumb.gate(pathlib.Path("gate.jsonl"), "new", {"base": [2.31, 2.33], "new": {1: 2.3}}, metric="valid_loss")
assert_type(kept, plumb.GateAnswer)
assert_type(kept.next, str)
for run in plumb.runs("."):
    assert_type(run, plumb.Run)
    assert_type(run.outcome, str | None)
    print(run["loss"].mean(), run.config["train"])
assert_type(plumb.report([spectrum, "text"], "page.html"), pathlib.Path)
try:
    pass
except plumb.Error as error:
    print(error)
print(plumb.__version__)
'''
FUNCTIONS = [name for name in plumb.__all__ if callable(getattr(plumb, name)) and not isinstance(getattr(plumb, name), type)]


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """What mypy says, with what it knows of PyTorch kept from one call to the next."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    folder = tmp_path_factory.mktemp("mypy")

    def run(*arguments):
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", *arguments], cwd=folder,
                              capture_output=True, text=True)
        return done.stdout + done.stderr

    def check(program):
        (folder / "program.py").write_text(program)
        return run("program.py")

    check.run = run
    return check


def test_the_package_itself_is_accepted(mypy):
    # Functions of older PyTorch, such as enable_grad, have no annotations.
    older = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15)
    report = mypy.run("-p", "plumb", *["--allow-untyped-calls"] * older)
    assert report.startswith("Success"), report


def test_a_program_that_uses_everything_is_accepted(mypy):
    assert [name for name in FUNCTIONS if f"plumb.{name}(" not in PROGRAM] == []
    report = mypy(PROGRAM)
    assert report.startswith("Success"), report


def test_mistakes_are_found(mypy):
    report = mypy("import torch\nimport plumb\n"
                  "plumb.spectrum(lambda: 1.0, torch.ones(2))\n"
                  "plumb.spectrum(lambda: torch.ones(()), torch.ones(2), step=3)\n"
                  "plumb.judge({'a': [1.0]}).noise + 1\n"
                  "plumb.Run(3)\n")
    assert [line for line in range(1, 7) if f"program.py:{line}: error" in report] == [3, 4, 5, 6], report


def test_every_function_is_annotated():
    for file in pathlib.Path(plumb.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
                missing = [one.arg for one in named if one and one.annotation is None and one.arg not in ("self", "cls")]
                assert node.returns is not None and not missing, f"{file.name}:{node.lineno}: {node.name} {missing}"


def test_the_stub_has_what_the_extension_module_has():
    stub = pathlib.Path(plumb.__file__).with_name("_plumb.pyi")
    everything = ast.parse(stub.read_text(encoding="utf-8")).body
    body = [node for node in everything if hasattr(node, "name")]
    numbers = [node.target.id for node in everything if isinstance(node, ast.AnnAssign)]
    assert sorted([node.name for node in body] + numbers) == sorted(name for name in vars(_plumb) if not name.startswith("__"))
    for node in body:
        if isinstance(node, ast.ClassDef):
            members = {name for name in vars(getattr(_plumb, node.name)) if not name.startswith("_") or name == "__init__"}
            declared = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
            declared |= {one.targets[0].id for one in node.body if isinstance(one, ast.Assign)}  # of an enumeration
            assert declared == members - (
                {"__init__"} if node.name == "Error" else set())
    assert stub.with_name("py.typed").exists()
