#!/usr/bin/env bash
# Formats every C++ file in place; --check only says which lines differ (exit 1).
source "$(dirname "$0")/common.sh"
if ! command -v clang-format >/dev/null; then
  say "clang-format is not installed: apt-get install clang-format" && exit 1
fi
mode=(-i)
case "${1:-}" in
  "") ;;
  --check) mode=(--dry-run -Werror) ;;
  *) say "unknown option '$1': the only option is --check" && exit 2 ;;
esac
find autotune cmd configs discovery launcher runtime test timeline \( -name '*.h' -o -name '*.cc' -o -name '*.inc' -o -name '*.c' \) -print0 |
  xargs --null --no-run-if-empty -P "$(nproc)" -n 64 clang-format "${mode[@]}"
