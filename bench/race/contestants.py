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


class Kernels:
    """The Google Benchmarks of build/bench/kernels."""

    def __init__(self, program: str, threads: int) -> None:
        self.program, self.threads = program, threads

    def _output(self, arguments: list[str]) -> str:
        command = [self.program, *arguments]
        print('  ' + ' '.join(command), file=sys.stderr, flush=True)
        done = subprocess.run(command, capture_output=True, text=True,
                              env=os.environ | {'PLUMB_THREADS': str(self.threads)})
        if done.returncode != 0:
            raise Failed(f'{" ".join(command)} ended with status {done.returncode}\n{done.stderr}')
        return done.stdout

    @staticmethod
    def _plain(name: str) -> str:
        """Google Benchmark appends a fixed number of iterations to the name."""
        return name.split('/iterations:')[0]

    def names(self, arguments: list[str]) -> list[str]:
        return [self._plain(name) for name in self._output([*arguments, '--benchmark_list_tests']).split()]

    def bench(self, arguments: list[str]) -> Figures:
        found = json.loads(self._output([*arguments, '--benchmark_format=json']))['benchmarks']
        units = {'ns': 1e-9, 'us': 1e-6, 'ms': 1e-3, 's': 1}
        return {'seconds': {self._plain(each['name']): each['real_time'] * units[each['time_unit']] for each in found
                            if not each.get('error_occurred')}}


class Peer:
    """A script of bench/peers, prepared once, then called repeatedly. `work`: the options that tell it what to do."""

    def __init__(self, python: pathlib.Path, script: str, work: list[str], threads: int) -> None:
        self.script = script
        print(f'  {script}: preparing', file=sys.stderr, flush=True)
        self.messages = tempfile.TemporaryFile('w+', encoding='utf-8')
        self.process = subprocess.Popen(
            [python, environment.PEERS / script, *work, '--threads', str(threads)], text=True,
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
