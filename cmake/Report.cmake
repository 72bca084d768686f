# The report: the page of web/report, bundled and compiled into the library, and TensorBoard's messages.
#
# Node.js (18 or later) and npm bundle the page in the build directory; the source tree stays clean. Nothing runs again
# unless the page's sources or its lock file change. On a machine without Node.js, -DPLUMB_REPORT_PAGE=FILE takes a page
# that was built elsewhere (<build>/report/dist/report.html).
set(PLUMB_REPORT_PAGE "" CACHE FILEPATH "A built page of the report, for a machine without Node.js")

# Adds the generated sources of the report to a target.
function(plumb_add_report target)
  set(source ${PROJECT_SOURCE_DIR}/web/report)
  set(build ${PROJECT_BINARY_DIR}/report)
  set(page ${build}/report_template.cpp)
  file(MAKE_DIRECTORY ${build}/plumb/report)

  if(PLUMB_REPORT_PAGE)
    add_custom_command(
      OUTPUT ${page}
      COMMAND ${CMAKE_COMMAND} -DPAGE=${PLUMB_REPORT_PAGE} -DOUTPUT=${page} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake
      DEPENDS ${PLUMB_REPORT_PAGE} ${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake
      COMMENT "Embedding ${PLUMB_REPORT_PAGE}" VERBATIM)
  else()
    find_program(PLUMB_NODE NAMES node nodejs)
    find_program(PLUMB_NPM NAMES npm)
    if(NOT PLUMB_NODE OR NOT PLUMB_NPM)
      message(FATAL_ERROR "Node.js and npm build the report's page (Debian: nodejs, npm); "
                          "or pass -DPLUMB_REPORT_PAGE=FILE with a page that was built elsewhere")
    endif()
    file(GLOB files CONFIGURE_DEPENDS ${source}/src/*)
    add_custom_command(
      OUTPUT ${build}/packages.stamp
      COMMAND ${CMAKE_COMMAND} -E copy ${source}/package.json ${source}/package-lock.json ${source}/.npmrc ${build}
      COMMAND ${CMAKE_COMMAND} -E chdir ${build} ${PLUMB_NPM} ci --omit=dev --include=optional --ignore-scripts
              --prefer-offline --loglevel=error
      COMMAND ${CMAKE_COMMAND} -E touch ${build}/packages.stamp
      DEPENDS ${source}/package.json ${source}/package-lock.json ${source}/.npmrc
      COMMENT "Fetching the report's packages" VERBATIM)
    add_custom_command(
      OUTPUT ${page}
      BYPRODUCTS ${build}/dist/report.html
      COMMAND ${CMAKE_COMMAND} -E copy_directory ${source}/src ${build}/src
      COMMAND ${CMAKE_COMMAND} -E copy ${source}/build.mjs ${build}
      COMMAND ${PLUMB_NODE} ${build}/build.mjs
      COMMAND ${CMAKE_COMMAND} -DPAGE=${build}/dist/report.html -DOUTPUT=${page} -P
              ${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake
      DEPENDS ${build}/packages.stamp ${files} ${source}/build.mjs ${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake
      COMMENT "Bundling the report's page" VERBATIM)
  endif()

  # Not find_package's protobuf_generate(): the header has to appear as "plumb/report/tensorboard.pb.h".
  set(messages ${build}/plumb/report/tensorboard.pb)
  add_custom_command(
    OUTPUT ${messages}.cc ${messages}.h
    COMMAND protobuf::protoc --cpp_out=${build} --proto_path=${PROJECT_SOURCE_DIR}/src plumb/report/tensorboard.proto
    DEPENDS ${PROJECT_SOURCE_DIR}/src/plumb/report/tensorboard.proto
    COMMENT "Compiling TensorBoard's messages" VERBATIM)
  add_custom_target(plumb_messages DEPENDS ${messages}.h)  # what clang-tidy needs of a build

  target_sources(${target} PRIVATE ${page} ${messages}.cc ${messages}.h)
  target_include_directories(${target} PRIVATE ${build})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf-lite)
endfunction()
