#!/usr/bin/env bash
# Runs clang-tidy-16 over the product's sources: lint_tidy.sh BUILD_DIR [CHECKS]
# CHECKS replaces the list of .clang-tidy. Exit 77: no clang-tidy-16 or no compile_commands.json.
set -euo pipefail
build_dir=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for needed in run-clang-tidy-16 python3; do
  if ! command -v "$needed" >/dev/null; then
    echo "$needed is not installed; nothing was checked"
    exit 77
  fi
done
if [ ! -f "$build_dir/compile_commands.json" ]; then
  echo "no compile_commands.json in $build_dir (configure with a preset); nothing was checked"
  exit 77
fi
# The short list leaves property_tests to the long one: half of all parsing would be RapidCheck's headers.
rooms="core|reference|judge|optimized|selector|composite|golden|cli"
[ $# -ge 2 ] || rooms+="|property_tests"
sources="($PWD|$build_dir)/($rooms)/"  # CMAKE_UNITY_BUILD writes its sources into the build folder
if ! grep -qE "\"file\": \"$sources" "$build_dir/compile_commands.json"; then
  echo "compile_commands.json in $build_dir names no source of the product"
  exit 1
fi
run-clang-tidy-16 -quiet -p "$build_dir" ${2:+-checks="$2"} "^$sources" 2>&1 |
  { grep -vE '^clang-tidy-16 |^[0-9]+ warnings? generated|^$' || true; }
