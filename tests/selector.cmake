# The selector against vLLM's decision tables, and by hand.
set(ATTN_SELECTOR_TABLES ${PROJECT_BINARY_DIR}/vllm-0.33.0/selector)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${CMAKE_CURRENT_SOURCE_DIR}/data/vllm-0.33.0/selector/tables.tar.xz)
file(ARCHIVE_EXTRACT INPUT ${CMAKE_CURRENT_SOURCE_DIR}/data/vllm-0.33.0/selector/tables.tar.xz
     DESTINATION ${ATTN_SELECTOR_TABLES})

attn_add_test(selector_test
  SOURCES backend_file_test.cc backend_registry_test.cc block_sizes_test.cc layer_request_test.cc selector_config_test.cc
          selector_hand_cases_test.cc selector_tables_test.cc selector_test.cc
  LIBRARIES attn_selector fmt::fmt nlohmann_json::nlohmann_json
  LABELS selector)
target_compile_definitions(selector_test PRIVATE ATTN_SELECTOR_TABLES="${ATTN_SELECTOR_TABLES}")
# A config or an environment with one field named leaves the others to their defaults.
target_compile_options(selector_test PRIVATE -Wno-missing-field-initializers)

attn_add_test(own_selector_test
  SOURCES own_selector_test.cc
  LIBRARIES attn_selector attn_reference attn_optimized_cpu
  LABELS selector)

# The document's table of backends: generated from the rows, held to vLLM's answers.
attn_add_test(vllm_mapping_test
  SOURCES backend_table.cc vllm_mapping_test.cc
  LIBRARIES attn_selector fmt::fmt nlohmann_json::nlohmann_json
  LABELS selector)
target_compile_definitions(vllm_mapping_test PRIVATE ATTN_SELECTOR_TABLES="${ATTN_SELECTOR_TABLES}"
                                                     ATTN_MAPPING="${PROJECT_SOURCE_DIR}/docs/vllm_mapping.md")
