#!/usr/bin/env bash
# Runs clang-format and clang-tidy on all sources or, with SINCE=REF, on those that differ from REF.
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

# The unit of checking is one compilation: a group of sources (CMake's unity build) or a single one, so LibTorch's
# headers are read once per group. Headers are checked through the sources that include them. A unit that passed is not
# checked again until one of its sources, a header or a rule changes.
passed=$build/passed
mkdir -p "$passed"
rules=(.clang-tidy scripts/lint.sh cmake/libtorch_clang.h)
newest_header=$(git ls-files --cached --others --exclude-standard -z -- '*.h' | xargs -0 stat -c '%Y %n' "${rules[@]}" |
  sort -rn | sed -n '1s/^[0-9]* //p')
units=()
while read -r unit; do
  case $unit in
    */Unity/unity_*) mapfile -t sources < <(sed -n 's/^#include "\(.*\)"$/\1/p' "$unit") ;;
    "$build"/*) continue ;;  # generated
    "$PWD"/*) sources=("$unit") ;;
    *) continue ;;
  esac
  stamp=$passed/$(echo "${unit#"$build"/}" | tr / _)
  changed=
  for source in "${sources[@]}"; do
    [[ " ${files[*]} " != *" ${source#"$PWD"/} "* ]] || [[ $stamp -nt $source && $stamp -nt $newest_header ]] || changed=1
  done
  [ -z "$changed" ] || units+=("$unit"$'\t'"$stamp")
done < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" | sort -u)

export build
check() {
  # On standard error, clang-tidy only reports how many findings it suppressed. It does not know GCC's options.
  clang-tidy -p "$build" --quiet --extra-arg="-include$PWD/cmake/libtorch_clang.h" \
    --extra-arg=-Wno-unknown-warning-option "${1%$'\t'*}" 2> /dev/null && touch "${1#*$'\t'}"
}
export -f check
[ ${#units[@]} -eq 0 ] || printf '%s\0' "${units[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'check "$0"'
echo "Clean: the format of ${#files[@]} files, clang-tidy on ${#units[@]} groups of sources that had changed"
