#!/usr/bin/env bash
# third_parties.sh PREFIX [NAME]: builds the libraries of third_parties.txt as static ones and installs them below PREFIX. Sources are
# Debian's, read by apt-get from the mirror that this machine uses, into folders of our own: no root, nothing is installed. With
# NAME only that one, from lists that were read. HVD_WHEEL_ARCH is the processor they are for (this machine's). What the mirror has no more comes
# from HVD_DEBIAN_SNAPSHOT, by default snapshot.debian.org at the time that third_parties.txt names. Ends with 3 where neither has a source.
source "$(dirname "$0")/../../scripts/common.sh"
HERE="$HVD_ROOT/packaging/wheel"
ARCH="${HVD_WHEEL_ARCH:-$(uname -m)}"
# shellcheck source=target.sh
source "$HERE/target.sh"
SUITES=(bookworm trixie)
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
SNAPSHOT="${HVD_DEBIAN_SNAPSHOT:-http://snapshot.debian.org/archive/debian/$(awk '$1 == "snapshot" { print $2 }' "$HERE/third_parties.txt")}"
prefix="$1"
work="$prefix.work"
export CFLAGS="-O2 -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections" CC="${TOOL_PREFIX}gcc" CXX="${TOOL_PREFIX}g++"
export CXXFLAGS="$CFLAGS" AR="${TOOL_PREFIX}ar" RANLIB="${TOOL_PREFIX}ranlib"

# The first mirror of Debian in apt's lists.
mirror() {
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } |
    sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' | grep -m 1 -E '/debian/?$'
}

apt_options() {
  printf '%s\n' -o Dir::Etc::SourceList="$work/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User="$(id -un)" \
    -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 -o Acquire::Retries=2
}

# sources_of ARCHIVE [OPTION]: its lines for apt.
sources_of() {
  local suite
  for suite in "${SUITES[@]}"; do echo "deb-src [signed-by=$KEYRING${2:+ $2}] $1 $suite main"; done
}

read_lists() {
  local from
  from="$(mirror)" || { say "no mirror of Debian among apt's lists: build the wheel on Debian 12" && return 3; }
  sources_of "$from" >"$work/apt/sources.list"
  apt-get "${apt[@]}" update -q
}

# The lists of the snapshot beside the mirror's, once; signed as all of Debian is, but long ago.
read_snapshot() {
  ! grep -qsF " $SNAPSHOT " "$work/apt/sources.list" || return
  sources_of "$SNAPSHOT" check-valid-until=no >>"$work/apt/sources.list"
  apt-get "${apt[@]}" update -q
}

fetch_source() { (cd "$work/sources" && apt-get "${apt[@]}" source -q --download-only "$@"); }

# one_archive NAME VERSION SHA256 orig|debian: prints the file.
one_archive() {
  local name="$1" version="$2" sum="$3" kind="$4" only=--tar-only file found
  [[ $kind == orig ]] || only=--diff-only
  file="$name"_"${version#*:}"
  [[ $kind == debian ]] || file="${file%-*}"
  fetch_source "$only" "$name=$version" >&2 || { read_snapshot && fetch_source "$only" "$name=$version"; } >&2 || {
    say "$name $version is not to be had any more, nor at $SNAPSHOT: put Debian's newest into packaging/wheel/third_parties.txt" >&2
    return 3
  }
  found=("$work/sources/$file.$kind".tar.?z*)
  echo "$sum  ${found[0]}" | sha256sum --check --quiet >&2
  echo "${found[0]}"
}

