# Lints, label lint. A lint whose tool is not installed is skipped and says so.
function(attn_add_lint name labels)
  add_test(NAME lint.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(lint.${name} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77 TIMEOUT 1800)
endfunction()

attn_add_script_test(lint.includes lint scripts/lint_includes.py)
attn_add_script_test(lint.words lint scripts/lint_words.py)
attn_add_script_test(lint.self_test lint scripts/lint_self_test.py)
attn_add_script_test(lint.pack_origin lint scripts/lint_pack_origin.py golden/packs tests/data/third_party)
attn_add_lint(format lint bash scripts/lint_format.sh)

# All of .clang-tidy takes minutes; lint.tidy runs what is quick in it. Both use every core by themselves.
set(quick_checks -* bugprone-dangling-handle bugprone-infinite-loop bugprone-integer-division bugprone-sizeof-expression
                 bugprone-suspicious-semicolon bugprone-use-after-move misc-redundant-expression)
list(JOIN quick_checks "," quick_checks)
attn_add_lint(tidy lint bash scripts/lint_tidy.sh ${PROJECT_BINARY_DIR} ${quick_checks})
attn_add_lint(tidy_all "lint;slow" bash scripts/lint_tidy.sh ${PROJECT_BINARY_DIR})
include(ProcessorCount)
ProcessorCount(num_cores)
set_tests_properties(lint.tidy lint.tidy_all PROPERTIES PROCESSORS ${num_cores})
