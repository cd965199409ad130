#!/usr/bin/env bash
# Builds one preset and runs its tests: test.sh [default|asan|tsan]. Installs missing Debian packages first.
# What is slow, timed or needs a GPU is left out. Ends with ctest's summary; exit 0 = all passed.
# Compiles up to 16 sources as one, which makes a build of everything three times as fast.
set -euo pipefail
preset=${1:-default}
case "$preset" in
  default | asan | tsan) ;;
  *)
    echo "usage: test.sh [default|asan|tsan], not '$preset'" >&2
    exit 2
    ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install_packages.sh --test
# Debian's python3 comes first: it sees the packages installed above.
cmake --preset "$preset" -D CMAKE_UNITY_BUILD=ON -D CMAKE_CXX_COMPILER_LAUNCHER=ccache -D Python3_EXECUTABLE="$(PATH=/usr/bin:$PATH command -v python3)"
cmake --build --preset "$preset"
ctest --preset "$preset" -LE 'slow|gpu|timing' -j2
