# `cmake --install` and find_package(plumb): the program, the library, and the public headers as <plumb/...>.
include(CMakePackageConfigHelpers)
include(Manual)
include(PublicHeaders)
set(PLUMB_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/plumb)

list(TRANSFORM PLUMB_PUBLIC_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/src/plumb/)
target_sources(plumb PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${PLUMB_PUBLIC_HEADERS})
target_compile_features(plumb PUBLIC cxx_std_20)
install(TARGETS plumb EXPORT plumbTargets FILE_SET HEADERS)
install(TARGETS plumb_app)
install(TARGETS plumb_program plumb_reading plumb_sentencepiece plumb_oniguruma LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY studies recipes examples/plugin DESTINATION ${CMAKE_INSTALL_DATADIR}/plumb)
install(FILES ${PROJECT_BINARY_DIR}/report/dist/report.html DESTINATION ${CMAKE_INSTALL_DATADIR}/plumb)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(NOT CMAKE_CROSSCOMPILING AND NOT PLUMB_SANITIZE)  # the program must run here
  plumb_add_manual(plumb_app plumb_program plumb_reading plumb)
endif()
install(EXPORT plumbTargets NAMESPACE plumb:: DESTINATION ${PLUMB_PACKAGE_DIR})
configure_package_config_file(cmake/plumbConfig.cmake.in plumbConfig.cmake INSTALL_DESTINATION ${PLUMB_PACKAGE_DIR})
write_basic_package_version_file(plumbConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/plumbConfig.cmake ${PROJECT_BINARY_DIR}/plumbConfigVersion.cmake
        ${PROJECT_SOURCE_DIR}/cmake/LibTorch.cmake ${PROJECT_SOURCE_DIR}/cmake/libtorch_clang.h
        DESTINATION ${PLUMB_PACKAGE_DIR})

# Everything that is installed, without tests and benchmarks.
add_custom_target(installable)
add_dependencies(installable plumb_app plumb_program plumb_reading plumb_sentencepiece plumb_oniguruma plumb)
if(TARGET plumb_manual)
  add_dependencies(installable plumb_manual)
endif()

include(Archive)
