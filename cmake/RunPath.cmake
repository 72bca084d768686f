# Where installed programs and libraries look for libraries: in their own folder, and in the folder of libraries
# relative to that of programs. So an installed tree can be moved, and CMAKE_INSTALL_LIBDIR may have several parts.
include(GNUInstallDirs)
file(RELATIVE_PATH PLUMB_LIBRARIES_FROM_PROGRAMS ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/${PLUMB_LIBRARIES_FROM_PROGRAMS}")
set(PLUMB_LIBTORCH_FROM_LIBRARIES "" CACHE STRING "Where LibTorch will be, seen from the installed libraries; empty: where it is now")
mark_as_advanced(PLUMB_LIBTORCH_FROM_LIBRARIES)
if(PLUMB_LIBTORCH_FROM_LIBRARIES)
  list(APPEND CMAKE_INSTALL_RPATH "$ORIGIN/${PLUMB_LIBTORCH_FROM_LIBRARIES}")
else()
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # finds a LibTorch outside the system directories
endif()
