"""The examples run, and say what they should."""

import os
import pathlib
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


def test_spectrum():
    environment = os.environ | {"OMP_NUM_THREADS": "1"}  # as in conftest.py
    done = subprocess.run([sys.executable, EXAMPLES / "spectrum.py"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("largest eigenvalue ") == 2 + 1 and "convolution" in done.stdout
