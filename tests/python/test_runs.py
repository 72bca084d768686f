"""Histories of runs, in the form of docs/formats/run.md."""

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
    assert repr(run) == "Run b: 2 points to step 2, ended: diverged"
    with pytest.raises(KeyError, match="valid_loss"):
        run["accuracy"]


def test_runs_are_found_also_while_they_train(folder):
    assert [(run.name, run.outcome, len(run["step"])) for run in plumb.runs(folder)] == [("b", "diverged", 2), ("a", None, 2)]
    with pytest.raises(plumb.Error, match="config.toml is missing"):
        plumb.Run(folder)


def test_as_a_data_frame(folder):
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert plumb.Run(folder / "b").to_pandas().shape == (2, 4)
