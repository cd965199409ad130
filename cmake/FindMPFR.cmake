# Finds MPFR, the multiple-precision floating-point library, and the GMP it is built on; neither ships a
# CMake config. Defines MPFR_FOUND, MPFR_VERSION and the target MPFR::MPFR.
find_path(MPFR_INCLUDE_DIR mpfr.h)
find_library(MPFR_LIBRARY mpfr)
find_path(GMP_INCLUDE_DIR gmp.h)
find_library(GMP_LIBRARY gmp)
mark_as_advanced(MPFR_INCLUDE_DIR MPFR_LIBRARY GMP_INCLUDE_DIR GMP_LIBRARY)

if(MPFR_INCLUDE_DIR)
  file(STRINGS ${MPFR_INCLUDE_DIR}/mpfr.h mpfr_version_line REGEX "^#define MPFR_VERSION_STRING ")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" MPFR_VERSION "${mpfr_version_line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  MPFR REQUIRED_VARS MPFR_LIBRARY MPFR_INCLUDE_DIR GMP_LIBRARY GMP_INCLUDE_DIR VERSION_VAR MPFR_VERSION)

if(MPFR_FOUND AND NOT TARGET MPFR::MPFR)
  add_library(MPFR::MPFR UNKNOWN IMPORTED)
  set_target_properties(MPFR::MPFR PROPERTIES IMPORTED_LOCATION "${MPFR_LIBRARY}"
                                              INTERFACE_LINK_LIBRARIES "${GMP_LIBRARY}")
  target_include_directories(MPFR::MPFR INTERFACE ${MPFR_INCLUDE_DIR} ${GMP_INCLUDE_DIR})
endif()
