#!/bin/sh
# Measures Plumb on one GPU, beside PyTorch, where a GPU can be had for minutes only.
#   scripts/gpu.sh build VENV BUILD [CMAKE_ARGUMENT…]
#     builds the program and tests/devices, without a GPU, against the PyTorch of VENV: the version that the machine
#     with the GPU has. BUILD/gpu.tar.gz then has all libraries but those of PyTorch's wheel and of every system.
#   scripts/gpu.sh [--archive FILE] [--python FILE] [--out DIR] [--seconds N] [PART…]
#     measures, and writes DIR/measurements.jsonl (default: out/gpu), from which scripts/gpu_page.py makes tables. The
#     parts, by default all: machine tests train small products decoding steps. Each has a limit, and all N seconds.
#   scripts/gpu.sh --dry-run [--plumb FILE] [--tests FILE] [--python FILE] [--out DIR] [PART…]
#     the same with tiny sizes on the processor, to try everything before.
set -eu

build() {
  mkdir -p "$2"
  venv=$(cd "$1" && pwd) build=$(cd "$2" && pwd) pack=$build/gpu
  shift 2
  cd "$root"
  torch=$("$venv/bin/python" -c 'import torch; print(torch.__path__[0])')
  cmake --preset release -B "$build" -DPLUMB_CPU_KERNELS=OFF -DPLUMB_BUILD_BENCHMARKS=OFF \
    -DCMAKE_PREFIX_PATH="$torch/share/cmake" "$@"
  cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target plumb_app test_devices
  rm -rf "$pack" && mkdir "$pack"
  cp -P "$build/plumb" "$build"/libplumb*.so* "$build/tests/test_devices" "$pack"
  for file in "$pack"/*; do LD_LIBRARY_PATH=$pack:$torch/lib ldd "$file"; done |
    sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u | grep -v -e "^$venv/" -e "^$pack/" \
      -e '/lib\(c\|m\|dl\|rt\|pthread\|mvec\|resolv\|stdc++\|gcc_s\|gomp\)\.so' |
    while read -r library; do cp "$library" "$pack"; done
  find "$pack" -type f -exec strip --strip-unneeded {} +
  "$venv/bin/python" -c 'import torch; print(torch.__version__)' > "$pack/torch-version"
  tar -C "$pack" -czf "$build/gpu.tar.gz" .
  ls -sh "$build/gpu.tar.gz"
}

root=$(cd "$(dirname "$0")/.." && pwd)
if [ "${1:-}" = build ]; then
  shift
  [ $# -ge 2 ] || { echo 'gpu.sh: build needs VENV and BUILD' >&2; exit 2; }
  build "$@"
  exit
fi

plumb=$root/build/plumb tests=$root/build/tests/test_devices archive='' libraries=''
python=python3 out=$root/out/gpu seconds=570 device=cuda tiny=
while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) device=cpu tiny=--tiny; shift; continue ;;
    --*) [ $# -ge 2 ] || { echo "gpu.sh: $1 needs a value" >&2; exit 2; } ;;
  esac
  case $1 in
    --archive) archive=$2 ;;
    --plumb) plumb=$2 ;;
    --tests) tests=$2 ;;
    --python) python=$2 ;;
    --device) device=$2 ;;
    --out) out=$2 ;;
    --seconds) seconds=$2 ;;
    --*) echo "gpu.sh: $1 is not an option" >&2; exit 2 ;;
    *) break ;;
  esac
  shift 2
done
[ $# -gt 0 ] || set -- machine tests train small products decoding steps

mkdir -p "$out"
out=$(cd "$out" && pwd) work=$(mktemp -d)
lines=$out/measurements.jsonl
: > "$lines"
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM INT

note() { printf '{"part": "%s", "note": "%s"}\n' "$1" "$2" >> "$lines"; }

# The program finds the libraries of the archive and those of PyTorch; Python does not see them.
found=$("$python" -c 'import torch; print(torch.__path__[0] + "/lib", torch.__version__)' 2> /dev/null) || found=
if [ -n "$archive" ]; then
  mkdir "$work/program"
  if tar -C "$work/program" -xzf "$archive"; then
    built=$(cat "$work/program/torch-version")
    have=${found##* }
    [ "$built" = "$have" ] ||
      note machine "The program was built for PyTorch $built, and this Python has ${have:-none}: it may not start."
  else
    note machine "The archive of the program cannot be read."
  fi
  plumb=$work/program/plumb tests=$work/program/test_devices
  libraries=$work/program:${found%% *}
fi
for name in plumb tests; do
  eval "file=\$$name"
  case $file in /*) ;; *) file=$(pwd)/$file ;; esac
  { echo '#!/bin/sh'
    echo "LD_LIBRARY_PATH=$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH} exec '$file' \"\$@\""; } > "$work/$name"
  chmod +x "$work/$name"
done

# Seconds that a part may take at most.
limit() {
  case $1 in
    machine) echo 40 ;;
    tests) echo 90 ;;
    train) echo 210 ;;
    small | steps) echo 90 ;;
    *) echo 120 ;;
  esac
}

begin=$(date +%s)
for part in "$@"; do
  left=$((begin + seconds - $(date +%s))) most=$(limit "$part")
  [ -z "$tiny" ] || most=600  # a processor that does other work, too
  [ "$most" -le "$left" ] || most=$left
  if [ "$most" -lt 10 ]; then
    note "$part" "No time was left."
    continue
  fi
  echo "$part, at most $most s" >&2
  # Ends itself before it is ended, with all that it has started.
  status=0
  timeout --kill-after 3 "$most" "$python" "$root/bench/race/gpu.py" "$part" --out "$lines" --work "$work" \
    --plumb "$work/plumb" --tests "$work/tests" --device "$device" --seconds "$((most - 4))" $tiny || status=$?
  [ "$status" = 0 ] || note "$part" "The part ended with status $status."
done
echo "$(grep -c . "$lines") lines in $lines" >&2
