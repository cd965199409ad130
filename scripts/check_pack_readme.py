#!/usr/bin/env python3
"""The reader in a pack's README.md reads the pack: check_pack_readme.py PACK_MAKER

`PACK_MAKER DIR` makes a pack. Exit 0: the reader names every case; 1: it does not; 77: python3-numpy is not installed.
"""
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    if importlib.util.find_spec("numpy") is None:
        print("python3-numpy is not installed; nothing was checked")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        pack = Path(folder) / "pack"
        subprocess.run([sys.argv[1], pack], check=True)
        readers = re.findall(r"```python\n(.*?)```", (pack / "README.md").read_text(encoding="utf-8"), re.S)
        if len(readers) != 1:
            print(f"README.md has {len(readers)} readers")
            return 1
        done = subprocess.run([sys.executable, "-c", readers[0]], cwd=pack, capture_output=True, text=True)
        ids = [json.loads(line)["id"] for line in (pack / "index.jsonl").read_text(encoding="utf-8").splitlines()]
    read = [line.split(" ")[0] for line in done.stdout.splitlines()]
    shapes = [line for line in done.stdout.splitlines() if "'query': (" in line]
    print(f"{len(read)} of {len(ids)} cases read\n{done.stderr}")
    return 0 if done.returncode == 0 and read == ids and shapes else 1


if __name__ == "__main__":
    sys.exit(main())
