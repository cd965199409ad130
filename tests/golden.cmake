# Tests of golden.
attn_add_test(golden_test
  SOURCES atomic_file_test.cc cache_write_operation_test.cc case_file_test.cc case_folder_test.cc
          case_operation_test.cc indexer_operation_test.cc merge_states_operation_test.cc
          mla_operation_test.cc result_file_test.cc safetensors_test.cc strict_json_test.cc
  LIBRARIES attn_oracle::golden fmt::fmt nlohmann_json::nlohmann_json
  LABELS unit)
