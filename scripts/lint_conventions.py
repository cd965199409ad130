#!/usr/bin/env python3
"""Checks that what pins a decision in docs/conventions.md exists: lint_conventions.py [ROOT]

Every row of its tables names, in the last column, at least one test (`Suite.Name`) or stored case (`id`, * for several).
Prints one line per offence; exit 1 if there is any.
"""
import fnmatch
import json
import re
import sys
from pathlib import Path

TEST = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\s*(\w+),\s*(\w+)", re.MULTILINE)
CELL_END = re.compile(r"(?<!\\)\|")


def tests(root):
    sources = [path for room in ("tests", "property_tests") for path in sorted((root / room).glob("*.cc"))]
    return {f"{suite}.{name}" for path in sources for suite, name in TEST.findall(path.read_text(encoding="utf-8"))}


def cases(root):
    indices = sorted((root / "tests/data/third_party").glob("*/index.jsonl"))
    return {json.loads(line)["id"] for path in indices for line in path.read_text(encoding="utf-8").splitlines()}


def offences(root):
    path = root / "docs/conventions.md"
    known = tests(root) | cases(root)
    rows = 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("|") or line.startswith(("|---", "| question |")):
            continue
        rows += 1
        where = f"{path.relative_to(root)}:{number}"
        cells = CELL_END.split(line)[1:-1]
        if len(cells) != 5:
            yield f"{where}: {len(cells)} cells, expected 5"
            continue
        names = re.findall(r"`([^`]+)`", cells[-1])
        if not names or re.sub(r"`[^`]+`", "", cells[-1]).strip():
            yield f"{where}: the last cell must hold names of tests or cases, and nothing else"
        yield from (f"{where}: no test or case {name}" for name in names if not fnmatch.filter(known, name))
    if not rows:
        yield f"{path.relative_to(root)}: no rows"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    found = list(offences(root))
    print("\n".join(found) if found else "every decision is pinned by tests and cases that exist")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
