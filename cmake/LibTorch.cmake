# LibTorch: TORCH_LIBRARIES, from Debian's packages, an archive of pytorch.org or a PyTorch wheel.
#
# find_package(Torch) serves Debian's. The others lie in one folder and are named here: built for CUDA, they would ask
# for the CUDA toolkit with nvcc, which Plumb does not need and a machine with a PyTorch wheel does not have; and they
# bring along headers and an OpenMP runtime of their own.
include(CMakeFindDependencyMacro)

find_path(PLUMB_TORCH_CONFIG TorchConfig.cmake HINTS ${Torch_DIR} PATH_SUFFIXES Torch share/cmake/Torch lib/cmake/Torch)
mark_as_advanced(PLUMB_TORCH_CONFIG)
if(PLUMB_TORCH_CONFIG)
  get_filename_component(torch_root ${PLUMB_TORCH_CONFIG}/../../.. ABSOLUTE)
endif()

if(PLUMB_TORCH_CONFIG AND EXISTS ${torch_root}/lib/libtorch_cpu.so)
  # Before PyTorch 2.6 the wheels had the ABI of before C++11, with which other libraries cannot be linked.
  file(STRINGS ${torch_root}/lib/libc10.so new_abi REGEX "__cxx11" LIMIT_COUNT 1)
  if(NOT new_abi)
    message(FATAL_ERROR "${torch_root} has the C++ ABI of before C++11: take a wheel of PyTorch 2.6 or later, or the "
                        "\"cxx11 ABI\" archive of LibTorch")
  endif()
  if(NOT TARGET plumb_libtorch)
    add_library(plumb_libtorch INTERFACE IMPORTED)
    set_target_properties(plumb_libtorch PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${torch_root}/include;${torch_root}/include/torch/csrc/api/include"
      INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO"
      INTERFACE_LINK_LIBRARIES "${torch_root}/lib/libtorch_cpu.so;${torch_root}/lib/libc10.so")
    if(PLUMB_CPU_KERNELS)
      # The wheel contains a oneDNN of another version and exports a few of its instances of std::call_once. The library
      # that is loaded first provides them to both, and with PyTorch's, products of the installed one fail.
      find_library(DNNL_LIBRARY dnnl REQUIRED)
      set_property(TARGET plumb_libtorch PROPERTY INTERFACE_LINK_OPTIONS
                   "LINKER:--push-state,--no-as-needed,${DNNL_LIBRARY},--pop-state")
    endif()
    if(EXISTS ${torch_root}/lib/libtorch_cuda.so)
      # It registers what runs on a GPU; no symbol of it is named, and linkers would drop it.
      set_property(TARGET plumb_libtorch APPEND PROPERTY INTERFACE_LINK_OPTIONS
                   "LINKER:--push-state,--no-as-needed,${torch_root}/lib/libtorch_cuda.so,--pop-state")
    endif()
  endif()
  set(TORCH_LIBRARIES plumb_libtorch)
  if(NOT EXISTS ${torch_root}/include/gloo)
    set(PLUMB_GLOO_HEADERS ${CMAKE_CURRENT_LIST_DIR}/gloo)
  endif()
  if(EXISTS ${torch_root}/include/fmt)
    set(PLUMB_TORCH_BRINGS_FMT ON)
  endif()
  file(GLOB openmp ${torch_root}/lib/libgomp*.so*)
  if(openmp)  # with the compiler's own there would be two in one process
    list(GET openmp 0 openmp)
    set(OpenMP_gomp_LIBRARY ${openmp} CACHE FILEPATH "The OpenMP runtime that LibTorch uses")
  endif()
  message(STATUS "LibTorch: ${torch_root}")
else()
  find_dependency(Torch)
  # Programs with Plumb's library need it, too, so it is installed beside this file.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND Torch_VERSION VERSION_LESS 2)
    set_property(TARGET torch APPEND PROPERTY INTERFACE_COMPILE_OPTIONS
                 "SHELL:-include \"${CMAKE_CURRENT_LIST_DIR}/libtorch_clang.h\"")
  endif()
endif()
