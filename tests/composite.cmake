# The composite and the batch utilities around it against vLLM's tables, and by hand.
set(ATTN_COMPOSITE_TABLES ${PROJECT_BINARY_DIR}/vllm-0.33.0/composite)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${CMAKE_CURRENT_SOURCE_DIR}/data/vllm-0.33.0/composite/tables.tar.xz)
file(ARCHIVE_EXTRACT INPUT ${CMAKE_CURRENT_SOURCE_DIR}/data/vllm-0.33.0/composite/tables.tar.xz
     DESTINATION ${ATTN_COMPOSITE_TABLES})

attn_add_test(batch_utilities_test
  SOURCES builder_group_test.cc decode_split_test.cc derived_batches_test.cc image_spans_test.cc
          metadata_test.cc seen_keys_test.cc
  LIBRARIES attn_composite fmt::fmt nlohmann_json::nlohmann_json
  LABELS composite)
# A request or an option with one field named leaves the others to their defaults.
target_compile_options(batch_utilities_test PRIVATE -Wno-missing-field-initializers)

attn_add_test(composite_test
  SOURCES ${PROJECT_SOURCE_DIR}/cli/vllm_composites.cc backend_wrappers_test.cc child_description_test.cc
          composite_tables_test.cc composite_test.cc routing_policies_test.cc vllm_composites_test.cc
  LIBRARIES attn_composite attn_selector fmt::fmt nlohmann_json::nlohmann_json
  LABELS composite)
# Linted as the product's source that it is, and clang-tidy cannot read what g++ precompiles.
set_source_files_properties(${PROJECT_SOURCE_DIR}/cli/vllm_composites.cc PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
target_compile_options(composite_test PRIVATE -Wno-missing-field-initializers)
target_compile_definitions(composite_test PRIVATE ATTN_COMPOSITE_TABLES="${ATTN_COMPOSITE_TABLES}")

# Executable backends in composites.
attn_add_test(composite_execution_test
  SOURCES composite_cases_test.cc executable_backend_test.cc plan_pool_test.cc problem_composite_test.cc
  LIBRARIES attn_composite attn_reference attn_optimized_cpu nlohmann_json::nlohmann_json
  LABELS composite)
target_compile_options(composite_execution_test PRIVATE -Wno-missing-field-initializers)
