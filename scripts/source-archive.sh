#!/usr/bin/env bash
# Writes the source archive of a release: the committed state and the built report page, so that Node.js
# is not needed to build from it.
# usage: source-archive.sh REPORT_PAGE DIRECTORY
set -euo pipefail
page=$(realpath "$1")
mkdir -p "$2"
directory=$(realpath "$2")
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(plumb VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
git archive --format=tar.gz --prefix="plumb-$version/web/report/dist/" --add-file="$page" --prefix="plumb-$version/" \
  --output="$directory/plumb-$version.tar.gz" HEAD
