#!/usr/bin/env bash
# Installs the Debian packages this project is built from; does nothing when none is missing.
#   install_packages.sh --demo    what building and running the command line needs
#   install_packages.sh --test    everything: tests, lints, sanitizers, fuzzers (the default)
# Needs root or a sudo that asks no password. Exit 2: something is missing and cannot be installed here.
set -euo pipefail

demo_packages=(
  cmake g++ ninja-build
  libcli11-dev libeigen3-dev libfmt-dev libmpfr-dev libssl-dev libtbb-dev nlohmann-json3-dev
)
test_packages=(
  ccache git libbenchmark-dev libgtest-dev librapidcheck-dev
  clang-16 clang-format-16 clang-tidy-16 libclang-rt-16-dev
  python3 python3-jsonschema python3-numpy
)
demo_commands=(cmake ninja g++)
test_commands=(clang++-16 clang-format-16 clang-tidy-16 git python3)

case "${1:---test}" in
  --demo) packages=("${demo_packages[@]}") commands=("${demo_commands[@]}") ;;
  --test)
    packages=("${demo_packages[@]}" "${test_packages[@]}")
    commands=("${demo_commands[@]}" "${test_commands[@]}")
    ;;
  *)
    echo "usage: install_packages.sh [--demo|--test], not '$1'" >&2
    exit 2
    ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  for command in "${commands[@]}"; do
    if ! command -v "$command" >/dev/null; then
      echo "This is no Debian system and '$command' is missing. Install what these Debian packages hold:" >&2
      echo "  ${packages[*]}" >&2
      exit 2
    fi
  done
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=(env)
if [ "$(id -u)" -ne 0 ]; then
  if ! sudo -n true 2>/dev/null; then
    echo "Not root, and no sudo that asks no password. As root, run: apt-get install ${missing[*]}" >&2
    exit 2
  fi
  as_root=(sudo -n env)
fi

apt() {
  "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null >/dev/null
}

echo "Installing ${missing[*]}" >&2
if ! apt update || ! apt install -y --no-install-recommends "${missing[@]}"; then
  echo "apt-get could not install ${missing[*]} (see above); Debian 12 has them all" >&2
  exit 2
fi
