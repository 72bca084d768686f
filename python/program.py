#!python
"""Starts the program, which is in the package, without loading the package, which would load PyTorch."""
import importlib.util
import os
import sys

program = os.path.join(os.path.dirname(importlib.util.find_spec("plumb").origin), "program", "bin", "plumb")
os.execv(program, ["plumb", *sys.argv[1:]])
