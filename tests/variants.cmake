# The table of variants against what backs it.
if(TARGET attn_cli)
  attn_add_test(variants_test
    SOURCES command_runner.cc variants_test.cc
    LIBRARIES attn
    LABELS unit)
  target_compile_definitions(
    variants_test
    PRIVATE ATTN_CLI="$<TARGET_FILE:attn_cli>" ATTN_CORE_PACK="${PROJECT_SOURCE_DIR}/golden/packs/core-1.0.0"
            ATTN_PROPERTIES="$<TARGET_FILE:attn_property_tests_run>"
            ATTN_VARIANT_UNITS="$<TARGET_FILE:variant_units_test>" ATTN_README="${PROJECT_SOURCE_DIR}/README.md")
  add_dependencies(variants_test attn_cli attn_property_tests_run variant_units_test)
endif()
