# Tests of core, judge and reference.
attn_add_test(core_test
  SOURCES alibi_test.cc backend_test.cc capabilities_test.cc dtype_integer_test.cc dtype_test.cc
          guarded_tensor_test.cc kv_cache_test.cc parallel_test.cc print_test.cc random_test.cc validate_mask_test.cc
          validate_options_test.cc validate_test.cc view_test.cc
  LIBRARIES attn_core
  LABELS unit)

# Machines as detection may find them: drivers that behave in one way each.
attn_add_test(environment_test
  SOURCES environment_test.cc
  LIBRARIES attn_core
  LABELS unit)
function(attn_add_fake_driver name)
  add_library(${name} MODULE fake_cuda_driver.cc)
  target_compile_definitions(${name} PRIVATE ${ARGN})
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fake_drivers)
  attn_compile_options(${name})
  add_dependencies(environment_test ${name})
endfunction()
attn_add_fake_driver(fake_cuda_hopper)
attn_add_fake_driver(fake_cuda_turing FAKE_MAJOR=7 FAKE_MINOR=5)
attn_add_fake_driver(fake_cuda_without_symbol FAKE_HIDES_ATTRIBUTE)
attn_add_fake_driver(fake_cuda_without_start FAKE_INIT=999)
attn_add_fake_driver(fake_cuda_without_device FAKE_DEVICES=0)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/fake_drivers/no_library "no ELF file")
target_compile_definitions(environment_test PRIVATE ATTN_FAKE_DRIVERS="${CMAKE_CURRENT_BINARY_DIR}/fake_drivers")
# Registers with some of them named leave the others zero.
target_compile_options(environment_test PRIVATE -Wno-missing-field-initializers)

# CUDA's headers convert on the host too; a toolkit with 4-bit types or none.
find_path(ATTN_CUDA_HEADERS cuda_fp4.h PATHS /usr/local/cuda/include)
if(ATTN_CUDA_HEADERS)
  attn_add_test(dtype_cuda_test
    SOURCES dtype_cuda_test.cc
    LIBRARIES attn_core
    LABELS unit)
  target_include_directories(dtype_cuda_test SYSTEM PRIVATE ${ATTN_CUDA_HEADERS})
endif()

attn_add_test(judge_test
  SOURCES contract_test.cc exact_lane_test.cc judgement_forms_test.cc
          judgement_test.cc mistrust_test.cc number_format_test.cc peer_policies_test.cc row_values_test.cc
          softmax_bound_test.cc telemetry_test.cc tolerance_test.cc
  LIBRARIES attn_judge attn_reference nlohmann_json::nlohmann_json
  LABELS unit)
# A Summation with one field named leaves the others to their defaults.
target_compile_options(judge_test PRIVATE -Wno-missing-field-initializers)

attn_add_test(declared_contract_test
  SOURCES declared_contract_test.cc
  LIBRARIES attn_judge attn_reference attn_second_reference attn_optimized_cpu
  LABELS unit)

attn_add_test(reference_test
  SOURCES bias_test.cc gather_test.cc mask_test.cc partition_test.cc reference_backend_test.cc
          softmax_test.cc visible_test.cc
  LIBRARIES attn_reference Eigen3::Eigen
  LABELS unit)
# A MaskSpec with one field named leaves the others to their defaults.
target_compile_options(reference_test PRIVATE -Wno-missing-field-initializers)

# A race between bodies of parallel_for is found in spite of annotations and suppressions.
if(ATTN_SANITIZE STREQUAL "thread")
  add_executable(planted_race planted_race.cc)
  target_link_libraries(planted_race PRIVATE attn_core)
  attn_compile_options(planted_race)
  add_test(NAME ThreadSanitizer.ReportsARaceOfBodies COMMAND planted_race)
  add_test(NAME ThreadSanitizer.ReportsARaceOfMemoryFunctionsInBodies COMMAND planted_race memmove)
  set_tests_properties(
    ThreadSanitizer.ReportsARaceOfBodies ThreadSanitizer.ReportsARaceOfMemoryFunctionsInBodies
    PROPERTIES LABELS unit TIMEOUT 300
    PASS_REGULAR_EXPRESSION "SUMMARY: ThreadSanitizer: data race [^\n]*planted_race.cc"
    ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")
endif()
