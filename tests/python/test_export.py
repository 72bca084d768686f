"""Runs in other programs' stores. Each is read back from its file, since none needs a server."""

import json
import os
import pathlib
import sqlite3
import struct
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "export_runs.py"
METRICS = """\
{"schema": "plumb.metrics/1", "command": "plumb train"}
{"step": 0, "watch": {"curvature": {"hessian": {"value": 2.5}, "error": "words"}}}
{"step": 1, "epoch": 0, "loss": 3.5, "metrics": {}}
{"step": 2, "watch": {"curvature": {"hessian": {"value": 1.5}}}}
{"step": 2, "epoch": 0, "loss": null, "metrics": {"valid_loss": 3.25}}
{"step": 3, "trouble": {"kind": "nonfinite", "loss": 4.0}}
{"step": 3, "outcome": "diverged"}
"""
SHARPNESS = "watch/curvature/hessian/value"
# By step; the loss that is not finite is left out.
NUMBERS = {0: {SHARPNESS: 2.5}, 1: {"epoch": 0, "loss": 3.5}, 2: {SHARPNESS: 1.5, "epoch": 0, "valid_loss": 3.25}}


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "deeper/b"):
        run = tmp_path / "runs" / name
        run.mkdir(parents=True)
        (run / "config.toml").write_text("[train]\nlearning_rate = 0.25\nbetas = [0.9, 0.98]\n")
        (run / "metrics.jsonl").write_text(METRICS + '{"step": 4, "lo')
    return tmp_path


def export(folder, to, *roots, **environment):
    command = [sys.executable, SCRIPT, folder / "runs", *roots, "--to", to, "--project", "p", "--out", folder / "out"]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)


def exported(folder, to):
    pytest.importorskip(to)
    done = export(folder, to)
    assert (done.stdout, done.returncode) == ("a: 3 steps\ndeeper/b: 3 steps\n", 0), done.stderr


def test_trackio(folder):
    exported(folder, "trackio")
    store = sqlite3.connect(folder / "out" / "trackio" / "p.db")
    config = dict(store.execute("select run_name, config from configs"))
    for run in ("a", "deeper/b"):
        found = dict(store.execute("select step, metrics from metrics where run_name = ?", [run]))
        found = {step: json.loads(metrics) for step, metrics in found.items()}
        assert found[2].pop("loss") == "NaN" and found == NUMBERS
        assert json.loads(config[run])["train"] == {"learning_rate": 0.25, "betas": [0.9, 0.98]}
        assert json.loads(config[run])["outcome"] == "diverged"


def test_mlflow(folder):
    pytest.importorskip("sqlalchemy", reason="mlflow-skinny alone has no store")
    exported(folder, "mlflow")
    store = sqlite3.connect(folder / "out" / "mlflow.db")
    runs = {name: (run, status) for run, name, status in store.execute("select run_uuid, name, status from runs")}
    for name in ("a", "deeper/b"):
        run, status = runs[name]
        assert status == "FAILED"
        assert dict(store.execute("select key, value from params where run_uuid = ?", [run])) == {
            "train.learning_rate": "0.25", "train.betas": "[0.9, 0.98]"}
        assert ("outcome", "diverged") in store.execute("select key, value from tags where run_uuid = ?", [run]).fetchall()
        found = {step: {} for step in NUMBERS}
        for step, key, value in store.execute("select step, key, value from metrics where run_uuid = ? and not is_nan", [run]):
            found[step][key] = value
        assert found == NUMBERS


def test_wandb(folder):
    pytest.importorskip("wandb")
    from wandb.proto import wandb_internal_pb2

    exported(folder, "wandb")
    names = []
    for file in (folder / "out" / "wandb").glob("offline-run-*/run-*.wandb"):
        data, begin, found = file.read_bytes(), 7, {}
        assert len(data) < 1 << 15  # one block of records
        while begin < len(data):
            _, size, _ = struct.unpack("<IHB", data[begin:begin + 7])
            record = wandb_internal_pb2.Record.FromString(data[begin + 7:begin + 7 + size])
            begin += 7 + size
            if record.HasField("run"):
                names.append(record.run.display_name)
                config = {item.key: json.loads(item.value_json) for item in record.run.config.update}
                assert config["train"] == {"learning_rate": 0.25, "betas": [0.9, 0.98]}
            if record.HasField("history"):
                items = {item.key or "/".join(item.nested_key): item.value_json for item in record.history.item}
                found[record.history.step.num] = {key: json.loads(value) for key, value in items.items() if key[0] != "_"}
        assert str(found[2].pop("loss")) in ("nan", "NaN") and found == NUMBERS
    assert sorted(names) == ["a", "deeper/b"]


@pytest.mark.parametrize("package", ["wandb", "mlflow", "trackio"])
def test_a_package_that_is_missing_is_named(folder, package):
    # A path hook that finds nothing of this name.
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules[{package!r}] = None\n")
    done = export(folder, package, PYTHONPATH=str(folder))
    assert done.returncode == 1 and done.stderr == f"{package} is not installed: pip install {package}\n"


TRACKIO = "class Run:\n    def log(self, *_, **__): pass\ndef init(**_): return Run()\ndef finish(): pass\n"


@pytest.mark.parametrize("name, damage", [
    ("config.toml", lambda path: path.write_text("[train")), ("metrics.jsonl", lambda path: path.write_text("3\n")),
    ("metrics.jsonl", lambda path: path.write_text("[" * 100_000 + "\n")), ("metrics.jsonl", lambda path: path.write_bytes(b"\xff\n")),
    ("metrics.jsonl", lambda path: (path.unlink(), os.mkfifo(path))), ("config.toml", lambda path: os.truncate(path, 1 << 40)),
])
def test_damaged_runs_are_named_and_the_others_written(folder, name, damage):
    (folder / "trackio.py").write_text(TRACKIO)
    damage(folder / "runs" / "a" / name)
    done = export(folder, "trackio", folder / "nothing", PYTHONPATH=str(folder))
    assert done.stdout == "deeper/b: 3 steps\n" and done.returncode == 1
    assert f"'{folder / 'runs' / 'a'}' is not a run, or damaged" in done.stderr and "nothing has no run" in done.stderr
