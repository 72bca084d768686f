#!/usr/bin/env bash
# Type-checks the report page and its tests.
# usage: lint-page.sh BUILD_DIRECTORY, where the compiler is installed
set -euo pipefail
build=$(realpath "$1")/page
cd "$(dirname "$0")/../web/report"
node packages.mjs "$build"

# The compiler looks for packages in parent directories, and the source tree has none, so it checks a copy.
rm -rf "$build/src" "$build/test"
cp -r src test tsconfig.json "$build"
cd "$build"
for project in . test; do
  node node_modules/typescript/bin/tsc --project "$project" | sed -E "s#^(src|test)/#web/report/&#" >&2
done
echo "Clean: the types of the report's page"
