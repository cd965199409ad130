# Tests of golden.
attn_add_test(golden_test
  SOURCES atomic_file_test.cc cache_write_operation_test.cc case_file_test.cc case_folder_test.cc
          case_operation_test.cc indexer_operation_test.cc merge_states_operation_test.cc
          mla_operation_test.cc result_file_test.cc safetensors_test.cc strict_json_test.cc
  LIBRARIES attn_oracle::golden fmt::fmt nlohmann_json::nlohmann_json
  LABELS unit)

# Operations as case files, and packs of them.
add_executable(small_pack small_pack_main.cc small_pack.cc)
target_include_directories(small_pack PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(small_pack PRIVATE attn_golden attn_reference)
attn_compile_options(small_pack)

attn_add_test(pack_test
  SOURCES case_folder_writer.cc case_writer_test.cc command_runner.cc pack_damage_test.cc
          pack_maker_test.cc pack_test.cc small_pack.cc
  LIBRARIES attn_golden attn_reference attn_property_tests fmt::fmt nlohmann_json::nlohmann_json OpenSSL::Crypto
  LABELS unit)
target_compile_definitions(pack_test PRIVATE ATTN_CLI="" ATTN_SMALL_PACK="$<TARGET_FILE:small_pack>")
add_dependencies(pack_test small_pack)
