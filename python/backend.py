"""The build backend: scikit-build-core. An sdist contains it and all headers that a build needs, so that building from it needs
no network, but Python, a C++ compiler, and CMake with Ninja or make."""

import gzip
import io
import re
import sys
import tarfile
import tomllib
from importlib import metadata
from pathlib import Path

_CARRIED = Path(__file__).with_name("carried")  # in an sdist
if _CARRIED.exists():
    sys.path.insert(0, str(_CARRIED))

from scikit_build_core.build import *  # noqa: E402, F403
from scikit_build_core.build import build_sdist as _build_sdist  # noqa: E402

_OWN = re.compile(r"[^/]+/(CMakeLists\.txt|LICENSE|PKG-INFO|docs/python\.md|(src|python)/.*(?<!\.so))")
_OTHERS = re.compile(r"(scikit_build_core|packaging|pathspec|nanobind|nlohmann_json/include/nlohmann)/(?!.*__pycache__)"
                     r"|cmeel\.prefix/include/(eigen3/Eigen|fmt)/|[^/]+\.dist-info/(METADATA$|licenses/)")
_LICENSES = """Eigen (cmeel.prefix/include/eigen3): MPL-2.0, whose text is that of pathspec-*.dist-info/licenses/LICENSE; the
files that have another license say so. Their source: https://gitlab.com/libeigen/eigen.
fmt (cmeel.prefix/include/fmt): MIT, whose text begins fmt/format.h.
robin_map (nanobind/ext): MIT, whose text begins each of its files.
pyproject_metadata (scikit_build_core/_vendor): MIT, in its folder.
All others: in their *.dist-info/licenses.
"""


def build_sdist(sdist_directory: str, config_settings: dict[str, list[str] | str] | None = None) -> str:
    """Of the sources that the package is made of, and what pyproject.toml requires for building, from this environment."""
    name = _build_sdist(sdist_directory, config_settings)
    if _CARRIED.exists():
        return name
    path, folder = Path(sdist_directory) / name, name.removesuffix(".tar.gz")
    project = Path("pyproject.toml").read_text(encoding="utf-8")
    required = [re.split(r"[^\w-]", one)[0] for one in tomllib.loads(project)["build-system"]["requires"]]
    contents = {f"{folder}/pyproject.toml": re.sub(r"(?m)^requires = .*$", "requires = []", project, count=1).encode(),
                f"{folder}/python/carried/LICENSES.txt": _LICENSES.encode()}
    with tarfile.open(path) as whole:
        contents |= {one.name: whole.extractfile(one).read() for one in whole if one.isfile() and _OWN.fullmatch(one.name)}
        date = whole.getmember(f"{folder}/PKG-INFO").mtime
    for distribution in map(metadata.distribution, [*required, "packaging", "pathspec"]):
        for file in distribution.files or ():
            if _OTHERS.match(str(file)):
                contents[f"{folder}/python/carried/{file}"] = Path(distribution.locate_file(file)).read_bytes()
    with gzip.GzipFile(path, "wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as made:
        for member, content in sorted(contents.items()):
            entry = tarfile.TarInfo(member)
            entry.size, entry.mtime = len(content), date
            made.addfile(entry, io.BytesIO(content))
    return name
