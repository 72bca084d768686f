# `cmake --install` and find_package(plumb): the program, the library, and the headers as <plumb/...>.
include(CMakePackageConfigHelpers)
set(PLUMB_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/plumb)

target_sources(plumb PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${PLUMB_HEADERS})
target_compile_features(plumb PUBLIC cxx_std_20)
install(TARGETS plumb EXPORT plumbTargets FILE_SET HEADERS)
install(TARGETS plumb_app)
install(TARGETS plumb_program plumb_sentencepiece LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY studies DESTINATION ${CMAKE_INSTALL_DATADIR}/plumb)
install(EXPORT plumbTargets NAMESPACE plumb:: DESTINATION ${PLUMB_PACKAGE_DIR})
configure_package_config_file(cmake/plumbConfig.cmake.in plumbConfig.cmake INSTALL_DESTINATION ${PLUMB_PACKAGE_DIR})
write_basic_package_version_file(plumbConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/plumbConfig.cmake ${PROJECT_BINARY_DIR}/plumbConfigVersion.cmake
        ${PROJECT_SOURCE_DIR}/cmake/LibTorch.cmake
        DESTINATION ${PLUMB_PACKAGE_DIR})
