#!/usr/bin/env bash
# Compiles all sources, without making code, against the headers of two LibTorchs besides this machine's: Debian 13's,
# with its other libraries (its packages are unpacked, not installed), and that of a PyTorch wheel.
# usage: check-headers.sh BUILD TORCH JOBS     (TORCH: a virtual environment with the wheel)
set -euo pipefail

# As a compiler's launcher: makes precompiled headers, and only reads sources, which are the last word of a command.
if [ "$1" = --launch ]; then
  shift && source=${!#}
  read_source=("${@:1:$#-1}" -w --param ggc-min-heapsize=4000000 -fsyntax-only -x c++)
  [[ " $* " =~ " -MF "([^ ]+) ]] && dependencies=${BASH_REMATCH[1]:-}
  # The groups are larger than in a build, so their unnamed namespaces may collide: then each half by itself.
  read_all() {  # SOURCE…
    local status=0
    if [ $# = 1 ]; then
      "${read_source[@]}" "$1" || return 1
    elif ! printf '#include "%s"\n' "$@" | "${read_source[@]}" - 2> /dev/null; then
      read_all "${@:1:$#/2}" || status=1
      read_all "${@:$#/2+1}" || status=1
      return $status
    fi
    # What this LibTorch does not have was found in the system's.
    if grep -oE ' /usr/include/(ATen|c10|torch)/[^ ]+' "$dependencies"; then
      echo "error: $source includes these headers, which this LibTorch does not have" && return 1
    fi
  }
  if [[ " $* " == *" c++-header "* ]]; then
    exec "$@" -w --param ggc-min-heapsize=4000000
  fi
  mapfile -t sources < <(sed -n 's|^#include "\(/.*\)"$|\1|p' "$source")
  read_all "${sources[@]:-$source}" && exit 0 || exit 1
fi
mkdir -p "$1" && build=$(realpath "$1") torch=$2 jobs=$3
cd "$(dirname "$0")/.."
check() {  # NAME FOLDER TARGETS CMAKE_OPTION…
  local folder=$build/$2 started=$SECONDS objects object="(bench/)?CMakeFiles/$3\.dir/.+\.o"
  cmake --preset release -B "$folder" --log-level=WARNING -DPLUMB_BUILD_TESTS=OFF -DPLUMB_REPORT_PAGE="$PWD/README.md" \
    -DCMAKE_CXX_FLAGS_RELEASE=-DNDEBUG -DCMAKE_UNITY_BUILD_BATCH_SIZE=40 \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$PWD/scripts/check-headers.sh;--launch" "${@:4}" > /dev/null
  mapfile -t objects < <(sed -nE "s#.* -o ($object) -c .*#\1#p" "$folder"/compile_commands.json)
  cmake --build "$folder" --parallel "$jobs" --target "${objects[@]}" -- -k 0 --quiet
  echo "${#objects[@]} groups of sources compile with the headers of $1 ($((SECONDS - started)) s)"
}

# Debian 13's packages, from this machine's mirror, in the folders where a wheel has the parts of LibTorch.
debian=$build/debian13-headers usr=$build/debian13-headers/usr
apt=(apt-get -qq -o "Dir::State=$debian" -o "Dir::State::status=$debian/status" -o "Dir::Cache=$debian"
  -o "Dir::Etc::sourcelist=$debian/sources" -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root
  -o APT::Update::Error-Mode=any -o Acquire::Retries=3)
rm -rf "$usr" "$debian"/*.deb
mkdir -p "$debian"/{lists/partial,archives/partial} "$usr"/{lib,share/cmake/Torch}
touch "$debian/status" "$usr"/{lib/libtorch_cpu.so,share/cmake/Torch/TorchConfig.cmake}
apt-get indextargets --format 'deb $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
  sed -nE 's/ (bookworm|trixie)([a-z-]*) main$/ trixie\2 main/p' | sort -u > "$debian/sources" || true
if [ -s "$debian/sources" ] && "${apt[@]}" update; then
  sed -nE 's/^([^ #]+-dev)( .*)?$/\1/p' scripts/packages.txt scripts/packages-test.txt | (cd "$debian" && xargs "${apt[@]}" download)
  for package in "$debian"/*.deb; do dpkg-deb -x "$package" "$debian"; done
  # The kernels for one instruction set only, since each takes as long.
  flags="-march=native -DHWY_COMPILE_ONLY_STATIC$(printf " -I$usr/include%s" '' "/$(gcc -print-multiarch)" /eigen3)"
  check "Debian 13" debian13 '[a-z_]+' -DCMAKE_PREFIX_PATH="$usr/share/cmake" -DCMAKE_CXX_FLAGS="$flags"
else
  echo "SKIPPED: the headers of Debian 13, whose repositories cannot be reached"
fi
if wheel=$("$torch/bin/python" -c 'import torch; print(torch.utils.cmake_prefix_path)'); then
  check "PyTorch's wheel" wheel '(plumb_tensor|plumb_program|bench_kernels)' -DCMAKE_PREFIX_PATH="$wheel"
else
  echo "SKIPPED: the headers of PyTorch's wheel, which is not in $torch"
fi
