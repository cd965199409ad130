#!/usr/bin/env bash
# Checks that clang-format-16 would change nothing: lint_format.sh [ROOT]. Exit 77: no clang-format-16.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

if ! command -v clang-format-16 >/dev/null; then
  echo "clang-format-16 is not installed; nothing was checked"
  exit 77
fi
find . -path ./build -prune -o \( -name '*.h' -o -name '*.cuh' -o -name '*.cc' -o -name '*.cu' \) -print0 |
  xargs -0 clang-format-16 --dry-run -Werror
