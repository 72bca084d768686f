# The Git commit of the sources, which runs record. Every build looks it up, and writes a header if it has changed; that
# header is included by one source only.
#
# As a script (cmake -P): writes the header. GIT, SOURCE_DIRECTORY, HEADER.
if(CMAKE_SCRIPT_MODE_FILE)
  set(commit "")
  if(GIT AND EXISTS ${SOURCE_DIRECTORY}/.git)
    execute_process(COMMAND ${GIT} --no-optional-locks describe --always --dirty --abbrev=40 --exclude=*
      WORKING_DIRECTORY ${SOURCE_DIRECTORY} OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define PLUMB_COMMIT \"${commit}\"\n")
  return()
endif()

function(plumb_add_commit target source)
  find_package(Git QUIET)
  set(header ${PROJECT_BINARY_DIR}/commit/plumb_commit.h)
  add_custom_target(plumb_commit BYPRODUCTS ${header} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DGIT=${GIT_EXECUTABLE} -DSOURCE_DIRECTORY=${PROJECT_SOURCE_DIR} -DHEADER=${header}
            -P ${PROJECT_SOURCE_DIR}/cmake/Commit.cmake)
  add_dependencies(${target} plumb_commit)
  set_source_files_properties(${source} PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR}/commit OBJECT_DEPENDS ${header})
endfunction()
