# Install and export: the headers of include/attn, the libraries behind attn_oracle::attn, the program.
# find_package(attn_oracle) works from the installed prefix and, with attn_oracle_DIR, from a build tree.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

get_target_property(attn_libraries attn INTERFACE_LINK_LIBRARIES)
set(attn_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attn_oracle)

install(DIRECTORY include/attn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS attn ${attn_libraries} EXPORT attn_oracleTargets)
install(EXPORT attn_oracleTargets NAMESPACE attn_oracle:: DESTINATION ${attn_cmake_dir})
if(ATTN_BUILD_CLI)
  install(TARGETS attn_cli)
endif()
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(cmake/attn_oracleConfig.cmake.in attn_oracleConfig.cmake
                              INSTALL_DESTINATION ${attn_cmake_dir})
write_basic_package_version_file(attn_oracleConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attn_oracleConfig.cmake ${PROJECT_BINARY_DIR}/attn_oracleConfigVersion.cmake
        DESTINATION ${attn_cmake_dir})

export(EXPORT attn_oracleTargets NAMESPACE attn_oracle:: FILE attn_oracleTargets.cmake)
