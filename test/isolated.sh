#!/usr/bin/env bash
# isolated.sh COMMAND...: runs it in process, network, mount and IPC namespaces of its own, with an empty /tmp and /dev/shm, so that
# tests beside each other do not see each other's jobs. That /tmp is a new folder in HVD_TEST_SCRATCH, else in /tmp, and stays. Needs
# root; `isolated.sh --check` says by its exit status whether it works here.
set -euo pipefail
apart=(unshare --pid --mount --net --ipc --fork --kill-child --mount-proc)
if [[ "${1:-}" == --check ]]; then
  [[ $EUID == 0 ]] && exec "${apart[@]}" ip link set lo up 2>/dev/null
  exit 1
fi
root="$(cd "$(dirname "$0")/.." && pwd)"
folder="$(mktemp -d -p "${HVD_TEST_SCRATCH:-/tmp}")"
# The first process reaps what daemons leave behind. A checkout below /tmp stays where it is.
# shellcheck disable=SC2016  # expanded inside
exec "${apart[@]}" bash -c '
  ip link set lo up
  # Open MPI names its files there by the pid of mpirun, which others have in their namespaces.
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  folder=$0 root=$1
  shift
  chmod 1777 "$folder"
  mkdir "$folder/pytest"
  case "$root" in /tmp/*) mkdir -p "$folder/${root#/tmp/}" && mount --bind "$root" "$folder/${root#/tmp/}" ;; esac
  mount --rbind "$folder" /tmp
  cd "$PWD"
  "$@"
  exit $?' "$folder" "$root" "$@"
