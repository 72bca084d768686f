#!/usr/bin/env bash
# Creates the root directory of a bare Debian with debootstrap, and prints its path.
# usage: bare-root.sh RELEASE PACKAGES [MIRROR]     (as root; RELEASE: 12 or 13; PACKAGES: a,b,… besides the essential)
#
# It uses this machine's mirror, certificates, name resolution and apt settings, and nothing else of it.
set -euo pipefail
case $1 in
  12) codename=bookworm ;;
  13) codename=trixie ;;
  *) echo "bare-root.sh supports Debian 12 and 13, not '$1'" >&2 && exit 2 ;;
esac
packages=ca-certificates${2:+,$2}
mirror=${3:-}
[ "$(id -u)" -eq 0 ] || { echo "bare-root.sh needs root, for chroot" >&2 && exit 1; }
command -v debootstrap > /dev/null || { echo "bare-root.sh needs debootstrap: apt-get install debootstrap" >&2 && exit 1; }

# Debian's archives as configured on this machine, whatever its own release.
repositories=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
  sed -nE "s/ (bookworm|trixie)([a-z-]*) main\$/ $codename\2 main/p" | sort -u || true)
[ -n "$mirror" ] || mirror=$(sed -n "s/ $codename main\$//p" <<< "$repositories" | head -n 1)
[ -n "$mirror" ] || { echo "apt has no Debian mirror configured here; pass one" >&2 && exit 1; }
[ -n "$repositories" ] || repositories="$mirror $codename main"

root=$(mktemp -d "/var/tmp/plumb-debian$1-XXXXXX")
chmod 755 "$root"  # apt switches to its own user
if ! debootstrap --variant=minbase --include="$packages" "$codename" "$root" "$mirror" > "$root.log" 2>&1; then
  tail -n 20 "$root.log" >&2
  rm -rf --one-file-system "$root"
  exit 1
fi
rm "$root.log"
rm -f "$root"/etc/apt/sources.list.d/*
sed 's/^/deb /' <<< "$repositories" > "$root/etc/apt/sources.list"
apt-config dump | grep -E '^Acquire::(https?|Retries|Check)' > "$root/etc/apt/apt.conf.d/90host" || true
echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/90prove"  # nothing here needs to survive a power failure
cp /etc/resolv.conf /etc/hosts "$root/etc/"
if compgen -G '/usr/local/share/ca-certificates/*.crt' > /dev/null; then
  cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
  chroot "$root" update-ca-certificates > /dev/null 2>&1
fi
echo "$root"
