"""Interfaces to Plumb and its peers for the race."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import environment

Figures = dict[str, Any]


class Failed(Exception):
    """A program that ended without a result."""


class Plumb:
    def __init__(self, program: str, threads: int) -> None:
        self.program, self.threads = program, threads

    def bench(self, arguments: list[str]) -> Figures:
        with tempfile.TemporaryDirectory() as directory:
            result = os.path.join(directory, 'result.json')
            command = [self.program, 'bench', *arguments, '--threads', str(self.threads)]
            print('  ' + ' '.join(command), file=sys.stderr, flush=True)
            done = subprocess.run([*command, '--json', result], capture_output=True, text=True)
            if done.returncode != 0:
                raise Failed(f'{" ".join(command)} ended with status {done.returncode}\n{done.stderr}')
            with open(result, encoding='utf-8') as file:
                figures: Figures = json.load(file)
                return figures


class Peer:
    """A script of bench/peers, prepared once, then called repeatedly."""

    def __init__(self, python: pathlib.Path, script: str, export: pathlib.Path, threads: int,
                 options: list[str]) -> None:
        self.script = script
        print(f'  {script}: preparing', file=sys.stderr, flush=True)
        self.messages = tempfile.TemporaryFile('w+', encoding='utf-8')
        self.process = subprocess.Popen(
            [python, environment.PEERS / script, '--export', export, '--threads', str(threads), *options], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.messages,
            env=environment.settings(python.parent.parent, threads))
        self.description = self._answer()
        self.works: list[str] = self.description['works']

    def _answer(self) -> Figures:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.messages.seek(0)
            raise Failed(f'{self.script} ended with status {self.process.returncode}\n{self.messages.read()[-2000:]}')
        figures: Figures = json.loads(line)
        return figures

    def call(self, work: str) -> Figures:
        assert self.process.stdin is not None
        print(f'  {self.script}: {work}', file=sys.stderr, flush=True)
        self.process.stdin.write(work + '\n')
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.messages.close()
