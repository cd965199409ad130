#!/usr/bin/env python3
"""Checks who includes whom: lint_includes.py [ROOT]. Prints one line per offence; exit 1 if there is any.

    include/attn                                             the standard library and attn/
    core                                                     also core/
    reference optimized                                      also their own folder, never a sibling
    judge selector composite golden                          also their own folder and core/, never a sibling
    property_tests tests cli bench                           everything

reference/second and golden/exact say again what others say: they see nothing of the rest of their room, nor it of them.
"""
import re
import sys
from pathlib import Path

COMPONENTS = ("core", "reference", "optimized", "judge", "selector", "composite", "golden")
READERS_OF_CORE = ("judge", "selector", "composite", "golden")  # its logic must not reach what is compared
OUTER = ("property_tests", "tests", "cli", "bench")
ROOMS = ("include",) + COMPONENTS + OUTER
APART = ("reference/second/", "golden/exact/")
SUFFIXES = (".h", ".cuh", ".cc", ".cu")

# Libraries by how their headers begin, and the rooms that may see them. A new library gets a row.
LIBRARIES = {
    "fmt/": COMPONENTS + OUTER,
    "tbb/": ("core",),
    "oneapi/tbb": ("core",),
    "Eigen/": ("reference", "property_tests", "tests"),
    "nlohmann/": ("core", "golden", "judge", "selector", "composite", "property_tests", "tests", "cli"),
    "openssl/": ("golden", "tests"),
    "mpfr.h": ("golden", "tests"),
    "CLI/": ("cli",),
    "gtest/": ("property_tests", "tests"),
    "rapidcheck": ("property_tests", "tests", "cli"),
    "benchmark/": ("bench",),
    "sanitizer/": ("core",),
    "dlfcn.h": ("core",),
    "cpuid.h": ("core",),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def offence_of_angle(room, name):
    for prefix, rooms in LIBRARIES.items():
        if name.startswith(prefix):
            return None if room in rooms else f"<{name}> belongs to {', '.join(rooms)} only"
    if "/" not in name and "." not in name:  # the standard library
        return None
    if room in ("include", "core"):
        return f"<{name}> is not the standard library"
    if "/" in name and not name.startswith("sys/"):
        return f"<{name}> is of a library without a row in lint_includes.py"
    return None  # a header of the system or the compiler


def part_of(path):
    return next((part for part in APART if path.startswith(part)), "")


def offence_of_quoted(root, path, name):
    room = path.split("/")[0]
    if ".." in name.split("/"):
        return f'"{name}" climbs; write the path from the root'
    first = name.split("/")[0]
    if first == "attn":
        return None if (root / "include" / name).is_file() else f'"{name}" is not in include/attn'
    is_file = (root / name).is_file() or (root / f"{name}.in").is_file()  # .in: made by configure_file
    if not is_file or "/" not in name:
        return f'"{name}" is not a path from the root'
    if room in OUTER or first == room and part_of(path) == part_of(name):
        return None
    if first == "core" and room in READERS_OF_CORE and not part_of(path):
        return None
    if first == room:
        return f'"{name}" is of another evaluation'
    return f'"{name}" is private to {first}'


def offences(root):
    for room in ROOMS:
        for path in sorted(p for p in (root / room).rglob("*") if p.suffix in SUFFIXES):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                kind, name = match.groups()
                place = path.relative_to(root).as_posix()
                offence = offence_of_angle(room, name) if kind == "<" else offence_of_quoted(root, place, name)
                if offence:
                    yield f"{place}:{number}: {offence}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    found = list(offences(root))
    print("\n".join(found) if found else "every include goes the right way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
