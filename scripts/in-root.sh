#!/usr/bin/env bash
# Runs a command in the root directory of another system, with that system's /proc, /dev/pts and /dev/shm.
# usage: in-root.sh ROOT [--offline] [--user NAME] COMMAND…     (as root)
#
# The command sees only the proxy variables of this machine's environment. The mounts are made in a separate namespace
# and end with it. With --offline, the command has only the loopback interface.
set -euo pipefail
root=$1 && shift
isolate=()
identity=()
home=/root
while [ $# -gt 0 ]; do
  case $1 in
    --offline) isolate=(--net) ;;
    --user) identity=("--userspec=$2:$2") && home=/home/$2 && shift ;;
    *) break ;;
  esac
  shift
done
environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "HOME=$home")
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [ -z "${!name:-}" ] || environment+=("$name=${!name}")
done
loopback=:
[ ${#isolate[@]} -eq 0 ] || loopback='ip link set lo up'
exec unshare --mount --pid --fork "${isolate[@]}" bash -c '
  root=$1 && shift
  mount -t proc proc "$root/proc" && mount -t devpts devpts "$root/dev/pts" && mount -t tmpfs tmpfs "$root/dev/shm"
  '"$loopback"'
  exec chroot "$@"' in-root "$root" "${identity[@]}" "$root" env -i "${environment[@]}" "$@"
