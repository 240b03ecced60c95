#!/usr/bin/env bash
# Finding: a program that mold 1.10.1 links does not start if its zeroed thread-local variables come to lie at the end of
# a page.
#
# mold lets PT_GNU_RELRO begin with .tbss, which is the first section behind the code and takes no space. The data that
# follow are aligned to more. If .tbss is at the very end of a page, the aligned data are in the next one, and the page of
# .tbss belongs to no PT_LOAD. glibc's loader makes all pages of PT_GNU_RELRO read-only, and one of them is not mapped.
#
# Seen (Debian 12, mold 1.10.1+dfsg-1, glibc 2.36): the program ends with 127, and its loader says "cannot apply additional
# memory protection after relocation". Which programs are hit depends on the size of their code: with one int, 1 in 1,024.
# With -z separate-loadable-segments the same objects make a program that runs; with the default linker, too.
#
# usage: findings/mold-tbss-relro.sh      needs Debian 12's gcc, apt-get and dpkg-deb. Ends with 0 if this is still so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq mold=1.10.1+dfsg-1 libssl3 2>/dev/null
for package in ./*.deb; do dpkg-deb -x "$package" root; done
export LD_LIBRARY_PATH=$folder/root/usr/lib/x86_64-linux-gnu
mkdir linker
ln -s "$folder/root/usr/bin/mold" linker/ld
linker/ld --version

cat >program.c <<'C'
#include <stdio.h>
_Thread_local int own;
int main(int argc, char** argv) {
  own = argc;
  puts("started");
  return own != argc;
}
C
printf '.text\n.skip SIZE\n.section .note.GNU-stack,"",@progbits\n' >code.s
gcc -O1 -c program.c -o program.o
link() {  # SIZE OPTION…: makes `program` with so many bytes of code more
  as --defsym SIZE="$1" code.s -o code.o
  gcc -B linker "${@:2}" program.o code.o -o program
}
place() { readelf -lW program | awk '$1 == "TLS" { print $3 }'; }

link 16
at=$(place)
size=$((16 + (0xffc - (at & 0xfff) + 0x1000) % 0x1000))
link "$size"
echo ".tbss at $(place), PT_GNU_RELRO from $(readelf -lW program | awk '$1 == "GNU_RELRO" { print $3 }'), with $size bytes of code more"
code=0
said=$(./program 2>&1) || code=$?
echo "it ends with $code: $said"
[ "$code" = 127 ]
grep -q "cannot apply additional memory protection after relocation" <<<"$said"

link "$size" -Wl,-z,separate-loadable-segments
echo "with -z separate-loadable-segments: $(./program)"
rm linker/ld
link "$size"
echo "by the default linker: $(./program)"
