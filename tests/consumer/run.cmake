# cmake -D BUILD_DIR=... -D CONFIG=... -D CXX_COMPILER=... -D GENERATOR=... -D WORK_DIR=... -P run.cmake
# Installs BUILD_DIR into an empty prefix, then builds and runs the project beside this file with a plain
# find_package: once against the prefix, once against the build tree itself.
cmake_minimum_required(VERSION 3.24)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(config)
if(CONFIG)
  set(config --config ${CONFIG})
endif()

set(prefix ${WORK_DIR}/prefix)
file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix} ${config})

file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/*)
foreach(header IN LISTS headers)
  if(NOT header MATCHES "^attn/[a-z0-9_]+\\.h$")
    message(FATAL_ERROR "installed header ${header} is not one of include/attn")
  endif()
endforeach()

foreach(tree prefix build_tree)
  set(consumer ${WORK_DIR}/${tree}_consumer)
  if(tree STREQUAL "prefix")
    set(where -D CMAKE_PREFIX_PATH=${prefix})
  else()
    set(where -D attn_oracle_DIR=${BUILD_DIR})
  endif()
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${consumer} -G ${GENERATOR} ${where}
      -D CMAKE_CXX_COMPILER=${CXX_COMPILER} -D CMAKE_BUILD_TYPE=${CONFIG})
  run(${CMAKE_COMMAND} --build ${consumer} ${config})
  find_program(${tree}_program consumer PATHS ${consumer} ${consumer}/${CONFIG} NO_DEFAULT_PATH REQUIRED)
  run(${${tree}_program})
endforeach()
