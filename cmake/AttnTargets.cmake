# attn_add_library(NAME SOURCES ... [PUBLIC ...] [PRIVATE ...])
# One static library per folder: target attn_NAME, alias attn_oracle::NAME, installed as attn_oracle::NAME.
# PUBLIC and PRIVATE name what it links. Private headers are included by their path from the repository root.
function(attn_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target attn_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(attn_oracle::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_include_directories(
    ${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC ${ARG_PUBLIC})
  foreach(library IN LISTS ARG_PRIVATE)
    target_link_libraries(${target} PRIVATE ${library})
  endforeach()
  attn_compile_options(${target})
endfunction()

# The compile contract of every target of the project: C++20, warnings, no contraction of a*b+c (the error
# bounds assume that a product and a sum round separately unless std::fma is written), sanitizers.
function(attn_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -ffp-contract=off -fno-fast-math)
  if(ATTN_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(ATTN_SANITIZE STREQUAL "address")
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  elseif(ATTN_SANITIZE STREQUAL "thread")
    target_compile_options(${target} PRIVATE -fsanitize=thread -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=thread)
  elseif(NOT ATTN_SANITIZE STREQUAL "")
    message(FATAL_ERROR "ATTN_SANITIZE is '${ATTN_SANITIZE}'; it may be empty, address or thread")
  endif()
endfunction()

# What tests parse over and over, precompiled once for all of them. Set DISABLE_PRECOMPILE_HEADERS on a test whose
# options change code (-m..., -O...): such a header is refused then.
function(attn_add_test_headers)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cc CONTENT "")
  add_library(attn_test_headers OBJECT ${PROJECT_BINARY_DIR}/test_headers.cc)
  target_link_libraries(attn_test_headers PRIVATE GTest::gtest fmt::fmt nlohmann_json::nlohmann_json)
  target_precompile_headers(attn_test_headers PRIVATE <gtest/gtest.h> <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp>)
  attn_compile_options(attn_test_headers)
  target_compile_options(attn_test_headers PRIVATE -O0)
endfunction()

# attn_add_test(NAME SOURCES ... [LIBRARIES ...] [LABELS ...] [ENVIRONMENT ...] [OPTIMIZED])
# A GoogleTest program, one ctest entry per test. Its own sources are compiled without optimisation, as compiling
# most takes longer than running them, unless it is OPTIMIZED.
function(attn_add_test name)
  cmake_parse_arguments(ARG "OPTIMIZED" "" "SOURCES;LIBRARIES;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} GTest::gtest_main fmt::fmt)
  target_compile_definitions(${name} PRIVATE ATTN_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  attn_compile_options(${name})
  if(NOT ARG_OPTIMIZED)
    target_precompile_headers(${name} REUSE_FROM attn_test_headers)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  # An allocation that is too large fails as it does without a sanitizer: tests ask for some.
  if(ATTN_SANITIZE STREQUAL "thread")
    list(APPEND ARG_ENVIRONMENT
         "TSAN_OPTIONS=allocator_may_return_null=1:suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")
  elseif(ATTN_SANITIZE STREQUAL "address")
    list(APPEND ARG_ENVIRONMENT "ASAN_OPTIONS=allocator_may_return_null=1")
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 120 PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 900
                       ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()
include(GoogleTest)
