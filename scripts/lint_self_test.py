#!/usr/bin/env python3
"""The lints can fail: plants one offence at a time in a small tree and expects the lint to name it."""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
SKIPPED = 77


class Tree(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="lint_self_test_")).resolve()
        self.addCleanup(shutil.rmtree, self.root)
        self.plant("include/attn/view.h", "#include <cstdint>\n")
        self.plant("core/print.h", '#include "attn/view.h"\n')
        self.plant("reference/mask.h", "#include <Eigen/Core>\n\n#include \"attn/view.h\"\n")
        self.plant("reference/second/rows.h", '#include "attn/view.h"\n')
        self.plant("optimized/cpu/plan.cc", '#include <immintrin.h>\n\n#include "attn/view.h"\n')
        self.plant("tests/mask_test.cc", '#include <gtest/gtest.h>\n\n#include "reference/mask.h"\n')

    def plant(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def lint(self, script, *arguments):
        done = subprocess.run([*script, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode == SKIPPED:
            self.skipTest(done.stdout.strip())
        return done.returncode, done.stdout

    def expect_offence(self, script, text, *arguments):
        code, output = self.lint(script, *arguments or (self.root,))
        self.assertEqual(code, 1, output)
        self.assertIn(text, output)


class Includes(Tree):
    LINT = (sys.executable, SCRIPTS / "lint_includes.py")

    def test_accepts_a_tree_in_order(self):
        self.assertEqual(self.lint(self.LINT, self.root)[0], 0)

    def test_rejects(self):
        offences = {
            "include/attn/view.h": ["<fmt/core.h>", "<unistd.h>", '"core/print.h"'],
            "core/print.h": ["<Eigen/Core>", "<unistd.h>", '"reference/mask.h"'],
            "reference/mask.h": ['"core/print.h"', '"reference/second/rows.h"', '"optimized/cpu/plan.cc"', "<tbb/parallel_for.h>"],
            "reference/second/rows.h": ['"reference/mask.h"'],
            "optimized/cpu/plan.cc": ['"reference/mask.h"', "<Eigen/Core>", "<nlohmann/json.hpp>", "<boost/any.hpp>"],
            "tests/mask_test.cc": ['"../reference/mask.h"', '"mask.h"', '"attn/missing.h"', '"reference/missing.h"'],
        }
        for path, names in offences.items():
            clean = (self.root / path).read_text(encoding="utf-8")
            for name in names:
                with self.subTest(path=path, name=name):
                    self.plant(path, f"{clean}#  include {name}  // why not\n")
                    self.expect_offence(self.LINT, f"{path}:{clean.count(chr(10)) + 1}: {name}")
            self.plant(path, clean)


class MissingIncludes(Tree):
    LINT = (sys.executable, SCRIPTS / "lint_missing_includes.py")
    HEADER = "namespace attn {\nstruct Mask {\n  int window;\n};\ninline constexpr int kLargest = 1;\nint rows_of(int mask);\n}\n"
    WHOLE = (
        '#include <span>\n\n#include "core/mask.h"\n\n// std::vector\n'
        "int f(std::span<const int> x, Mask mask) { return x[0] + kLargest + mask.window + rows_of(1); }\n"
    )

    def setUp(self):
        super().setUp()
        self.plant("core/mask.h", self.HEADER)

    def test_accepts_what_a_header_brings(self):
        self.plant("core/plan.h", '#include "core/mask.h"\n#include <span>\n')
        for text in (self.WHOLE, '#include "core/plan.h"\n' + self.WHOLE.rpartition("\n\n")[2]):
            self.plant("core/print.cc", text)
            code, output = self.lint(self.LINT, self.root)
            self.assertEqual(code, 0, output)

    def test_accepts_other_things_of_the_name(self):
        self.plant(
            "core/print.cc",
            "struct Fill {\n  enum class Mask { kLargest };\n  int rows_of(int);\n};\nint g(Fill f) { return f.rows_of(1); }\n",
        )
        self.assertEqual(self.lint(self.LINT, self.root)[0], 0)

    def test_rejects_what_is_only_declared_ahead(self):
        self.plant("core/plan.h", "namespace attn {\nstruct Mask;\n}\n")
        self.plant("core/print.cc", '#include "core/plan.h"\nint f(const attn::Mask& mask) { return mask.window; }\n')
        self.expect_offence(self.LINT, "core/print.cc: Mask is of core/mask.h")
        self.plant("core/print.cc", "namespace attn {\nstruct Mask;\nint f(const Mask& mask);\n}\n")
        self.assertEqual(self.lint(self.LINT, self.root)[0], 0)

    def test_rejects_what_another_source_keeps_to_itself(self):
        self.plant("core/plan.cc", "namespace {\nint plan_of(int x) { return x; }\n}\n")
        self.plant("core/print.cc", "int f() { return plan_of(1); }\n")
        self.expect_offence(self.LINT, "core/print.cc: plan_of is of core/plan.cc")

    def test_rejects_a_library_without_its_header(self):
        self.plant("core/print.cc", 'auto f() { return fmt::format("x"); }\n')
        self.expect_offence(self.LINT, "core/print.cc: fmt:: is of <fmt/...>")

    def test_rejects_enumerators(self):
        self.plant("core/mask.h", "namespace attn {\nenum Row { kRowHidden, kRowSeen };\n}\n")
        self.plant("core/print.cc", "int f() { return attn::kRowSeen; }\n")
        self.expect_offence(self.LINT, "core/print.cc: kRowSeen is of core/mask.h")

    def test_rejects_what_no_header_brings(self):
        for without, names in (
            ("#include <span>\n", ["std::span is of <span>"]),
            ('#include "core/mask.h"\n', [f"{name} is of core/mask.h" for name in ("Mask", "kLargest", "rows_of")]),
        ):
            self.plant("core/print.cc", self.WHOLE.replace(without, ""))
            for name in names:
                with self.subTest(name=name):
                    self.expect_offence(self.LINT, f"core/print.cc: {name}")


class Words(Tree):
    LINT = (sys.executable, SCRIPTS / "lint_words.py")

    def test_accepts_a_tree_in_order(self):
        self.plant("docs/a.md", "teamwork/play, https://example.org/home, a/root/b, ../sharedness\n")
        self.assertEqual(self.lint(self.LINT, self.root)[0], 0)

    def test_rejects_paths_of_one_machine(self):
        for word in ("/wo" + "rk/main", "/ro" + "ot/.cache", "../sh" + "ared/data"):
            with self.subTest(word=word):
                self.plant("docs/a.md", f"first\nsee {word}\n")
                self.expect_offence(self.LINT, "docs/a.md:2: ")


class Format(Tree):
    LINT = (SCRIPTS / "lint_format.sh",)

    def setUp(self):
        super().setUp()
        shutil.copy(SCRIPTS.parent / ".clang-format", self.root)

    def test_accepts_a_tree_in_order(self):
        self.assertEqual(self.lint(self.LINT, self.root)[0], 0)

    def test_rejects_a_crooked_line(self):
        self.plant("core/print.cc", "int  x;\n")
        code, output = self.lint(self.LINT, self.root)
        self.assertNotEqual(code, 0)
        self.assertIn("core/print.cc:1", output)


class Tidy(Tree):
    def setUp(self):
        super().setUp()
        shutil.copy(SCRIPTS.parent / ".clang-tidy", self.root)
        self.plant("scripts/lint_tidy.sh", (SCRIPTS / "lint_tidy.sh").read_text(encoding="utf-8"))
        self.script = ("bash", self.root / "scripts/lint_tidy.sh")

    def tidy(self, text, *checks, unity=False):
        self.plant("core/print.cc", text)
        file = str(self.root / "core/print.cc")
        if unity:  # as CMAKE_UNITY_BUILD does
            self.plant("build/core/Unity/unity_0_cxx.cxx", f'#include "{file}"\n')
            file = str(self.root / "build/core/Unity/unity_0_cxx.cxx")
        command = {"directory": str(self.root), "command": f"c++ -std=c++20 -c {file}", "file": file}
        self.plant("build/compile_commands.json", json.dumps([command]))
        return self.lint(self.script, self.root / "build", *checks)

    def test_accepts_plain_code(self):
        code, output = self.tidy("int f(int x) { return x + 1; }\n")
        self.assertEqual(code, 0, output)

    def test_rejects_a_use_after_move(self):
        code, output = self.tidy(
            "#include <string>\n#include <utility>\n"
            "std::size_t f(std::string s) {\n  const std::string t = std::move(s);\n  return s.size() + t.size();\n}\n"
        )
        self.assertNotEqual(code, 0)
        self.assertIn("bugprone-use-after-move", output)

    def test_rejects_it_in_a_source_compiled_with_others(self):
        code, output = self.tidy("int f(int x) {\n  return x - x;\n}\n", "-*,misc-redundant-expression", unity=True)
        self.assertNotEqual(code, 0)
        self.assertIn("core/print.cc:2", output)

    def test_rejects_a_build_that_names_no_source(self):
        self.plant("build/compile_commands.json", "[]")
        code, output = self.lint(self.script, self.root / "build")
        self.assertNotEqual(code, 0, output)


if __name__ == "__main__":
    unittest.main()
