"""The `gridloom` tool: `python -m gridloom run -- ./app`."""

import os
import sys

from ._launch import EnableError, tool


def main():
    try:
        path = tool()
    except EnableError as error:
        print(f"gridloom: {error}", file=sys.stderr)
        return 125
    sys.stdout.flush()
    try:
        os.execv(path, ["gridloom", *sys.argv[1:]])
    except OSError as error:
        print(f"gridloom: cannot start {path}: {error.strerror}. This package is for Linux on x86-64 with glibc.", file=sys.stderr)
        return 126


if __name__ == "__main__":
    sys.exit(main())
