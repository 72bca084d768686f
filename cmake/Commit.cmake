# Generates a source with the Git commit of the build, again whenever HEAD moves. Without a repository, the commit is
# taken from commit.txt, which `git archive` fills in. Also run as a script, with OUTPUT.
if(CMAKE_SCRIPT_MODE_FILE)
  get_filename_component(root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
  set(commit)
  if(EXISTS ${root}/.git)
    execute_process(COMMAND git rev-parse HEAD WORKING_DIRECTORY ${root} OUTPUT_VARIABLE commit
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  else()
    file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/commit.txt commit REGEX "^[0-9a-f]+$")
  endif()
  file(WRITE ${OUTPUT} "#include \"plumb/base/version.h\"\n\n"
    "namespace plumb {\nstd::string_view commit() { return \"${commit}\"; }\n}  // namespace plumb\n")
  return()
endif()

function(plumb_add_commit target)
  set(source ${PROJECT_BINARY_DIR}/commit.cpp)
  set(log)
  if(EXISTS ${PROJECT_SOURCE_DIR}/.git)
    execute_process(COMMAND git rev-parse --git-path logs/HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    get_filename_component(log "${log}" ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
    if(NOT EXISTS "${log}" OR IS_DIRECTORY "${log}")
      set(log)
    endif()
  endif()
  add_custom_command(OUTPUT ${source} DEPENDS ${log} ${PROJECT_SOURCE_DIR}/cmake/Commit.cmake VERBATIM
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${source} -P ${PROJECT_SOURCE_DIR}/cmake/Commit.cmake)
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${source})
endfunction()
