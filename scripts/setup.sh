#!/usr/bin/env bash
# Installs the packages in the given lists (default: packages.txt) that are missing on this machine.
# If nothing is missing, exits immediately, without root or network access.
set -euo pipefail

repository=$(dirname "$0")/..
lists=("$@")
[ ${#lists[@]} -gt 0 ] || lists=("$(dirname "$0")/packages.txt")

installed=$'\n'
if command -v dpkg-query > /dev/null; then
  installed+=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p')$'\n'
fi

# Whether a command or a file of the repository exists, or one of the packages A|B is installed.
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
  echo "This system has no apt-get. Plumb needs these packages, by their Debian names:" >&2
  printf '  %s\n' "${missing[@]//|/ or }" >&2
  echo "$by_other_means" >&2
  exit 1
fi

install=(apt-get install --yes --no-install-recommends -o DPkg::Lock::Timeout=300)
needs_root() {
  echo "Packages are missing, and installing them requires root. As root, run:" >&2
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

# The first name of each that this release provides.
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
if [ ${#packages[@]} -gt 0 ]; then
  echo "Installing: ${packages[*]}" >&2
  "${as_root[@]}" "${install[@]}" "${packages[@]}"
fi
[ ${#unknown[@]} -gt 0 ] || exit 0
echo "This release does not provide these packages:" >&2
printf '  %s\n' "${unknown[@]//|/ or }" >&2
if [[ " ${unknown[*]} " == *" libtorch-dev "* ]]; then
  cat >&2 << 'TORCH'
PyTorch also includes LibTorch (`apt-get install python3-venv` first, if the next line asks for it):
  python3 -m venv torch && torch/bin/pip install torch
  make demo SETUP=true CMAKE_ARGS=-DCMAKE_PREFIX_PATH="$(torch/bin/python -c 'import torch; print(torch.utils.cmake_prefix_path)')"
TORCH
else
  echo "$by_other_means" >&2
fi
exit 1
