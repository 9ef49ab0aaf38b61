#!/usr/bin/env bash
# build.sh [release|product|debug|asan|tsan|fuzz]: configures and builds one preset. Warnings are errors, but in `product`,
# which is `release` without tests and benchmarks, for those who only run it.
# HVD_SOAK=1: `tsan` has the tests of the launcher, too.
# HVD_UNITY=ON: `release` compiles several files at a time, which takes two thirds of the time where nothing is cached.
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
[[ "$preset" != release ]] || options+=(-DCMAKE_UNITY_BUILD="${HVD_UNITY:-OFF}")
tsan_launcher=ON
[[ "${HVD_SOAK:-0}" != 0 ]] || tsan_launcher=OFF
[[ "$preset" != tsan ]] || options+=(-DHVD_TSAN_LAUNCHER="$tsan_launcher")
[[ -z "${HVD_WITH_CUDA:-}" ]] || options+=(-DHVD_WITH_CUDA="$HVD_WITH_CUDA")  # product leaves CUDA out unless it is asked for
step "configuring $preset" cmake --preset "$preset" "${options[@]}"
progress_step "building $preset" cmake --build --preset "$preset"
