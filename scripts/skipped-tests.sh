#!/usr/bin/env bash
# Names the tests that were skipped in the last run of ctest in BUILD_DIRECTORY, so that nobody takes them for passed.
set -euo pipefail
log="$1/Testing/Temporary/LastTest.log"
skipped=$(grep -oE '\[  SKIPPED \] [A-Za-z0-9_]+\.[A-Za-z0-9_/]+' "$log" | sort -u | cut -c14- || true)
[ -n "$skipped" ] || exit 0
echo "Skipped, because the files that they read are absent:"
while read -r name; do echo "  $name"; done <<< "$skipped"
