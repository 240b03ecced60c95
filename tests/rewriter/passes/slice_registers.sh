#!/bin/sh
# slice_registers.sh PROGRAM FOLDER: measures the committed corpus and the programs built in FOLDER, but for those that are
# libraries of hundreds of kernels.
corpus=$(find tests/data/ptx -name '*.ptx')
apps=$(find "$2" -maxdepth 1 -type f -perm -u+x ! -name 'thrust*' ! -name 'cub*' ! -name 'cublas*')
# shellcheck disable=SC2086
exec "$1" $corpus $apps
