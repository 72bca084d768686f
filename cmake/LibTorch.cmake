# LibTorch: TORCH_LIBRARIES, from Debian's packages, the archives of pytorch.org or a PyTorch wheel.
#
# find_package(Torch) does that, except for a LibTorch built for CUDA: there it wants the CUDA toolkit with nvcc, which
# Plumb does not need and a machine with a PyTorch wheel does not have. Such a LibTorch's own libraries are named here.
include(CMakeFindDependencyMacro)

find_path(PLUMB_TORCH_CONFIG TorchConfig.cmake HINTS ${Torch_DIR} PATH_SUFFIXES Torch share/cmake/Torch lib/cmake/Torch)
mark_as_advanced(PLUMB_TORCH_CONFIG)
if(PLUMB_TORCH_CONFIG)
  get_filename_component(torch_root ${PLUMB_TORCH_CONFIG}/../../.. ABSOLUTE)
endif()

if(PLUMB_TORCH_CONFIG AND EXISTS ${torch_root}/lib/libtorch_cuda.so)
  # Before PyTorch 2.6 the wheels had the ABI of before C++11, in which no other library of today can be linked.
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
      # libtorch_cuda registers what runs on a GPU; no symbol of it is named, and linkers would drop it.
      INTERFACE_LINK_OPTIONS "LINKER:--push-state,--no-as-needed,${torch_root}/lib/libtorch_cuda.so,--pop-state"
      INTERFACE_LINK_LIBRARIES "${torch_root}/lib/libtorch_cpu.so;${torch_root}/lib/libc10.so")
  endif()
  set(TORCH_LIBRARIES plumb_libtorch)
  if(NOT EXISTS ${torch_root}/include/gloo)
    set(PLUMB_GLOO_HEADERS ${CMAKE_CURRENT_LIST_DIR}/gloo)
  endif()
  # Some bring an OpenMP runtime along; with the compiler's own beside it there would be two in one process.
  if(EXISTS ${torch_root}/lib/libgomp.so.1)
    set(OpenMP_gomp_LIBRARY ${torch_root}/lib/libgomp.so.1 CACHE FILEPATH "The OpenMP runtime that LibTorch uses")
  endif()
  message(STATUS "LibTorch with CUDA: ${torch_root}")
else()
  find_dependency(Torch)
endif()
