#!/usr/bin/env bash
# Installs those packages of the given lists (default: packages.txt) that this machine lacks.
# When nothing is missing it is done in an instant, without root and without the network.
set -euo pipefail

repository=$(dirname "$0")/..
lists=("$@")
[ ${#lists[@]} -gt 0 ] || lists=("$(dirname "$0")/packages.txt")

installed=$'\n'
if command -v dpkg-query > /dev/null; then
  installed+=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p')$'\n'
fi

# Whether a command or a file of the repository is there, or one of the packages A|B.
present() {
  local names=$1 substitute package
  shift
  for substitute in "$@"; do
    case $substitute in
      */*) [ ! -e "$repository/$substitute" ] || return 0 ;;
      *) ! command -v "$substitute" > /dev/null || return 0 ;;
    esac
  done
  for package in ${names//|/ }; do
    [[ "$installed" != *$'\n'"$package"$'\n'* ]] || return 0
  done
  return 1
}

missing=()
while read -r names substitutes; do
  # shellcheck disable=SC2086  # a list of words
  present "$names" $substitutes || missing+=("$names")
done < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "${lists[@]}")
[ ${#missing[@]} -gt 0 ] || exit 0

by_other_means="Install these by other means (docs/building.md), then pass SETUP=true to make."
if ! command -v apt-get > /dev/null; then
  echo "This system has no apt-get. Plumb needs what Debian calls:" >&2
  printf '  %s\n' "${missing[@]//|/ or }" >&2
  echo "$by_other_means" >&2
  exit 1
fi

install=(apt-get install --yes --no-install-recommends -o DPkg::Lock::Timeout=300)
needs_root() {
  echo "Packages are missing, and installing them takes root. As root, run:" >&2
  echo "  apt-get update && ${install[*]} $(first_of "${missing[@]}")" >&2
  exit 1
}
first_of() { printf '%s\n' "$@" | sed 's/|.*//' | paste -sd ' '; }

as_root=(env DEBIAN_FRONTEND=noninteractive)
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo > /dev/null || needs_root
  # Without a terminal sudo cannot ask for a password.
  if [ ! -t 0 ] && ! sudo -n true 2> /dev/null; then needs_root; fi
  as_root=(sudo "${as_root[@]}")
fi
"${as_root[@]}" apt-get update -o DPkg::Lock::Timeout=300 || [ "$(id -u)" -eq 0 ] || needs_root

# The first name of each that this release has.
packages=()
unknown=()
for names in "${missing[@]}"; do
  for package in ${names//|/ } ''; do
    [ -n "$package" ] || { unknown+=("$names") && break; }
    if [ -n "$(apt-cache show --no-all-versions "$package" 2> /dev/null)" ]; then
      packages+=("$package")
      break
    fi
  done
done
if [ ${#unknown[@]} -gt 0 ]; then
  echo "This release has no package of these names:" >&2
  printf '  %s\n' "${unknown[@]//|/ or }" >&2
  echo "$by_other_means" >&2
  exit 1
fi
echo "Installing: ${packages[*]}" >&2
"${as_root[@]}" "${install[@]}" "${packages[@]}"
