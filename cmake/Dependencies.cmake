# The program's dependencies. scripts/packages.txt lists the Debian packages that provide them.
include(LibTorch)
find_package(OpenMP REQUIRED)

# Header-only libraries, installed or in a separate folder (docs/machines.md).
set(PLUMB_HEADERS "" CACHE PATH "A folder with the headers of nlohmann-json, fmt, CLI11, toml++ and Eigen, as in their repositories")

# Defines TARGET for the header-only library that contains HEADER.
function(plumb_header_library target header)
  file(GLOB folders LIST_DIRECTORIES true ${PLUMB_HEADERS}/* ${PLUMB_HEADERS}/*/include)
  string(MAKE_C_IDENTIFIER "PLUMB_HEADERS_${header}" place)
  find_path(${place} ${header} PATHS ${PLUMB_HEADERS} ${folders} NO_DEFAULT_PATH REQUIRED)
  mark_as_advanced(${place})
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} INTERFACE ${${place}})
endfunction()

if(PLUMB_HEADERS)
  plumb_header_library(nlohmann_json::nlohmann_json nlohmann/json.hpp)
  plumb_header_library(fmt::fmt-header-only fmt/format.h)
  target_compile_definitions(fmt::fmt-header-only INTERFACE FMT_HEADER_ONLY)
  plumb_header_library(CLI11::CLI11 CLI/CLI.hpp)
  plumb_header_library(tomlplusplus::tomlplusplus toml++/toml.h)
  plumb_header_library(Eigen3::Eigen Eigen/Core)
else()
  find_package(nlohmann_json 3.10 REQUIRED)
  find_package(fmt REQUIRED)
  find_package(CLI11 REQUIRED)
  find_package(tomlplusplus REQUIRED)
  find_package(Eigen3 REQUIRED)
endif()
# A LibTorch that comes with fmt's headers hides those of the installed library, which may have another version.
set(PLUMB_FMT fmt::fmt)
if(PLUMB_HEADERS OR PLUMB_TORCH_BRINGS_FMT)
  set(PLUMB_FMT fmt::fmt-header-only)
endif()

find_package(Protobuf REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc i18n)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
pkg_check_modules(oniguruma REQUIRED IMPORTED_TARGET oniguruma)

find_package(ZLIB REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)

# Only for the kernels.
set(PLUMB_KERNEL_DEPENDENCIES)
if(PLUMB_CPU_KERNELS)
  pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  set(PLUMB_KERNEL_DEPENDENCIES PkgConfig::hwy ${DNNL_LIBRARY})
endif()

# The first two are used by public headers, the third only by the library's sources.
set(PLUMB_PLAIN_DEPENDENCIES nlohmann_json::nlohmann_json ${PLUMB_FMT} OpenMP::OpenMP_CXX)
set(PLUMB_TENSOR_DEPENDENCIES ${TORCH_LIBRARIES})
set(PLUMB_PRIVATE_DEPENDENCIES Eigen3::Eigen tomlplusplus::tomlplusplus ICU::uc ICU::i18n ZLIB::ZLIB OpenSSL::Crypto
    protobuf::libprotobuf-lite)
