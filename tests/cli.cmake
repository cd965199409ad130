# The command line from the outside, as a process.
if(TARGET attn_cli)
  attn_add_test(cli_test
    SOURCES case_folder_writer.cc cli_backend_file_test.cc cli_compare_contract_test.cc cli_compare_folder_test.cc
            cli_compare_gates_test.cc cli_compare_test.cc cli_folder_damage_test.cc cli_golden_test.cc
            cli_list_test.cc cli_output_file_test.cc cli_route_case_test.cc cli_route_table_test.cc cli_run_folder_test.cc cli_run_judge_test.cc cli_run_test.cc
            cli_select_own_test.cc cli_select_test.cc cli_show_test.cc cli_third_party_test.cc cli_usage_test.cc
            command_runner.cc
    LIBRARIES attn_core attn_judge nlohmann_json::nlohmann_json OpenSSL::Crypto
    LABELS unit)
  target_compile_definitions(cli_test PRIVATE ATTN_CLI="$<TARGET_FILE:attn_cli>" ATTN_VERSION="${PROJECT_VERSION}"
                                              ATTN_COMPOSITE_TABLES="${ATTN_COMPOSITE_TABLES}"
                                              ATTN_SELECTOR_TABLES="${ATTN_SELECTOR_TABLES}"
                                              ATTN_SMALL_PACK="$<TARGET_FILE:small_pack>"
                                              ATTN_CORE_PACK="${PROJECT_SOURCE_DIR}/golden/packs/core-1.0.0")
  add_dependencies(cli_test attn_cli small_pack)
endif()

# Third parties' answers, one test a source and backend.
attn_add_test(third_party_cases_test
  SOURCES third_party_cases_test.cc
  LIBRARIES attn_golden attn_reference attn_second_reference attn_optimized_cpu attn_judge fmt::fmt nlohmann_json::nlohmann_json
  LABELS unit)
