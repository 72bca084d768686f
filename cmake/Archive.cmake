# `cpack`: the archive and the Debian package of a release, for this distribution.
cmake_host_system_information(RESULT distribution QUERY DISTRIB_INFO)
string(TOLOWER "${distribution_ID}${distribution_VERSION_ID}" distribution)  # debian12
string(REGEX REPLACE "[^a-z0-9.]" "" distribution "${distribution}")

set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_PACKAGE_CONTACT "The Plumb developers")
set(CPACK_PACKAGE_FILE_NAME plumb-${PROJECT_VERSION}-${distribution}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1~${distribution})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_DEPENDS libopenblas0-openmp)  # LibTorch's BLAS on the same threads as everything else
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, curl")  # plumb data get
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, g++, libfmt-dev, libtorch-dev, nlohmann-json3-dev")  # programs with the library
include(CPack)
