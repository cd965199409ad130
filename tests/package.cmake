# The install works for somebody else: tests/consumer is built against it. Needs the whole build.
add_test(NAME package.consumer_builds_against_the_install
         COMMAND ${CMAKE_COMMAND} -D BUILD_DIR=${PROJECT_BINARY_DIR} -D CONFIG=$<CONFIG> -D GENERATOR=${CMAKE_GENERATOR}
                 -D CXX_COMPILER=${CMAKE_CXX_COMPILER} -D WORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/package
                 -P ${CMAKE_CURRENT_SOURCE_DIR}/consumer/run.cmake)
set_tests_properties(package.consumer_builds_against_the_install PROPERTIES LABELS package TIMEOUT 300)
