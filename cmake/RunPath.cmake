# Where installed programs and libraries look for libraries: in their own folder, and in the folder of libraries
# relative to that of programs. So an installed tree can be moved, and CMAKE_INSTALL_LIBDIR may have several parts.
include(GNUInstallDirs)
file(RELATIVE_PATH PLUMB_LIBRARIES_FROM_PROGRAMS ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/${PLUMB_LIBRARIES_FROM_PROGRAMS}")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # finds a LibTorch outside the system directories
