#!/usr/bin/env python3
"""Checks that no file names a place outside the repository: lint_words.py [ROOT].

Paths of one machine do not work on another. Prints one line per offence; exit 1 if there is any.
"""
import re
import subprocess
import sys
from pathlib import Path

# Written so that this file does not match itself.
WORDS = re.compile(rb"(?<![\w.])/(?:work|root|home)[/]|\.\.[/]shared\b")


def files(root):
    """What git tracks or would add; everything but build/ where there is no git."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
        return [root / name for name in sorted(set(listed)) if (root / name).is_file()]
    except (OSError, subprocess.CalledProcessError):
        outside = (root / ".git", root / "build")
        return sorted(p for p in root.rglob("*") if p.is_file() and not any(o in p.parents for o in outside))


def offences(root):
    for path in files(root):
        content = path.read_bytes()
        for match in WORDS.finditer(content):
            line = content.count(b"\n", 0, match.start()) + 1
            yield f"{path.relative_to(root)}:{line}: {match.group().decode()}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    found = list(offences(root))
    print("\n".join(found) if found else "no path outside the repository")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
