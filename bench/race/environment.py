"""The peers' Python: a virtual environment with the newest PyTorch and CTranslate2."""
import os
import pathlib
import subprocess
import sys

PEERS = pathlib.Path(__file__).resolve().parent.parent / 'peers'


class Missing(Exception):
    """The reason why there are no peers."""


def _run(command: list[str | os.PathLike[str]]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _reason(text: str) -> str:
    """A one-line reason from the output of pip or venv."""
    if any(sign in text for sign in ('NewConnectionError', 'Connection refused', 'name resolution', 'timed out')):
        return 'the package index cannot be reached'
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix('ERROR: ') for line in lines if line.startswith('ERROR: ')]
    return (errors or lines or ['no message'])[-1]


def _complete(python: pathlib.Path) -> bool:
    return _run([python, '-c', 'import ctranslate2, numpy, safetensors, torch']).returncode == 0


def make(directory: pathlib.Path) -> pathlib.Path:
    """Creates or updates the environment in `directory` and returns its Python. Packages come from where the user's
    pip looks for them. Raises Missing if there is no environment and none can be created."""
    python = directory / 'bin' / 'python'
    if not python.exists():
        print(f'bench.py: making {directory} for the newest PyTorch and CTranslate2 (some gigabytes)', file=sys.stderr)
        made = _run([sys.executable, '-m', 'venv', directory])
        if made.returncode != 0:
            python.unlink(missing_ok=True)
            hint = 'Debian has it in python3-venv' if 'ensurepip' in made.stdout else _reason(made.stdout)
            raise Missing(f'`python3 -m venv` failed: {hint}')
    installed = _run([python, '-m', 'pip', 'install', '--upgrade', '--quiet', '--disable-pip-version-check',
                      '--retries', '1', '--requirement', PEERS / 'requirements.txt'])
    if _complete(python):
        if installed.returncode != 0:
            print('bench.py: pip found nothing newer than what is installed: ' + _reason(installed.stdout),
                  file=sys.stderr)
        return python
    raise Missing('pip could not install them: ' + _reason(installed.stdout))


def has(python: pathlib.Path, packages: list[str]) -> bool:
    """True if this Python can import the packages."""
    return _run([python, '-c', f'import {", ".join(packages)}']).returncode == 0


def settings(directory: pathlib.Path, threads: int) -> dict[str, str]:
    """The environment variables of a peer."""
    variables = dict(os.environ, OMP_NUM_THREADS=str(threads), PYTHONDONTWRITEBYTECODE='1',
                     TORCHINDUCTOR_CACHE_DIR=str(directory / 'inductor'),
                     THP_MEM_ALLOC_ENABLE='1')
    for name in ('OPENBLAS_CORETYPE', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS', 'OMP_WAIT_POLICY'):
        variables.pop(name, None)
    return variables
