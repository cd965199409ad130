#!/usr/bin/env bash
# Builds the command line and shows it at work: judges the answers that other projects' kernels gave
# (tests/data/third_party) against the float64 reference, then draws the mask of a sliding window.
# Installs missing Debian packages first. Exit 0: no answer was judged wrong.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build_dir=build/demo
cases_dir=tests/data/third_party
picture=$cases_dir/hand_made/H04-clamped.safetensors

scripts/install_packages.sh --demo
mkdir -p build
launcher=$(command -v ccache || true)
cmake --preset default -B "$build_dir" -D ATTN_BUILD_TESTS=OFF -D CMAKE_UNITY_BUILD=ON ${launcher:+-D CMAKE_CXX_COMPILER_LAUNCHER="$launcher"} \
  >"$build_dir.log" 2>&1 || { cat "$build_dir.log" >&2; exit 2; }
cmake --build "$build_dir" --target attn_cli >&2
oracle=$build_dir/cli/attn-oracle

row() { printf '%-16s %-40s %6s %7s %7s %8s\n' "$@"; }

# The distinct values of a provenance field of a folder's index.
provenance() { sed -nE 's/.*"'"$2"'": *"([^"]*)".*/\1/p' "$1/index.jsonl" | sort -u | paste -sd ' '; }

echo "Answers of other projects, each judged against the float64 reference by the certified bound of its own arithmetic;"
echo "those of hand_made, written by hand, by the tolerance of their digits"
echo
row source 'package and versions' cases passed failed skipped
total_cases=0 total_passed=0 total_failed=0 total_skipped=0 failures=
for dir in "$cases_dir"/*/; do
  dir=${dir%/}
  source=${dir##*/}
  log=$build_dir/$source.log
  code=0
  "$oracle" compare --cases "$dir" >"$log" 2>"$log.err" || code=$?
  if ! [[ $(tail -n 1 "$log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
    echo "compare --cases $dir ended with exit $code and no counts:" >&2
    cat "$log.err" >&2
    exit 2
  fi
  passed=${BASH_REMATCH[1]} failed=${BASH_REMATCH[2]} skipped=${BASH_REMATCH[4]:-0}
  [ "$failed" -eq 0 ] || failures+=$(grep ' fail: ' "$log")$'\n'
  cases=$(wc -l <"$dir/index.jsonl")
  row "$source" "$(provenance "$dir" package) $(provenance "$dir" version)" "$cases" "$passed" "$failed" "$skipped"
  total_cases=$((total_cases + cases)) total_passed=$((total_passed + passed))
  total_failed=$((total_failed + failed)) total_skipped=$((total_skipped + skipped))
done
row total '' "$total_cases" "$total_passed" "$total_failed" "$total_skipped"
echo
echo 'skipped: cases that must be rejected instead of answered'
[ "$total_failed" -eq 0 ] || printf '\n%s' "$failures"

echo
echo "A sliding window of 3 over an image at [1, 6] ($picture)."
echo "Rows are queries, columns keys, # is visible:"
echo
"$oracle" show --case "$picture"

[ "$total_failed" -eq 0 ] && [ "$total_passed" -gt 0 ]
