#!/usr/bin/env bash
# build.sh [release|debug|asan|tsan|fuzz]: configures and builds one preset, warnings are errors.
source "$(dirname "$0")/common.sh"
# Objects are the same in every checkout and build folder, so a second one costs little where there is a ccache.
export CCACHE_BASEDIR="$HVD_ROOT" CCACHE_NOHASHDIR=1
preset="${1:-release}"
case "$preset" in
  release | debug | asan | tsan | fuzz) ;;
  *) say "unknown preset '$preset': release, debug, asan, tsan or fuzz" && exit 2 ;;
esac
werror=ON
[[ "$preset" != fuzz ]] || werror=OFF  # the warnings of clang 14 are not those of g++ 12
step "configuring $preset" cmake --preset "$preset" -DHVD_WERROR="$werror"
step "building $preset" cmake --build --preset "$preset"
