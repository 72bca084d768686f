"""Histories of runs, in the form of docs/formats/run.md, and folders that hold something else."""

import os
import subprocess
import sys

import numpy as np
import pytest

import plumb

METRICS = """\
{"schema": "plumb.metrics/1", "command": "plumb train"}
{"step": 1, "epoch": 0, "loss": 3.5, "metrics": {}}
{"step": 2, "watch": {"rate": 0.1}}
{"step": 2, "epoch": 0, "loss": null, "metrics": {"valid_loss": 3.25}}
{"step": 3, "trouble": {"cause": "loss"}}
{"step": 3, "outcome": "diverged"}
"""


@pytest.fixture
def folder(tmp_path):
    for name, text in (("b", METRICS), ("deeper/a", METRICS.rsplit("\n", 2)[0] + '\n{"step": 3, "lo')):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.toml").write_text("[train]\nlearning_rate = 0.25\n")
        (tmp_path / name / "metrics.jsonl").write_text(text)
    return tmp_path


def test_a_history_is_read(folder):
    run = plumb.Run(folder / "b")
    assert run.config["train"]["learning_rate"] == 0.25
    assert run.columns == ["step", "epoch", "loss", "valid_loss"]
    assert run["step"].tolist() == [1, 2]
    np.testing.assert_array_equal(run["loss"], [3.5, np.nan])
    np.testing.assert_array_equal(run["valid_loss"], [np.nan, 3.25])
    assert run.watches == [{"step": 2, "rate": 0.1}] and run.troubles == [{"step": 3, "cause": "loss"}]
    assert repr(run) == "Run 'b': 2 points to step 2, ended: diverged"
    with pytest.raises(KeyError, match="valid_loss"):
        run["accuracy"]


def test_runs_are_found_also_while_they_train(folder):
    assert [(run.name, run.outcome, len(run["step"])) for run in plumb.runs(folder)] == [("b", "diverged", 2), ("a", None, 2)]
    with pytest.raises(plumb.Error, match="config.toml is missing"):
        plumb.Run(folder)
    with pytest.raises(plumb.Error, match="nothing' is not a directory"):
        plumb.runs(folder / "nothing")


LINES = {
    "no UTF-8": b"\xff", "UTF-16": '{"step": 4}'.encode("utf-16"), "a number": b"3", "a text": b'"loss"', "a list": b"[1]",
    "null": b"null", "no JSON": b"x", "deep": b"[" * 100_000, "5,000 digits": b'{"step": 4, "loss": ' + b"9" * 5000 + b"}",
    "20 digits": b'{"step": 4, "loss": ' + b"9" * 20 + b"}", "a loss that is a text": b'{"step": 4, "loss": "1"}',
    "metrics that are a list": b'{"step": 4, "loss": 1, "metrics": [1]}', "a point without step": b'{"loss": 1}',
    "a metric that is an object": b'{"step": 4, "loss": 1, "metrics": {"a": {}}}', "a watch without step": b'{"watch": {}}',
    "a watch that is a list": b'{"step": 1, "watch": [1]}', "an outcome that is an object": b'{"step": 4, "outcome": {}}',
    "an outcome for terminals": b'{"step": 4, "outcome": "\\u001b]0;"}',
}
TEXTS = {
    "no UTF-8": b"a = '\xff'", "no TOML": b"a = ", "deep lists": b"a = " + b"[" * 100_000, "deep tables": b"a = " + b"{a=" * 100_000,
    "a key of many parts": b".".join([b"a"] * 100_000) + b" = 1", "5,000 digits": b"a = " + b"9" * 5000,
}


def only_a_warning(folder, name):
    """The other run is listed, and a warning names the file."""
    with pytest.warns(UserWarning, match=f"b/{name}") as said:
        assert [run.name for run in plumb.runs(folder)] == ["a"]
    assert len(said) == 1
    with pytest.raises(plumb.Error, match=f"b/{name}"):
        plumb.Run(folder / "b")


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_damaged_history_is_left_out_with_a_warning(folder, line):
    with open(folder / "b" / "metrics.jsonl", "ab") as file:
        file.write(line + b"\n")
    only_a_warning(folder, "metrics.jsonl")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_damaged_configuration_is_left_out_with_a_warning(folder, text):
    (folder / "b" / "config.toml").write_bytes(text)
    only_a_warning(folder, "config.toml")


@pytest.mark.parametrize("name", ["config.toml", "metrics.jsonl"])
@pytest.mark.parametrize("make", [
    os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path), lambda path: os.symlink("/dev/full", path),
    lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 40)], ids=["fifo", "folder", "zero", "full", "huge"])
def test_only_files_are_read_and_only_up_to_a_size(folder, name, make):
    (folder / "b" / name).unlink()
    make(folder / "b" / name)
    only_a_warning(folder, name)


def test_runs_are_found_at_any_depth(folder):
    place = str(folder / "b")
    for _ in range(1100):
        place += "/d"
        os.mkdir(place)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # others raise it, beyond what the path of a file may have
    try:
        assert [run.name for run in plumb.runs(folder)] == ["b", "a"]
    finally:
        sys.setrecursionlimit(limit)
        subprocess.run(["rm", "-r", folder / "b"], check=True)


def test_as_a_data_frame(folder):
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert plumb.Run(folder / "b").to_pandas().shape == (2, 4)
