#!/usr/bin/env bash
# build.sh [release|product|debug|asan|tsan|fuzz]: configures and builds one preset. Warnings are errors, but in `product`,
# which is `release` without tests and benchmarks, for those who only run it.
source "$(dirname "$0")/common.sh"
# Objects are the same in every checkout and build folder, so a second one costs little where there is a ccache.
export CCACHE_BASEDIR="$HVD_ROOT" CCACHE_NOHASHDIR=1
preset="${1:-release}"
case "$preset" in
  release | product | debug | asan | tsan | fuzz) ;;
  *) say "unknown preset '$preset': release, product, debug, asan, tsan or fuzz" && exit 2 ;;
esac
werror=ON
[[ "$preset" != product ]] || werror=OFF
[[ "$preset" != fuzz ]] || werror=OFF  # the warnings of clang 14 are not those of g++ 12
options=(-DHVD_WERROR="$werror")
[[ -z "${HVD_WITH_CUDA:-}" ]] || options+=(-DHVD_WITH_CUDA="$HVD_WITH_CUDA")  # product leaves CUDA out unless it is asked for
step "configuring $preset" cmake --preset "$preset" "${options[@]}"
progress_step "building $preset" cmake --build --preset "$preset"
