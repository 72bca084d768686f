#!/usr/bin/env python3
"""Prints what the Python package needs to be built, used and tested, one requirement a line, from pyproject.toml."""
import pathlib
import tomllib

project = tomllib.loads((pathlib.Path(__file__).resolve().parent.parent / 'pyproject.toml').read_text())
print(*project['build-system']['requires'], *project['project']['dependencies'],
      *project['project']['optional-dependencies']['test'], sep='\n')
