# The format of case files, seen from Python: schema, examples of docs/case_format.md, names in docs/conventions.md.
find_package(Python3 COMPONENTS Interpreter)

function(attn_add_script_test name labels)
  if(Python3_Interpreter_FOUND)
    add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  else()
    add_test(NAME ${name} COMMAND sh -c "echo python3 is not installed, nothing was checked; exit 77")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77 TIMEOUT 600)
endfunction()

attn_add_script_test(lint.conventions lint scripts/lint_conventions.py)
if(TARGET attn_cli)
  attn_add_script_test(schema.reader_and_schema_agree schema scripts/check_case_schema.py golden/schema/case.schema.json
                       tests/data/third_party $<TARGET_FILE:attn_cli>)
  attn_add_script_test(schema.documented_examples_work schema scripts/check_format_examples.py docs/case_format.md
                       tests/data/third_party $<TARGET_FILE:attn_cli>)
  attn_add_script_test(schema.pack_reader_and_schema_agree schema scripts/check_pack_schema.py golden/schema/pack.schema.json
                       $<TARGET_FILE:small_pack> $<TARGET_FILE:attn_cli>)
  attn_add_script_test(schema.reader_in_readme_reads_the_pack schema scripts/check_pack_readme.py
                       $<TARGET_FILE:small_pack>)
endif()
