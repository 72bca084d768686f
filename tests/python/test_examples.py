"""The examples run, and say what they should."""

import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


def output_of(example):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}  # as in conftest.py
    done = subprocess.run([sys.executable, EXAMPLES / example], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_spectrum():
    output = output_of("spectrum.py")
    assert output.count("largest eigenvalue ") == 2 + 1 and "convolution" in output


def test_judge_runs():
    output = output_of("judge_runs.py")
    assert "better than sgd by more than 0.01?\nadam: " in output and "plumb judge" in output


def test_keep_or_not():
    output = output_of("keep_or_not.py")
    assert "gate kept 4 rate 0.3" in output and "lower kept " in output and "\nruns: " in output


def test_layers_of_gpt2():
    pytest.importorskip("transformers")
    output = output_of("layers_of_gpt2.py")
    assert "3 initializations" in output and "transformer.h.5.mlp.c_proj" in output


def test_watch_a_loop():
    output = output_of("watch_a_loop.py")
    assert output.count("rate / critical rate") == 3


def test_will_it_train():
    output = output_of("will_it_train.py")
    assert " instead of 0.1, which does not train\n" in output and "\nAt 0.00" in output and "trains" in output.split("\nAt 0.00")[1]
