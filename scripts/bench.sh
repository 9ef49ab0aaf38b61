#!/usr/bin/env bash
# Installs, builds and measures; options go to test/bench/bench.py (--help lists them).
caller="$PWD"
source "$(dirname "$0")/common.sh"
# Help needs no build.
for option in "$@"; do
  case "$option" in -h | --help) exec /usr/bin/python3 "$HVD_ROOT/test/bench/bench.py" --help ;; esac
done
scripts/install_deps.sh
scripts/build.sh release
cd "$caller"  # --json FILE is meant from where it was typed
exec /usr/bin/python3 "$HVD_ROOT/test/bench/bench.py" "$@"
