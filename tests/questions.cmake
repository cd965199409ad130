# Questions of the golden packs: written down by hand, and of the operations beside attention.
attn_add_test(hand_questions_test
  SOURCES hand_questions_test.cc
  LIBRARIES attn_questions attn_golden attn_reference nlohmann_json::nlohmann_json
  LABELS unit)
attn_add_test(other_questions_test
  SOURCES other_questions_test.cc
  LIBRARIES attn_questions attn_golden attn_reference
  LABELS unit)
attn_add_test(questions_test
  SOURCES question_claims_test.cc question_draw_test.cc questions_test.cc
  LIBRARIES attn_questions attn_golden attn_reference
  LABELS unit)
attn_add_test(extended_questions_test
  SOURCES extended_questions_test.cc
  LIBRARIES attn_questions attn_golden attn_reference
  LABELS unit)

# The drawn inputs against a second implementation of the rules, in Python.
add_executable(question_files question_files.cc)
target_link_libraries(question_files PRIVATE attn_questions attn_golden nlohmann_json::nlohmann_json)
target_include_directories(question_files PRIVATE ${PROJECT_SOURCE_DIR})
attn_compile_options(question_files)
add_test(NAME questions.write COMMAND question_files ${CMAKE_CURRENT_BINARY_DIR}/core_questions)
set_tests_properties(questions.write PROPERTIES LABELS schema FIXTURES_SETUP core_questions)
attn_add_script_test(questions.redraw schema scripts/redraw_cases.py ${CMAKE_CURRENT_BINARY_DIR}/core_questions 100)
set_tests_properties(questions.redraw PROPERTIES FIXTURES_REQUIRED core_questions)
