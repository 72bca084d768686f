#!/usr/bin/env bash
# Proves that a bare Debian 12 with git, make and nothing else carries a clean clone through `make TARGET`.
# usage: prove-setup.sh [--keep] [--mirror URL] [TARGET…]     (as root; default target: setup)
#
# Makes such a root with debootstrap in a temporary directory, clones the committed state into it and runs make there.
# The mirror, the certificates and the proxy are the host's; nothing else of it is seen inside.
set -euo pipefail
keep=
mirror=
while [ $# -gt 0 ]; do
  case $1 in
    --keep) keep=1 ;;
    --mirror) mirror=$2 && shift ;;
    -*) sed -n '2,3s/^# //p' "$0" >&2 && exit 2 ;;
    *) break ;;
  esac
  shift
done
[ $# -gt 0 ] || set -- setup
[ "$(id -u)" -eq 0 ] || { echo "prove-setup.sh needs root, for chroot" >&2 && exit 1; }
command -v debootstrap > /dev/null || { echo "prove-setup.sh needs debootstrap: apt-get install debootstrap" >&2 && exit 1; }

repository=$(realpath "$(dirname "$0")/..")
repositories=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
  grep -E ' bookworm[a-z-]* main$' | sort -u || true)
[ -n "$mirror" ] || mirror=$(sed -n 's/ bookworm main$//p' <<< "$repositories" | head -n 1)
[ -n "$mirror" ] || { echo "apt names no Debian 12 mirror here; pass --mirror URL" >&2 && exit 1; }
[ -n "$repositories" ] || repositories="$mirror bookworm main"

root=$(mktemp -d /var/tmp/plumb-prove-XXXXXX)
chmod 755 "$root"  # apt drops to a user of its own
# Mounts are made in a namespace of their own below, so none is left here.
cleanup() { if [ -n "$keep" ]; then echo "kept: $root" >&2; else rm -rf --one-file-system "$root"; fi; }
trap cleanup EXIT

started=$SECONDS
debootstrap --variant=minbase --include=git,make,ca-certificates bookworm "$root" "$mirror" > "$root.log" 2>&1 ||
  { tail -n 20 "$root.log" >&2 && exit 1; }
rm "$root.log"
sed 's/^/deb /' <<< "$repositories" > "$root/etc/apt/sources.list"
apt-config dump | grep -E '^Acquire::(https?|Retries|Check)' > "$root/etc/apt/apt.conf.d/90host" || true
cp /etc/resolv.conf /etc/hosts "$root/etc/"
environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
if compgen -G '/usr/local/share/ca-certificates/*.crt' > /dev/null; then
  cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
  chroot "$root" update-ca-certificates > /dev/null
  environment+=(NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt)
fi
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [ -z "${!name:-}" ] || environment+=("$name=${!name}")
done
if command -v npm > /dev/null; then environment+=("npm_config_registry=$(npm config get registry 2> /dev/null)"); fi

git clone --quiet --no-hardlinks "file://$repository" "$root/root/plumb"
prepared=$SECONDS
echo "Bare root in $((prepared - started)) s. Packages in it: $(chroot "$root" dpkg-query -W | wc -l). Now: make $*" >&2
unshare --mount --pid --fork bash -c 'mount -t proc proc "$1/proc" && mount -t devpts devpts "$1/dev/pts" &&
    mount -t tmpfs tmpfs "$1/dev/shm" && exec chroot "$@"' \
  prove "$root" env -i "${environment[@]}" make -C /root/plumb "$@"
echo "make $* passed in $((SECONDS - prepared)) s" >&2
