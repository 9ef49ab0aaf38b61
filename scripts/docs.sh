#!/usr/bin/env bash
# docs.sh [serve]: builds the documentation as a site in build/site, or serves it at http://127.0.0.1:8000. A link that leads nowhere is an
# error. The tools come from PyPI, once (scripts/tools.txt).
source "$(dirname "$0")/common.sh"
export NO_MKDOCS_2_WARNING=1
TOOLS_VENV="${HVD_TOOLS_VENV:-$HOME/.cache/hvdrun/tools-venv}"
scripts/install_deps.sh --pypi-tools
case "${1:-}" in
  "") "$TOOLS_VENV/bin/mkdocs" build --strict --quiet && say "the site is in build/site" ;;
  serve) "$TOOLS_VENV/bin/mkdocs" serve ;;
  *) say "unknown option '$1': serve" && exit 2 ;;
esac
