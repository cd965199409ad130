#!/usr/bin/env python3
"""Looks for what a source uses and does not include: lint_missing_includes.py [ROOT]. A build with CMAKE_UNITY_BUILD compiles
many sources as one, and does not see it. Prints one line per offence; exit 1 if there is any.

    std::NAME of the table below, fmt::, nlohmann::   its header, included by the file or by headers of the project in it
    a type, constant or function of the project       the header that declares it, in the same way

A name that only another source of the folder declares is an offence, too. A sieve, not a compiler: of functions it knows those
whose names have two words. lint.tidy_all compiles every source by itself.
"""
import functools
import re
import sys
from pathlib import Path

ROOMS = ("include", "core", "reference", "optimized", "judge", "selector", "composite", "golden", "property_tests", "cli",
         "tests", "bench")

# What headers of the standard library bring, as far as it is used. Names that half of them bring are left out.
STANDARD = {
    "algorithm": "adjacent_find all_of any_of binary_search clamp copy copy_if copy_n count count_if equal equal_range fill fill_n"
                 " find find_first_of find_if find_if_not for_each generate includes is_sorted lexicographical_compare"
                 " lower_bound max_element merge min_element minmax_element mismatch next_permutation none_of nth_element"
                 " partial_sort partition replace replace_if reverse rotate search set_difference set_intersection shuffle sort"
                 " stable_partition stable_sort transform unique upper_bound",
    "any": "any any_cast",
    "array": "array to_array",
    "atomic": "atomic atomic_bool atomic_flag atomic_int",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_zero countr_one countr_zero endian has_single_bit popcount",
    "bitset": "bitset",
    "charconv": "from_chars to_chars chars_format",
    "chrono": "chrono",
    "cmath": "abs acos asin atan copysign cos erf exp exp2 expm1 fabs floor ceil fma fmax fmin fmod frexp hypot ilogb isfinite isinf isnan ldexp log log1p log2"
             " logb lround nan nearbyint nextafter pow round scalbn signbit sin sqrt tan tanh trunc",
    "condition_variable": "condition_variable",
    "cstdint": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t uintmax_t",
    "cstdio": "FILE fclose fflush fopen fputs fread fwrite printf snprintf",
    "cstdlib": "abort aligned_alloc exit getenv strtod",
    "cstring": "memchr memcmp memcpy memmove memset strcmp strerror strlen",
    "deque": "deque",
    "exception": "current_exception exception exception_ptr make_exception_ptr rethrow_exception terminate",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream fstream",
    "functional": "function greater hash invoke less mem_fn not_fn plus reference_wrapper",
    "future": "async future promise",
    "iostream": "cerr cin cout",
    "iterator": "back_inserter istreambuf_iterator make_move_iterator",
    "limits": "numeric_limits",
    "list": "list",
    "locale": "locale",
    "map": "map multimap",
    "memory": "make_shared make_unique shared_ptr unique_ptr weak_ptr enable_shared_from_this",
    "mutex": "call_once lock_guard mutex once_flag scoped_lock unique_lock",
    "new": "align_val_t bad_alloc nothrow",
    "numbers": "numbers",
    "numeric": "accumulate adjacent_difference gcd inner_product iota lcm partial_sum reduce",
    "optional": "make_optional nullopt optional",
    "queue": "priority_queue queue",
    "random": "mt19937 mt19937_64 normal_distribution uniform_int_distribution uniform_real_distribution",
    "regex": "regex regex_match regex_search smatch",
    "set": "multiset set",
    "span": "as_bytes as_writable_bytes dynamic_extent span",
    "sstream": "istringstream ostringstream stringstream",
    "stdexcept": "domain_error invalid_argument length_error logic_error out_of_range overflow_error runtime_error",
    "string": "stod stoi stol stoll stoul stoull string to_string",
    "string_view": "string_view",
    "system_error": "errc error_code generic_category make_error_code system_error",
    "thread": "this_thread thread",
    "tuple": "forward_as_tuple make_tuple tie tuple",
    "type_traits": "conditional_t decay_t enable_if_t is_arithmetic_v is_const_v is_enum_v is_floating_point_v is_integral_v"
                   " is_same_v is_signed_v is_unsigned_v make_signed_t make_unsigned_t remove_const_t remove_cvref_t"
                   " underlying_type_t",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "utility": "cmp_equal cmp_greater cmp_less exchange in_range make_pair pair unreachable",
    "variant": "get_if holds_alternative monostate variant visit",
    "vector": "vector",
}
LIBRARIES = {"fmt::": "fmt/", "nlohmann::": "nlohmann/"}  # a namespace, and how its headers begin
PROVIDERS = {name: header for header, names in STANDARD.items() for name in names.split()}
ALSO = {
    "abs": {"cstdlib"},
    "errc": {"charconv"},
    "error_code": {"filesystem"},
    "exception": {"stdexcept"},
    "hash": {"string", "string_view"},
    "less": {"map", "set"},
    "pair": {"map"},
    "string_view": {"string"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)
# Comments, strings and characters hold no names; a raw string is as long as its delimiter says.
NO_CODE = re.compile(r'R"([^(\s]*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)
SUITE = re.compile(r"\b(?:TEST|TEST_F|TEST_P|INSTANTIATE_TEST_SUITE_P|RC_GTEST_PROP)\(\w+")
TYPE = re.compile(r"^(?:struct|class|enum(?: class)?|using|concept) (\w+)\b(?!;)", re.M)
CONSTANT = re.compile(r"^(?:inline )?constexpr [^=({;]*?\b(k[A-Z]\w*)", re.M)
FUNCTION = re.compile(r"^(?!return\b|using\b|typedef\b)[\w:<>,&*\s]*?[\s&*]([a-z]\w*_\w+)\((?![^;{]*\)\s*->)", re.M)
# What a file declares in whatever scope, as "type name" with what may follow a name; `return name(` declares nothing.
ANYWHERE = re.compile(
    r"\b(?!return\b|throw\b|else\b|case\b|new\b|delete\b|const\b|constexpr\b|public\b|private\b|protected\b|typename\b|class\b|struct\b|co_)[\w>\]]+(?:\s*[>&*]+\s*|\s+)(\w+)\s*[({=;,\[:)]|"
    r"\b(?:struct|enum class|class|enum|using) (\w+)\b(?!\s*;)")
FORWARD = re.compile(r"\b(?:struct|class) (\w+);")
# Enumerators that stand in the scope around, and all.
UNSCOPED = re.compile(r"^enum (?!class)[^{;]*\{([^}]*)\}", re.M)
ENUMERATORS = re.compile(r"\benum [^{;]*\{([^}]*)\}")
# A type or constant, or a function that is called.
NAMESPACE = "(?:attn|checks|cli|cpu|exact|golden|judge|property_tests|questions|reference|second)"
USE = re.compile(r"(?<![\w:.])(?<!->)(?:" + NAMESPACE + r"::)*(?:([A-Zk]\w*)|([a-z]\w*)[(<])")


class File:
    def __init__(self, root, path):
        self.place = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        self.quoted = {first for first, _ in INCLUDE.findall(text) if first}
        self.angled = {second for _, second in INCLUDE.findall(text) if second}
        self.code = NO_CODE.sub(lambda found: '""' if found[0][0] in "R\"'" else "", INCLUDE.sub("", text))
        self.code = SUITE.sub("", self.code)
        self.names_anywhere = {first or second for first, second in ANYWHERE.findall(self.code)}
        self.names_anywhere |= {name for body in ENUMERATORS.findall(self.code) for name in re.findall(r"\w+", body)}
        self.forward = set(FORWARD.findall(self.code))
        self.functions_and_types = {name for kind in (TYPE, FUNCTION) for name in kind.findall(self.code)} - {"static_assert"}
        self.functions_and_types -= {name for name in self.functions_and_types if name.endswith("_")}  # members
        self.declared = self.functions_and_types | set(CONSTANT.findall(self.code))
        self.declared |= {name for body in UNSCOPED.findall(self.code) for name in re.findall(r"\bk[A-Z]\w*", body)}


class Project:
    def __init__(self, root):
        paths = [p for room in ROOMS for p in sorted((root / room).rglob("*")) if p.suffix in (".h", ".cuh", ".cc", ".cu")]
        files = [File(root, path) for path in paths]
        self.sources = {file.place.removeprefix("include/"): file for file in files}
        self.homes = {}  # of a name: the headers that declare it
        for name, file in self.sources.items():
            if name.endswith((".h", ".cuh")):
                for declared in file.declared:
                    self.homes.setdefault(declared, set()).add(name)
        self.neighbours = {}  # of a folder and a name: the sources that declare it, for nobody else
        for name, file in self.sources.items():
            for declared in file.functions_and_types - self.homes.keys():
                self.neighbours.setdefault((Path(name).parent, declared), set()).add(name)

    @functools.lru_cache(maxsize=None)
    def reached(self, name):
        """Headers of the project, and of libraries, that the file includes in the end."""
        own, others, todo = set(), set(), [name]
        while todo:
            file = self.sources.get(todo.pop())
            if not file:
                continue
            others |= file.angled
            todo += file.quoted - own
            own |= file.quoted
        return own, others

    def missing(self, name):
        file = self.sources[name]
        own, others = self.reached(name)
        for used in sorted(set(re.findall(r"\bstd::(\w+)", file.code))):
            header = PROVIDERS.get(used)
            if header and not others & ({header} | ALSO.get(used, set())):
                yield f"std::{used} is of <{header}>"
        for namespace, prefix in LIBRARIES.items():
            if re.search(rf"\b{namespace}", file.code) and not any(header.startswith(prefix) for header in others):
                yield f"{namespace} is of <{prefix}...>"
        seen = (own | {name}) & self.sources.keys()
        for used in sorted({first or second for first, second in USE.findall(file.code)} - file.forward):
            homes = self.homes.get(used) or self.neighbours.get((Path(name).parent, used))
            if not homes or homes & seen or any(used in self.sources[one].names_anywhere for one in seen):
                continue  # here, or maybe another thing of that name
            yield f"{used} is of {' or '.join(sorted(homes))}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    project = Project(root)
    found = [f"{project.sources[name].place}: {what}" for name in sorted(project.sources) for what in project.missing(name)]
    print("\n".join(found) if found else "every file includes what it names")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
