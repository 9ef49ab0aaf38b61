#!/usr/bin/env bash
# build_wheel.sh [--sdist] [FOLDER]: makes the wheel for all x86-64 Linux with glibc 2.28 or newer, FOLDER/hvdrun-*-manylinux_2_28_x86_64.whl
# (default: dist/), and checks it; and hvdrun-*-py3-none-any.whl, the one without a runtime, for other systems. On Debian 12, with what scripts/install_deps.sh installs, and nvcc for GPUs; what else it needs it builds
# once, from pinned sources, below ~/.cache/hvdrun/wheel (HVD_WHEEL_CACHE); it ends with 3 where Debian has one of them no more. packaging/wheel/README.md says how.
source "$(dirname "$0")/common.sh"
GLIBC=2.28
PLATFORM="manylinux_${GLIBC/./_}_x86_64"
PYTHON=/usr/bin/python3
CACHE="${HVD_WHEEL_CACHE:-$HOME/.cache/hvdrun/wheel}"
sdist=no
[[ "${1:-}" != --sdist ]] || { sdist=yes && shift; }
out="$(realpath -m "${1:-dist}")"
HERE=packaging/wheel

# cached NAME FILE...: the folder of what these files and the compiler make.
cached() {
  local name="$1"
  shift
  echo "$CACHE/$name-$({ cat "$@" && g++ -dumpfullversion; } | sha256sum | cut -c1-16)"
}

# once FOLDER "words" command...: unless the folder is there.
once() {
  local folder="$1"
  shift
  [[ -e "$folder/complete" ]] || { mkdir -p "$CACHE" && step "$@" && touch "$folder/complete"; }
}

install_tools() {
  rm -rf "$tools"
  "$PYTHON" -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check -r "$HERE/requirements.txt"
}

licenses_of_headers() {
  local package
  for package in libcli11-dev libspdlog-dev libfmt-dev libasio-dev nlohmann-json3-dev libeigen3-dev; do
    mkdir -p "$third/licenses/$package"
    cp "/usr/share/doc/$package/copyright" "$third/licenses/$package/"
  done
}

# The compiler cache has nearly every object of the same compiler, by name, and flags: those of scripts/build.sh, where it ran. So
# headers are this machine's, too, where they fit the library that is linked: C libraries keep to one interface for years, and
# yaml-cpp is of the same version. Gloo's are its own. This machine's libmpi.so, which CMake tries, needs a newer glibc itself.
make_wheel() {
  local define=--config-setting=cmake.define name headers=()
  for name in YAML OPENSSL LIBSSH2; do headers+=("$define.HVD_${name}_INCLUDE=/usr/include"); done
  rm -rf "$work" && mkdir -p "$work"
  env CC=cc CXX=c++ CCACHE_BASEDIR="$HVD_ROOT" CCACHE_NOHASHDIR=1 PATH="$tools/bin:$PATH" \
    "$tools/bin/python" -m build --wheel --no-isolation --outdir "$work" --config-setting=build-dir=build-wheel \
    "$define.CMAKE_PREFIX_PATH=$third" "${headers[@]}" \
    "$define.CMAKE_EXE_LINKER_FLAGS=-B$stubs -L$stubs -Wl,--gc-sections,--allow-shlib-undefined" \
    "$define.CMAKE_SHARED_LINKER_FLAGS=-B$stubs -L$stubs -Wl,--gc-sections" \
    "$define.HVD_LICENSES=$third/licenses" "$define.HVD_WERROR=${HVD_WHEEL_WERROR:-ON}" "$define.HVD_WITH_GLOO=ON" \
    "$define.HVD_WITH_MPI=${HVD_WITH_MPI:-AUTO}" "$define.HVD_WITH_CUDA=${HVD_WITH_CUDA:-AUTO}" . || return
  mkdir -p "$out"
  # The wheel says what its programs need, which check_wheel.py proves.
  "$tools/bin/python" "$HERE/tag_wheel.py" "$work"/hvdrun-*.whl "$PLATFORM" "$out"
}

make_sdist() { PATH="$tools/bin:$PATH" "$tools/bin/python" -m build --sdist --no-isolation --outdir "$out" .; }

tools="$(cached tools $HERE/requirements.txt)"
stubs="$(cached "glibc-$GLIBC" $HERE/requirements.txt $HERE/glibc_stubs.sh $HERE/glibc_compat.c)"
third="$(cached third-parties $HERE/third_parties.txt $HERE/third_parties.sh)"
work="$(realpath -m build-wheel.out)"
trap 'rm -rf "$work"' EXIT
upstream() { sed 's/^[0-9]*://; s/[+-].*//'; }
[[ "$(dpkg-query -W -f='${Version}' libyaml-cpp-dev | upstream)" == "$(awk '$1 == "yaml-cpp" { print $2 }' $HERE/third_parties.txt | upstream)" ]] ||
  { say "libyaml-cpp-dev of this machine is not of the version in $HERE/third_parties.txt" && exit 1; }
once "$tools" "installing the tools of $HERE/requirements.txt" install_tools
once "$stubs" "making what programs for glibc $GLIBC are linked against" $HERE/glibc_stubs.sh "$tools/bin/python" "$stubs" "$GLIBC"
[[ -e "$third/complete" ]] || { $HERE/third_parties.sh "$third" && licenses_of_headers && touch "$third/complete"; } || exit
[[ $sdist == no ]] || step "making the source archive" make_sdist
progress_step "building the wheel" make_wheel
step "making the wheel without a runtime" "$PYTHON" $HERE/pure_wheel.py "$out"
step "checking it" "$tools/bin/python" $HERE/check_wheel.py "$PLATFORM" "$out"/hvdrun-*-"$PLATFORM".whl
ls -l "$out"
