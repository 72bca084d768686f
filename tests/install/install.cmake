# Installs a build, then moves what was installed to another place, as a package is moved: cmake -DBUILD=… -DPREFIX=… -P.
file(REMOVE_RECURSE ${PREFIX} ${PREFIX}.first)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX}.first COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
file(RENAME ${PREFIX}.first ${PREFIX})