# unpack NAME VERSION SHA256 SHA256_OF_PATCHES: into $work/NAME, patched.
unpack() {
  local name="$1" version="$2" archive patches patch
  archive="$(one_archive "$name" "$version" "$3" orig)"
  patches="$(one_archive "$name" "$version" "$4" debian)"
  rm -rf "${work:?}/$name" && mkdir "$work/$name"
  tar -xf "$archive" -C "$work/$name"
  # Most archives hold one folder.
  if [[ "$(find "$work/$name" -mindepth 1 -maxdepth 1 | wc -l)" == 1 ]]; then mv "$work/$name"/*/* "$work/$name/"; fi
  tar -xf "$patches" -C "$work/$name"
  while read -r patch _; do
    patch -d "$work/$name" -p1 --quiet <"$work/$name/debian/patches/$patch"
  done < <(grep -vE '^ *(#|$)' "$work/$name/debian/patches/series")
  mkdir -p "$prefix/licenses/$name"
  cp "$work/$name/debian/copyright" "$prefix/licenses/$name/"
}

newest_of_debian() {
  local newest
  newest="$(apt-cache "${apt[@]}" showsrc --only-source "$1" | sed -n 's/^Version: //p' | sort -V | tail -n 1)"
  [[ "$newest" == "$2" ]] || say "note: the wheel has $1 $2, and Debian has $newest"
}

with_cmake() {
  local name="$1"
  shift
  cmake -S "$work/$name" -B "$work/$name/out" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_INSTALL_PREFIX="$prefix" \
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$prefix" -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF \
    -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "${CROSS[@]}" "$@" &&
    cmake --build "$work/$name/out" && cmake --install "$work/$name/out"
}

# Without what SSH and a keyed hash do not need: half of it.
build_openssl() {
  cd "$work/openssl" || return
  perl Configure "linux-$ARCH" --prefix="$prefix" --libdir=lib --openssldir=/etc/ssl no-shared no-module no-dso no-engine \
    no-apps no-docs no-tests no-legacy no-autoload-config no-ml-kem no-ml-dsa no-slh-dsa no-aria no-bf no-camellia \
    no-cast no-idea no-seed no-sm2 no-sm3 no-sm4 no-rc2 no-rc4 no-md4 no-mdc2 no-whirlpool no-cms no-ts no-ocsp no-ct \
    no-srp no-cmp no-comp no-gost no-ec2m no-async no-sock no-http no-quic no-ssl no-tls no-dtls no-rfc3779 no-scrypt \
    no-siphash no-blake2 no-psk no-srtp
  make build_generated
  make -j "$(nproc)" libcrypto.a
  mkdir -p "$prefix/lib" "$prefix/include"
  cp libcrypto.a "$prefix/lib/"
  cp -r include/openssl "$prefix/include/"
}

build_zlib() {
  cd "$work/zlib" || return
  ./configure --static --prefix="$prefix" --libdir="$prefix/lib"
  make -j "$(nproc)" libz.a
  make install
}

build_libssh2() {
  with_cmake libssh2 -DCRYPTO_BACKEND=OpenSSL -DBUILD_EXAMPLES=OFF -DENABLE_ZLIB_COMPRESSION=ON -DHIDE_SYMBOLS=ON \
    -DOPENSSL_USE_STATIC_LIBS=ON -DOPENSSL_ROOT_DIR="$prefix" -DOPENSSL_SSL_LIBRARY="$prefix/lib/libcrypto.a" \
    -DOPENSSL_CRYPTO_LIBRARY="$prefix/lib/libcrypto.a" -DOPENSSL_INCLUDE_DIR="$prefix/include" \
    -DZLIB_LIBRARY="$prefix/lib/libz.a" -DZLIB_INCLUDE_DIR="$prefix/include"
}

build_yaml_cpp() { with_cmake yaml-cpp -DYAML_CPP_BUILD_TOOLS=OFF -DYAML_CPP_BUILD_TESTS=OFF -DYAML_BUILD_SHARED_LIBS=OFF; }

build_gloo() {
  with_cmake gloo -DUSE_REDIS=OFF -DUSE_IBVERBS=OFF -DUSE_LIBUV=OFF -DUSE_CUDA=OFF -DUSE_NCCL=OFF
}

# For another processor: what this machine has for its own. Header-only libraries are the same files; Open MPI, which the plug-in is
# linked against, and GoogleTest, for the tests, are Debian's for that processor.
headers_of_this_machine() {
  local name
  for name in CLI spdlog fmt asio asio.hpp nlohmann eigen3 gtest gmock; do ln -sfn "/usr/include/$name" "$prefix/include/$name"; done
  mkdir -p "$prefix/share/cmake"
  cp -r /usr/share/cmake/CLI11 "$prefix/share/cmake/"  # it looks for its headers from where it lies
}

libraries_of_debian() {
  local from package
  from="$(mirror)"
  apt+=(-o APT::Architecture="$DEBIAN_ARCH" -o APT::Architectures::="$DEBIAN_ARCH")
  echo "deb [arch=$DEBIAN_ARCH signed-by=$KEYRING] $from ${SUITES[0]} main" >"$work/apt/sources.list"
  mkdir -p "$work/debian"
  cd "$work/debian" || return
  apt-get "${apt[@]}" update -q && apt-get "${apt[@]}" download -q libopenmpi-dev libopenmpi3 libgtest-dev libgmock-dev || return
  for package in *.deb; do dpkg-deb -x "$package" .; done
  cp -r "usr/lib/$TRIPLE/openmpi/include" "$prefix/openmpi"
  cp "usr/lib/$TRIPLE/libmpi.so.40" "$prefix/lib/libmpi.so"
  cp "usr/lib/$TRIPLE"/lib{gtest,gmock}*.a "$prefix/lib/"
}

mapfile -t apt < <(apt_options)
mkdir -p "$work/sources" "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
if [[ -n "${2:-}" ]]; then
  read -r -a line < <(grep "^$2 " "$HERE/third_parties.txt")
  unpack "${line[@]}"
  "build_${2//-/_}"
  exit
fi
rm -rf "$prefix"
mkdir -p "$prefix"
step "reading Debian's lists of sources" read_lists
# In the order in which they need each other, each in a process of its own, which ends at its first error.
for name in openssl zlib libssh2 yaml-cpp gloo; do
  read -r _ version _ < <(grep "^$name " "$HERE/third_parties.txt")
  step "building $name $version" "$0" "$prefix" "$name"
  newest_of_debian "$name" "$version"
done
if [[ ${#CROSS[@]} != 0 ]]; then
  headers_of_this_machine
  step "fetching Open MPI and GoogleTest for $ARCH" libraries_of_debian
fi
rm -rf "$work"
