# The report: the page of web/report, bundled and compiled into the library, and TensorBoard's messages.
#
# Node.js (18 or later) and npm bundle the page in the build directory, not in the source tree. npm fetches its
# packages when the build is configured, so that compiling needs no network, and again only if a list of packages or
# .npmrc changes. A page built elsewhere (<build>/report/dist/report.html, or share/plumb/report.html of a release) is
# used instead, without Node.js, if it is in web/report/dist, as in a source archive, or given as
# -DPLUMB_REPORT_PAGE=FILE.
set(PLUMB_REPORT_PAGE "" CACHE FILEPATH "A built page of the report, for a machine without Node.js")

# Installs the npm packages in `build`, unless those of the same lists are already there.
function(plumb_fetch_report_packages source build)
  set(lists ${source}/package.json ${source}/package-lock.json ${source}/.npmrc)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${lists})
  set(wanted)
  foreach(list IN LISTS lists)
    file(SHA256 ${list} hash)
    string(APPEND wanted "${hash}\n")
  endforeach()
  set(stamp ${build}/packages.stamp)
  if(EXISTS ${stamp})
    file(READ ${stamp} fetched)
    if(fetched STREQUAL wanted)
      return()
    endif()
  endif()

  message(STATUS "Fetching the report's packages")
  file(COPY ${lists} DESTINATION ${build})
  set(environment)
  foreach(certificates /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt)
    if(EXISTS ${certificates} AND NOT DEFINED ENV{NODE_EXTRA_CA_CERTS} AND NOT environment)
      set(environment NODE_EXTRA_CA_CERTS=${certificates})  # Node.js knows only its own list of authorities
    endif()
  endforeach()
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env ${environment} ${PLUMB_NPM} ci --omit=dev --include=optional --ignore-scripts
            --prefer-offline --loglevel=error
    WORKING_DIRECTORY ${build} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "npm could not fetch the packages of the report's page (see above). Without the network, "
                        "copy share/plumb/report.html of a release to web/report/dist")
  endif()
  file(WRITE ${stamp} "${wanted}")
endfunction()

# Adds the generated sources of the report to a target. The page itself is <build>/report/dist/report.html.
function(plumb_add_report target)
  set(source ${PROJECT_SOURCE_DIR}/web/report)
  set(build ${PROJECT_BINARY_DIR}/report)
  set(page ${build}/report_template.cpp)
  set(built ${build}/dist/report.html)
  set(given ${PLUMB_REPORT_PAGE})
  file(MAKE_DIRECTORY ${build}/plumb/report)

  if(NOT given AND EXISTS ${source}/dist/report.html)
    set(given ${source}/dist/report.html)
  endif()
  if(given)
    get_filename_component(given ${given} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
    if(NOT EXISTS ${given})
      message(FATAL_ERROR "PLUMB_REPORT_PAGE: ${given} does not exist")
    endif()
    configure_file(${given} ${built} COPYONLY)
    add_custom_command(
      OUTPUT ${page}
      COMMAND ${CMAKE_COMMAND} -DPAGE=${built} -DOUTPUT=${page} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake
      DEPENDS ${built} ${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake
      COMMENT "Embedding ${given}" VERBATIM)
  else()
    find_program(PLUMB_NODE NAMES node nodejs)
    find_program(PLUMB_NPM NAMES npm)
    if(NOT PLUMB_NODE OR NOT PLUMB_NPM)
      message(FATAL_ERROR "Node.js and npm build the report's page (Debian: nodejs, npm). Without them, "
                          "copy share/plumb/report.html of a release to web/report/dist, "
                          "or build from its source archive, which contains the page")
    endif()
    plumb_fetch_report_packages(${source} ${build})
    file(GLOB files CONFIGURE_DEPENDS ${source}/src/*)
    add_custom_command(
      OUTPUT ${page}
      BYPRODUCTS ${built}
      COMMAND ${CMAKE_COMMAND} -E copy_directory ${source}/src ${build}/src
      COMMAND ${CMAKE_COMMAND} -E copy ${source}/build.mjs ${build}
      COMMAND ${PLUMB_NODE} ${build}/build.mjs
      COMMAND ${CMAKE_COMMAND} -DPAGE=${built} -DOUTPUT=${page} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake
      DEPENDS ${build}/packages.stamp ${files} ${source}/build.mjs ${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake
      COMMENT "Bundling the report's page" VERBATIM)
  endif()

  # Not find_package's protobuf_generate(): the header must appear as "plumb/report/tensorboard.pb.h".
  set(messages ${build}/plumb/report/tensorboard.pb)
  add_custom_command(
    OUTPUT ${messages}.cc ${messages}.h
    COMMAND protobuf::protoc --cpp_out=${build} --proto_path=${PROJECT_SOURCE_DIR}/src plumb/report/tensorboard.proto
    DEPENDS ${PROJECT_SOURCE_DIR}/src/plumb/report/tensorboard.proto
    COMMENT "Compiling TensorBoard's messages" VERBATIM)
  add_custom_target(plumb_messages DEPENDS ${messages}.h)  # the part of a build that clang-tidy needs

  target_sources(${target} PRIVATE ${page} ${messages}.cc ${messages}.h)
  set_source_files_properties(${page} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # clang-tidy runs before the page is built
  target_include_directories(${target} PRIVATE ${build})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf-lite)
endfunction()
