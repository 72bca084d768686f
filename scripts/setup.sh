#!/usr/bin/env bash
# Installs those packages of the given lists (default: packages.txt) that this machine lacks.
# When nothing is missing it is done in an instant, without root and without the network.
set -euo pipefail

lists=("$@")
[ ${#lists[@]} -gt 0 ] || lists=("$(dirname "$0")/packages.txt")

installed=$'\n'
if command -v dpkg-query > /dev/null; then
  installed+=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p')$'\n'
fi
missing=()
while read -r package command; do
  [ -z "$command" ] || ! command -v "$command" > /dev/null || continue
  [[ "$installed" == *$'\n'"$package"$'\n'* ]] || missing+=("$package")
done < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "${lists[@]}")
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get > /dev/null; then
  echo "This system has no apt-get. Plumb needs what Debian 12 calls:" >&2
  printf '  %s\n' "${missing[@]}" >&2
  echo "Install these by other means, then pass SETUP=true to make." >&2
  exit 1
fi

install=(apt-get install --yes --no-install-recommends -o DPkg::Lock::Timeout=300)
as_root=(env DEBIAN_FRONTEND=noninteractive)
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo > /dev/null; then
    echo "Packages are missing, and installing them takes root. As root, run:" >&2
    echo "  apt-get update && ${install[*]} ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo "${as_root[@]}")
fi
echo "Installing: ${missing[*]}" >&2
"${as_root[@]}" apt-get update -o DPkg::Lock::Timeout=300
"${as_root[@]}" "${install[@]}" "${missing[@]}"
