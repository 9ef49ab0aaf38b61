#!/usr/bin/env bash
# Checks one model with spin: check.sh [--wrong] NAME [-DMACRO=VALUE ...]. --wrong: the macros break the model, and the
# checker must find that. Ends with 0 if it is as it should be, 1 if not, 77 without spin.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
wrong=0
[[ "$1" == --wrong ]] && wrong=1 && shift
name="$1"
shift
command -v spin >/dev/null || { echo "left out: spin is not installed; scripts/install_deps.sh installs it"; exit 77; }
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
spin "$@" -a "$here/$name.pml" >spin.log || { cat spin.log; exit 1; }
cc -O1 -DSAFETY -DVECTORSZ=2048 -DCOLLAPSE -o pan pan.c
./pan -m200000 -w24 >pan.log 2>&1 || true
grep -E 'states, stored|errors:' pan.log || { cat pan.log; exit 1; }
if grep -q 'max search depth too small' pan.log; then
  cat pan.log
  exit 1
fi
errors=0
grep -q 'errors: 0' pan.log || errors=1
if [[ $errors != "$wrong" ]]; then
  cat pan.log
  [[ -f $name.pml.trail ]] && spin "$@" -t -p "$here/$name.pml" | tail -n 60
  exit 1
fi
