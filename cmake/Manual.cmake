# What the program writes about itself, so that it is always up to date: man pages, shell completions, and manual.json, from
# which plumb answers --help, completion and wrong words without loading its libraries.
function(plumb_add_manual program)
  set(folder ${PROJECT_BINARY_DIR}/manual)
  set(stamp ${folder}/written)
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${folder}
    COMMAND ${program} man --out ${folder}/man1
    COMMAND ${program} completion bash --out ${folder}/plumb
    COMMAND ${program} completion zsh --out ${folder}/_plumb
    COMMAND ${program} completion fish --out ${folder}/plumb.fish
    COMMAND ${program} man --json ${folder}/manual.json
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${program} ${ARGN}
    COMMENT "Writing the man pages and the shells' completions" VERBATIM)
  add_custom_target(plumb_manual ALL DEPENDS ${stamp})
  install(DIRECTORY ${folder}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${folder}/manual.json DESTINATION ${CMAKE_INSTALL_DATADIR}/plumb)
  install(FILES ${folder}/plumb DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${folder}/_plumb DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${folder}/plumb.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endfunction()
