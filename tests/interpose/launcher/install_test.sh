#!/usr/bin/env bash
# usage: install_test.sh BUILD: installs into a temporary folder, moves the tree, and asks the tool whether all is there.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cmake --install "$1" --prefix "$tree/first" > "$tree/log" 2>&1 || { cat "$tree/log"; exit 1; }
mv "$tree/first" "$tree/moved"
"$tree/moved/bin/gridloom" devices h200 > /dev/null
"$tree/moved/bin/gridloom" doctor
for part in libgridloom.so libgridloom-driver.so libgridloom-compiler.so libcuda.so libcuda.so.1; do
  test -e "$tree/moved/lib/gridloom/$part" || { echo "missing: lib/gridloom/$part"; exit 1; }
done
"$tree/moved/bin/gridloom" run --quiet -- grep -q "$tree/moved/lib/gridloom/libgridloom.so" /proc/self/maps
echo "installed tree works after a move"
