# The report's page: its scales, formats and escapes in Node.js, and the whole page in headless Chromium, as readers use it.
# Where Node.js, npm's packages or Chromium are absent, the tests are skipped and say so.
find_program(PLUMB_NODE NAMES node nodejs)
foreach(suite unit browser)
  if(suite STREQUAL unit)
    set(name page)
  else()
    set(name page_${suite})
  endif()
  if(PLUMB_NODE)
    add_test(NAME ${name} COMMAND ${PLUMB_NODE} ${PROJECT_SOURCE_DIR}/web/report/test/run.mjs
      ${PROJECT_BINARY_DIR} ${suite} $<TARGET_FILE:plumb_app>)
  else()
    add_test(NAME ${name} COMMAND sh -c "echo 'Skipped: Node.js is absent' >&2; exit 77")
  endif()
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900 RESOURCE_LOCK page_packages)
endforeach()
