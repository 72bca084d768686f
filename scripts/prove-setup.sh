#!/usr/bin/env bash
# Proves that a bare Debian with git, make and nothing else carries a clean clone through `make TARGET`, one by one.
# usage: prove-setup.sh [--release 12|13] [--at DIRECTORY] [--offline] [--user] [--keep] [--root DIRECTORY] [--mirror URL]
#                       [TARGET…]
#   (as root; default target: setup)
#   --at       where the clone lies in that root (default: /root/plumb)
#   --offline  what follows the target `setup` has no network
#   --user     what follows the target `setup` is run by a user without root and sudo
#   --keep     leaves the root, and says where
#   --root     goes on in a root that was kept, with what has been committed since
#
# Makes such a root with debootstrap in a temporary directory, clones the committed state into it and runs make there.
# The mirror, the certificates and the proxy are the host's; nothing else of it is seen inside.
set -euo pipefail
release=12
at=/root/plumb
offline=
user=
keep=
root=
mirror=
while [ $# -gt 0 ]; do
  case $1 in
    --release) release=$2 && shift ;;
    --at) at=$2 && shift ;;
    --offline) offline=1 ;;
    --user) user=1 ;;
    --keep) keep=1 ;;
    --root) root=$2 && keep=1 && shift ;;
    --mirror) mirror=$2 && shift ;;
    -*) sed -n '2,10s/^# //p' "$0" >&2 && exit 2 ;;
    *) break ;;
  esac
  shift
done
[ $# -gt 0 ] || set -- setup
case $release in
  12) codename=bookworm ;;
  13) codename=trixie ;;
  *) echo "prove-setup.sh knows Debian 12 and 13, not '$release'" >&2 && exit 2 ;;
esac
[ "$(id -u)" -eq 0 ] || { echo "prove-setup.sh needs root, for chroot" >&2 && exit 1; }
command -v debootstrap > /dev/null || { echo "prove-setup.sh needs debootstrap: apt-get install debootstrap" >&2 && exit 1; }

repository=$(realpath "$(dirname "$0")/..")
# Debian's archives as this machine reaches them, whichever release it has itself.
repositories=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
  sed -nE "s/ (bookworm|trixie)([a-z-]*) main\$/ $codename\2 main/p" | sort -u || true)
[ -n "$mirror" ] || mirror=$(sed -n "s/ $codename main\$//p" <<< "$repositories" | head -n 1)
[ -n "$mirror" ] || { echo "apt names no Debian mirror here; pass --mirror URL" >&2 && exit 1; }
[ -n "$repositories" ] || repositories="$mirror $codename main"

# Mounts are made in a namespace of their own below, so none is left here.
cleanup() { if [ -n "$keep" ]; then echo "kept: $root" >&2; else rm -rf --one-file-system "$root"; fi; }
trap cleanup EXIT

started=$SECONDS
if [ -n "$root" ]; then
  git -C "$root$at" -c safe.directory='*' pull --quiet "file://$repository" HEAD
else
  root=$(mktemp -d "/var/tmp/plumb-prove-$release-XXXXXX")
  chmod 755 "$root"  # apt drops to a user of its own
  debootstrap --variant=minbase --include=git,make,ca-certificates "$codename" "$root" "$mirror" > "$root.log" 2>&1 ||
    { tail -n 20 "$root.log" >&2 && exit 1; }
  rm "$root.log"
  rm -f "$root"/etc/apt/sources.list.d/*
  sed 's/^/deb /' <<< "$repositories" > "$root/etc/apt/sources.list"
  apt-config dump | grep -E '^Acquire::(https?|Retries|Check)' > "$root/etc/apt/apt.conf.d/90host" || true
  echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/90prove"  # what is lost with the power need not be kept
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  if compgen -G '/usr/local/share/ca-certificates/*.crt' > /dev/null; then
    cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
    chroot "$root" update-ca-certificates > /dev/null
  fi
  git clone --quiet --no-hardlinks "file://$repository" "$root$at"
fi
environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [ -z "${!name:-}" ] || environment+=("$name=${!name}")
done
if command -v npm > /dev/null; then environment+=("npm_config_registry=$(npm config get registry 2> /dev/null)"); fi

echo "Bare Debian $release in $((SECONDS - started)) s, with $(chroot "$root" dpkg-query -W | wc -l) packages" >&2

network=()
identity=()
home=/root
for target in "$@"; do
  before=$SECONDS
  unshare --mount --pid --fork "${network[@]}" bash -c '
    root=$1 && shift
    mount -t proc proc "$root/proc" && mount -t devpts devpts "$root/dev/pts" && mount -t tmpfs tmpfs "$root/dev/shm"
    [ -z "${isolated:-}" ] || ip link set lo up
    exec chroot "$@"' prove "$root" "${identity[@]}" "$root" env -i "${environment[@]}" HOME="$home" make -C "$at" "$target"
  echo "Debian $release: make $target passed in $((SECONDS - before)) s" >&2
  if [ "$target" = setup ]; then
    if [ -n "$offline" ]; then
      network=(--net)
      export isolated=1
    fi
    if [ -n "$user" ]; then
      chroot "$root" id plumb > /dev/null 2>&1 || chroot "$root" useradd --create-home plumb
      chroot "$root" chown -R plumb: "$at"
      identity=(--userspec=plumb:plumb)
      home=/home/plumb
    fi
  fi
done
