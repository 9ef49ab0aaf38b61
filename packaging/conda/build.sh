#!/usr/bin/env bash
# Run by rattler-build in a folder with the wheel: puts its files where conda has such, and its licences where the recipe looks.
set -euo pipefail
unzip -q hvdrun-*.whl -d wheel
data=(wheel/hvdrun-*.data)
mkdir -p "$PREFIX/bin" "$PREFIX/site-packages"
cp "${data[0]}"/scripts/* "$PREFIX/bin/"
chmod 755 "$PREFIX/bin/hvdrun" "$PREFIX/bin/horovodrun"
cp -r "${data[0]}"/data/. "$PREFIX/"
cp -r "${data[0]}"/data/share/doc/hvdrun/licenses .
rm -rf "${data[0]}"
cp -r wheel/. "$PREFIX/site-packages/"
