#!/bin/sh
# Builds the programs of tests/fuzz in BUILD and runs each for SECONDS, from the corpus in tests/fuzz/corpus/NAME.
# Inputs that reach new code are kept in BUILD/corpus/NAME; failing inputs are saved as BUILD/NAME-crash-….
#   scripts/fuzz.sh BUILD SECONDS [NAME…]
# With KEEP=1 in the environment, a small set of them that reaches the new code is added to tests/fuzz/corpus.
set -eu
build=$1
seconds=$2
shift 2
here=$(cd "$(dirname "$0")/.." && pwd)
compiler=${CLANG:-}
for candidate in clang++ clang++-19 clang++-16 clang++-14; do
  [ -n "$compiler" ] || compiler=$(command -v $candidate || true)
done
if [ -z "$compiler" ]; then
  echo "fuzz: skipped, since there is no clang++"
  exit 0
fi
if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  "$compiler" -x c++ - -fsanitize=fuzzer,address -o /dev/null 2>/dev/null; then
  echo "fuzz: skipped, since $compiler has no libFuzzer (Debian: libclang-rt-…-dev)"
  exit 0
fi
cmake -S "$here/tests/fuzz" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" ${CMAKE_ARGS:-} > "$build.log" 2>&1 ||
  { cat "$build.log"; exit 1; }
if [ $# -eq 0 ]; then
  cmake --build "$build"
  set -- $(for program in "$build"/fuzz_*; do echo "${program##*/fuzz_}"; done)
else
  cmake --build "$build" --target $(printf 'fuzz_%s ' "$@")
fi
# Temporary files in memory, if possible.
[ -n "${TMPDIR:-}" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
export LSAN_OPTIONS="suppressions=$here/tests/support/leaks.txt:print_suppressions=0"
for name in "$@"; do
  program=$build/fuzz_$name
  mkdir -p "$build/corpus/$name"
  echo "fuzz: $name, $seconds s"
  "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$build/$name-" "$build/corpus/$name" "$here/tests/fuzz/corpus/$name" 2> "$build/$name.log" ||
    { tail -40 "$build/$name.log"; echo "fuzz: $name failed; see $build/$name.log"; exit 1; }
  [ -z "${KEEP:-}" ] || "$program" -merge=1 "$here/tests/fuzz/corpus/$name" "$build/corpus/$name" 2>> "$build/$name.log"
  grep -E "number_of_executed_units|peak_rss" "$build/$name.log" | sed 's/^/  /'
done
