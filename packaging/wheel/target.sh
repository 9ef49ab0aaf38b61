# shellcheck shell=bash disable=SC2034  # its variables are for those who source it
# target.sh, sourced with ARCH set: what differs between the processors that wheels are made for. For another one than this machine's,
# Debian's cross compiler (g++-12 of TRIPLE) stands for g++, and QEMU runs hvdrun_texts, which writes the manual page.
#   TRIPLE, LOADER      as glibc names them
#   DEBIAN_ARCH         as Debian names it
#   TOOL_PREFIX         of the names of gcc, g++ and ar
#   CROSS               what CMake is told; empty for this machine's processor
case "$ARCH" in
  x86_64) TRIPLE=x86_64-linux-gnu LOADER=ld-linux-x86-64.so.2 DEBIAN_ARCH=amd64 ;;
  aarch64) TRIPLE=aarch64-linux-gnu LOADER=ld-linux-aarch64.so.1 DEBIAN_ARCH=arm64 ;;
  *) say "unknown processor '$ARCH': x86_64 or aarch64" && exit 2 ;;
esac
TOOL_PREFIX="" CROSS=()
if [[ "$ARCH" != "$(uname -m)" ]]; then
  TOOL_PREFIX="$TRIPLE-"
  for program in "${TOOL_PREFIX}g++" "qemu-$ARCH"; do
    command -v "$program" >/dev/null ||
      { say "there is no $program: scripts/install_deps.sh --cross installs what wheels for another processor need" && exit 1; }
  done
  CROSS=(-DCMAKE_SYSTEM_NAME=Linux "-DCMAKE_SYSTEM_PROCESSOR=$ARCH" "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-$ARCH;-L;/usr/$TRIPLE")
fi
