# The selector against vLLM's decision tables, and by hand.
set(ATTN_SELECTOR_TABLES ${PROJECT_BINARY_DIR}/vllm-0.33.0/selector)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${CMAKE_CURRENT_SOURCE_DIR}/data/vllm-0.33.0/selector/tables.tar.xz)
file(ARCHIVE_EXTRACT INPUT ${CMAKE_CURRENT_SOURCE_DIR}/data/vllm-0.33.0/selector/tables.tar.xz
     DESTINATION ${ATTN_SELECTOR_TABLES})

attn_add_test(selector_test
  SOURCES backend_registry_test.cc block_sizes_test.cc layer_request_test.cc selector_config_test.cc selector_tables_test.cc
          selector_test.cc
  LIBRARIES attn_selector fmt::fmt nlohmann_json::nlohmann_json
  LABELS selector)
target_compile_definitions(selector_test PRIVATE ATTN_SELECTOR_TABLES="${ATTN_SELECTOR_TABLES}")
# A config or an environment with one field named leaves the others to their defaults.
target_compile_options(selector_test PRIVATE -Wno-missing-field-initializers)
