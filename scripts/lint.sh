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
unformatted=$(clang-format --dry-run "${files[@]}" 2>&1 | sed -n 's/^\([^ :]*\):[0-9].*clang-format-violations\]$/  \1/p' | sort -u)
if [ -n "$unformatted" ]; then
  printf 'Not formatted (`make format` does it):\n%s\n' "$unformatted" >&2
  exit 1
fi

# Headers are checked through the sources that include them. A source that passed stays passed until it, a header or
# a rule changes.
passed=$build/passed
mkdir -p "$passed"
rules=(.clang-tidy scripts/lint.sh scripts/lint-prelude.h)
newest_header=$(git ls-files --cached --others --exclude-standard -z -- '*.h' | xargs -0 stat -c '%Y %n' "${rules[@]}" |
  sort -rn | sed -n '1s/^[0-9]* //p')
sources=()
for file in "${files[@]}"; do
  [[ $file == *.cpp ]] && grep -qF "\"file\": \"$PWD/$file\"" "$build/compile_commands.json" || continue
  stamp=$passed/${file//\//_}
  [[ $stamp -nt $file && $stamp -nt $newest_header ]] || sources+=("$file")
done
export build passed
export omp_h=$(g++ -print-file-name=include)  # omp.h stands only with GCC
check() {
  # What clang-tidy says on standard error is how many findings it did not show.
  clang-tidy -p "$build" --quiet --extra-arg="-include$PWD/scripts/lint-prelude.h" --extra-arg="-idirafter$omp_h" "$1" \
    2> /dev/null && touch "$passed/${1//\//_}"
}
export -f check
[ ${#sources[@]} -eq 0 ] || printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'check "$0"'
echo "Clean: the format of ${#files[@]} files, clang-tidy on ${#sources[@]} sources that had changed"
