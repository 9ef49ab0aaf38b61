#!/usr/bin/env bash
# glibc_stubs.sh PYTHON FOLDER VERSION ARCH: makes what g++ links programs against so that they start on glibc VERSION (such as 2.28) and
# newer: that glibc's symbols and start files, which Zig carries, and glibc_compat.c. PYTHON has the package ziglang. Used by
# `g++ -B FOLDER -L FOLDER`, which finds them before those of this machine.
source "$(dirname "$0")/../../scripts/common.sh"
python="$1" folder="$2" version="$3" ARCH="$4"
# shellcheck source=target.sh
source "$HVD_ROOT/packaging/wheel/target.sh"
work="$folder.work"
rm -rf "$folder" "$work"
mkdir -p "$folder" "$work"
echo 'int main(void) { return 0; }' >"$work/main.c"
# Zig makes them as it links, in its cache.
export ZIG_GLOBAL_CACHE_DIR="$work" ZIG_LOCAL_CACHE_DIR="$work"
for how in "-pie -fPIE" "-no-pie"; do
  # shellcheck disable=SC2086
  "$python" -m ziglang cc -target "$TRIPLE.$version" $how "$work/main.c" -o "$work/main"
done
find "$work" \( -name 'lib*.so.*' -o -name '*crt1.o' -o -name libc_nonshared.a \) -exec cp -t "$folder" {} +
mv "$folder/libld.so.2" "$folder/$LOADER"
"${TOOL_PREFIX}gcc" -O2 -fPIC -Wall -Wextra -Werror -c "$HVD_ROOT/packaging/wheel/glibc_compat.c" -o "$work/glibc_compat.o"
"${TOOL_PREFIX}ar" rcs "$folder/libglibc_compat.a" "$work/glibc_compat.o"
# g++ links with -lc alone, since newer ones have all in it.
parts=()
for library in "$LOADER" libpthread.so.0 libdl.so.2 librt.so.1 libm.so.6; do parts+=("$folder/$library"); done
echo "GROUP ( $folder/libc.so.6 $folder/libc_nonshared.a $folder/libglibc_compat.a AS_NEEDED ( ${parts[*]} ) )" >"$folder/libc.so"
for library in m.so.6 pthread.so.0 dl.so.2 rt.so.1 util.so.1 resolv.so.2; do
  ln -s "lib$library" "$folder/lib${library%.so.*}.so"
done
rm -rf "$work"
