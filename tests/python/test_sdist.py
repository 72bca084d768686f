"""The sdist, which has all that a build from it needs but Python, a compiler and CMake."""

import os
import pathlib
import subprocess
import sys
import tarfile
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_an_sdist_carries_headers_backend_and_licenses(tmp_path):
    for needed in ("scikit_build_core", "nanobind", "nlohmann_json"):
        pytest.importorskip(needed, reason="the requirements of a build are not installed")
    code = f"import backend; print(backend.build_sdist({str(tmp_path)!r}))"
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
                          capture_output=True, text=True, check=True).stdout.split()[-1]
    with tarfile.open(tmp_path / made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        assert {name.partition("/")[0] for name in archive.getnames()} == {made.removesuffix(".tar.gz")}
        project = archive.extractfile(made.removesuffix(".tar.gz") + "/pyproject.toml").read().decode()
    assert tomllib.loads(project)["build-system"]["requires"] == []
    carried = {name.removeprefix("python/carried/") for name in names if name.startswith("python/carried/")}
    assert {"LICENSES.txt", "cmeel.prefix/include/eigen3/Eigen/Core", "cmeel.prefix/include/fmt/format.h",
            "nlohmann_json/include/nlohmann/json.hpp", "nanobind/cmake/nanobind-config.cmake", "nanobind/src/nb_type.cpp",
            "scikit_build_core/build/__init__.py"} <= carried
    for package in ("scikit_build_core", "packaging", "pathspec", "nanobind", "nlohmann_json"):
        assert any(name.startswith(package + "-") and "/licenses/LICENSE" in name for name in carried), package
    assert {"LICENSE", "PKG-INFO", "CMakeLists.txt", "docs/python.md", "python/CMakeLists.txt", "python/module.cpp"} <= names
    assert (ROOT / "pyproject.toml").read_text() != project and not (ROOT / "python/carried").exists()
    assert not any(name.endswith((".so", ".pyc")) or name.startswith(("tests/", "web/")) for name in names)
