#!/usr/bin/env bash
# Checks format and clang-tidy's findings of all sources, or with SINCE=REF of those that differ from REF.
# usage: lint.sh BUILD_DIRECTORY [JOBS], where the directory holds a compile_commands.json without precompiled headers
set -euo pipefail
build=$(realpath "$1")
jobs=${2:-$(nproc)}
cd "$(dirname "$0")/.."

if [ -n "${SINCE:-}" ]; then
  mapfile -t files < <(git diff --name-only --diff-filter=d "$SINCE" -- '*.h' '*.cpp')
else
  mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.cpp')
fi
[ ${#files[@]} -gt 0 ] || exit 0
clang-format --dry-run -Werror "${files[@]}"

# Headers are checked through the sources that include them.
mapfile -t sources < <(printf '%s\n' "${files[@]}" | grep '\.cpp$' | while read -r file; do
  if grep -qF "\"file\": \"$PWD/$file\"" "$build/compile_commands.json"; then echo "$file"; fi
done)
[ ${#sources[@]} -gt 0 ] || exit 0

# clang knows OpenMP's pragmas; the header omp.h stands only with GCC.
omp=$(g++ -print-file-name=include)
printf '%s\0' "${sources[@]}" |
  xargs -0 -n 1 -P "$jobs" clang-tidy -p "$build" --quiet --warnings-as-errors='*' --extra-arg="-idirafter$omp" \
    2> >(grep -vE '^[0-9]+ warnings? (generated|treated)|^Suppressed|^$' >&2)
echo "clang-format: ${#files[@]} files, clang-tidy: ${#sources[@]} sources, no findings"
