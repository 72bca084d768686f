#!/usr/bin/env bash
# Proves that a release installs and runs in a bare Debian: the .deb, and the .tar.gz unpacked by an ordinary user.
# usage: prove-package.sh [--root ROOT] RELEASE PACKAGE.deb [ARCHIVE.tar.gz]
#   (as root; RELEASE: 12 or 13, for which they were made; --root: uses a copy of this bare root)
set -euo pipefail
bare=
if [ "${1:-}" = --root ]; then bare=$2 && shift 2; fi
[ $# -ge 2 ] || { sed -n '2,4s/^# //p' "$0" >&2 && exit 2; }
release=$1
deb=$(realpath "$2")
archive=${3:+$(realpath "$3")}
scripts=$(realpath "$(dirname "$0")")
if [ -n "$bare" ]; then
  root=$(mktemp -d "/var/tmp/plumb-debian$release-XXXXXX")
  chmod 755 "$root"
  cp -a "$bare/." "$root"
else
  root=$("$scripts/bare-root.sh" "$release" "")
fi
trap 'rm -rf --one-file-system "$root"' EXIT
chroot "$root" useradd --create-home user
cp "$deb" "$root/var/tmp/plumb.deb"
[ -z "$archive" ] || cp "$archive" "$root/home/user/plumb.tar.gz"
install=(env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends -q)
TIMEFORMAT="Debian $release: passed in %R s (%U + %S s of a processor)"
timed() {
  echo "+ $1" >&2
  shift
  time "$scripts/in-root.sh" "$root" "$@" > "$root.log" 2>&1 || { tail -n 20 "$root.log" >&2 && exit 1; }
  tail -n 3 "$root.log" >&2
  rm "$root.log"
}
try='cd "$(mktemp -d)" && plumb --version && plumb data synthesize --quiet --pairs 400 --vocabulary 300 --out data &&
  printf "[model]\nd_model = 32\nheads = 2\nencoder_layers = 2\ndecoder_layers = 2\n" > model.toml &&
  plumb probe --quiet --config model.toml --data data --pairs 20 --seeds 2'
timed "apt-get update; download" sh -c 'apt-get update && "$@" --download-only /var/tmp/plumb.deb' sh "${install[@]}"
timed "apt-get install ./plumb.deb" "${install[@]}" /var/tmp/plumb.deb
timed "plumb: synthesize, probe" --user user sh -ec "$try"
[ -n "$archive" ] || exit 0
"$scripts/in-root.sh" "$root" dpkg --remove plumb > /dev/null  # its dependencies remain
timed "the archive in a folder of the user's: synthesize, probe" --user user sh -ec '
  mkdir "$HOME/my programs" && tar -xzf "$HOME/plumb.tar.gz" -C "$HOME/my programs" --strip-components=1
  PATH="$HOME/my programs/bin:$PATH"
  '"$try"
