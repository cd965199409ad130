# Lints, label lint. A lint whose tool is not installed is skipped and says so.
function(attn_add_lint name labels)
  add_test(NAME lint.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(lint.${name} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77 TIMEOUT 1800)
endfunction()

attn_add_script_test(lint.includes lint scripts/lint_includes.py)
attn_add_script_test(lint.missing_includes lint scripts/lint_missing_includes.py)
attn_add_script_test(lint.words lint scripts/lint_words.py)
attn_add_script_test(lint.self_test lint scripts/lint_self_test.py)
attn_add_script_test(lint.pack_origin lint scripts/lint_pack_origin.py golden/packs tests/data/third_party)
attn_add_lint(format lint bash scripts/lint_format.sh)

# What is quick in .clang-tidy. Reads the build's own compile commands.
set(quick_checks -* bugprone-dangling-handle bugprone-infinite-loop bugprone-integer-division bugprone-sizeof-expression
                 bugprone-suspicious-semicolon bugprone-use-after-move misc-redundant-expression)
list(JOIN quick_checks "," quick_checks)
attn_add_lint(tidy lint bash scripts/lint_tidy.sh ${PROJECT_BINARY_DIR} ${quick_checks})

# All of .clang-tidy: minutes, and every source for itself, as the analyzer passes over what a source includes.
set(one_by_one ${PROJECT_BINARY_DIR}/one_by_one)
attn_add_lint(compile_commands "lint;slow" ${CMAKE_COMMAND} --preset default -B ${one_by_one})
set_tests_properties(lint.compile_commands PROPERTIES FIXTURES_SETUP compile_commands)
attn_add_lint(tidy_all "lint;slow" bash scripts/lint_tidy.sh ${one_by_one})
set_tests_properties(lint.tidy_all PROPERTIES FIXTURES_REQUIRED compile_commands)

# Both use every core by themselves.
include(ProcessorCount)
ProcessorCount(num_cores)
set_tests_properties(lint.tidy lint.tidy_all PROPERTIES PROCESSORS ${num_cores})
