#!/usr/bin/env bash
# usage: test-notes.sh BUILD_DIRECTORY [COUNT]
# Lists the tests skipped in the last run of ctest in BUILD_DIRECTORY, so that they are not mistaken for passed, and the
# COUNT (default: 10) entries that took longest.
set -euo pipefail
log="$1/Testing/Temporary/LastTest.log"
skipped=$(grep -oE '\[  SKIPPED \] [A-Za-z0-9_]+\.[A-Za-z0-9_/]+' "$log" | sort -u | cut -c14- || true)
if [ -n "$skipped" ]; then
  echo "Skipped:"
  while read -r name; do echo "  $name"; done <<< "$skipped"
fi
# Entire tests that report why they skip.
sed -nE -e '/^[0-9]+\/[0-9]+ Test: /{s/^[^:]*: //;h}' -e '/^Skipped: /{H;g;s/(.*)\nSkipped: (.*)/Skipped: \1 (\2)/p}' "$log"
echo "Slowest (seconds):"
sed -nE -e '/^[0-9]+\/[0-9]+ Test: /{s/^[^:]*: //;h}' -e '/^Test time = +/{s/^Test time = +([0-9.]+) sec/\1/;G;s/\n/ /p}' "$log" |
  sort -rn | sed -n "1,${2:-10}s/^/  /p"
