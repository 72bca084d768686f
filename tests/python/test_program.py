"""The program in the package, as a wheel brings it."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest
import torch

import plumb

PACKAGE = pathlib.Path(plumb.__file__).parent
SCRIPT = pathlib.Path(sys.executable).with_name("plumb")
pytestmark = pytest.mark.skipif(not (PACKAGE / "program").exists(), reason="the package was installed without the program")


def libraries_in(text):
    """Those that a process has loaded, from /proc/PID/maps."""
    return {pathlib.Path(path).resolve() for path in re.findall(r"/\S+\.so[.\d]*$", text, re.MULTILINE)}


def only(libraries, name):
    found = [path for path in libraries if path.name.startswith(name)]
    assert len(found) == 1, found
    return found[0]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "data"
    command = [SCRIPT, "data", "synthesize", "--out", folder, "--pairs", "300", "--vocabulary", "200", "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def train(data, out, **environment):
    command = [SCRIPT, "train", "--data", data, "--out", out, "--threads", "1", "--quiet", "--set", "train.steps=2", "--set",
               "model.d_model=16", "--set", "model.heads=2"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment)


def test_the_script_starts_it():
    done = subprocess.run([SCRIPT, "--version"], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == (f"plumb {plumb.__version__}\n", 0), done.stderr
    assert subprocess.run([SCRIPT, "no-such-command"], capture_output=True).returncode == 2


def test_training_has_one_libtorch_and_one_openmp_those_of_pytorch(data, tmp_path):
    process = train(data, tmp_path / "run")
    libraries = set()
    while process.poll() is None:  # it tokenizes, and writes event files
        try:
            libraries |= libraries_in(pathlib.Path(f"/proc/{process.pid}/maps").read_text())
        except OSError:
            break
        time.sleep(0.01)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert list((tmp_path / "run").glob("events.out.tfevents.*"))
    assert len(plumb.Run(tmp_path / "run")["loss"]) == 2
    folder = pathlib.Path(torch.__file__).parent / "lib"
    for name in ("libtorch_cpu", "libc10.", "libgomp"):
        assert only(libraries, name).parent == folder.resolve()
    assert only(libraries, "libplumb.so").parent == (PACKAGE / "program" / "lib").resolve()
    for name in ("libdnnl", "libsentencepiece-", "libicuuc", "libcrypto"):
        assert only(libraries, name).parent.name == "plumb_lab.libs"


@pytest.mark.parametrize("program", ["import plumb, torch", "import torch, plumb"])
def test_python_has_one_libtorch_and_one_openmp(program):
    done = subprocess.run([sys.executable, "-c", program + "; print(open('/proc/self/maps').read())"], capture_output=True,
                          text=True, check=True)
    for name in ("libtorch_cpu", "libc10.", "libgomp"):
        only(libraries_in(done.stdout), name)


def test_another_protobuf_does_not_take_the_place_of_its_own(data, tmp_path):
    for library in ("libplumb.so", "libplumb_protobuf.so") if shutil.which("nm") else ():
        done = subprocess.run(["nm", "-D", PACKAGE / "program" / "lib" / library], capture_output=True, text=True, check=True)
        names = re.findall(r" (\w*6google8protobuf\w*)", done.stdout)
        assert names and all(name.startswith("plumb_") for name in names)
    # It has an older one, and exports it.
    other = next((PACKAGE.parent / "plumb_lab.libs").glob("libsentencepiece-*"))
    process = train(data, tmp_path / "run", LD_PRELOAD=str(other))
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert list((tmp_path / "run").glob("events.out.tfevents.*"))
