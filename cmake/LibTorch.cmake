# LibTorch: TORCH_LIBRARIES, from Debian's packages, an archive of pytorch.org or a PyTorch wheel.
#
# find_package(Torch) is used for Debian's. The libraries of the others are in one folder and listed here: with
# find_package, CUDA builds would require the CUDA toolkit with nvcc, which Plumb does not need and a machine with a
# PyTorch wheel does not have. They also come with their own headers and OpenMP runtime.
include(CMakeFindDependencyMacro)

find_path(PLUMB_TORCH_CONFIG TorchConfig.cmake HINTS ${Torch_DIR} PATH_SUFFIXES Torch share/cmake/Torch lib/cmake/Torch)
mark_as_advanced(PLUMB_TORCH_CONFIG)
if(PLUMB_TORCH_CONFIG)
  get_filename_component(torch_root ${PLUMB_TORCH_CONFIG}/../../.. ABSOLUTE)
endif()

if(PLUMB_TORCH_CONFIG AND EXISTS ${torch_root}/lib/libtorch_cpu.so)
  # PyPI's wheels up to PyTorch 2.6 use the pre-C++11 ABI, which is incompatible with other libraries.
  file(STRINGS ${PLUMB_TORCH_CONFIG}/TorchConfig.cmake PLUMB_TORCH_OLD_ABI REGEX "_GLIBCXX_USE_CXX11_ABI=0" LIMIT_COUNT 1)
  if(PLUMB_TORCH_OLD_ABI)
    message(FATAL_ERROR "${torch_root} has the C++ ABI of before C++11: take a wheel of PyTorch 2.7 or later, or the "
                        "\"cxx11 ABI\" archive of LibTorch")
  endif()
  if(NOT TARGET plumb_libtorch)
    add_library(plumb_libtorch INTERFACE IMPORTED)
    set_target_properties(plumb_libtorch PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${torch_root}/include;${torch_root}/include/torch/csrc/api/include"
      INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO"
      INTERFACE_LINK_LIBRARIES "${torch_root}/lib/libtorch_cpu.so;${torch_root}/lib/libc10.so")
    if(PLUMB_CPU_KERNELS)
      # The wheel contains another version of oneDNN and exports some of its std::call_once instantiations. The library
      # loaded first provides them to both, and with PyTorch's, matrix products of the installed oneDNN fail.
      find_library(DNNL_LIBRARY dnnl REQUIRED)
      set_property(TARGET plumb_libtorch PROPERTY INTERFACE_LINK_OPTIONS
                   "LINKER:--push-state,--no-as-needed,${DNNL_LIBRARY},--pop-state")
    endif()
    if(EXISTS ${torch_root}/lib/libtorch_cuda.so)
      # It registers the GPU operations, and most of its symbols are not referenced, so linkers would drop it.
      set_property(TARGET plumb_libtorch APPEND PROPERTY INTERFACE_LINK_OPTIONS
                   "LINKER:--push-state,--no-as-needed,${torch_root}/lib/libtorch_cuda.so,--pop-state")
      set_property(TARGET plumb_libtorch APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS PLUMB_GPU_OPERATIONS)
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
  if(openmp)  # with the compiler's, a process would load two
    list(GET openmp 0 openmp)
    set(OpenMP_gomp_LIBRARY ${openmp} CACHE FILEPATH "The OpenMP runtime that LibTorch uses")
  endif()
  message(STATUS "LibTorch: ${torch_root}")
else()
  find_dependency(Torch)
  # Programs that use Plumb's library need it too, so it is installed next to this file.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND Torch_VERSION VERSION_LESS 2)
    set_property(TARGET torch APPEND PROPERTY INTERFACE_COMPILE_OPTIONS
                 "SHELL:-include \"${CMAKE_CURRENT_LIST_DIR}/libtorch_clang.h\"")
  endif()
endif()
