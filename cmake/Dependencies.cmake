# What Plumb stands on, found once. Debian's packages for these are listed in scripts/packages.txt.
include(LibTorch)
find_package(OpenMP REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(Eigen3 REQUIRED)
find_package(Protobuf REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc i18n)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)

find_package(ZLIB REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)

# The kernels' own; without them a machine needs neither.
set(PLUMB_KERNEL_DEPENDENCIES)
if(PLUMB_CPU_KERNELS)
  pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  set(PLUMB_KERNEL_DEPENDENCIES PkgConfig::hwy ${DNNL_LIBRARY})
endif()

# What the public headers show, and what only the library's own sources use.
set(PLUMB_PLAIN_DEPENDENCIES nlohmann_json::nlohmann_json fmt::fmt OpenMP::OpenMP_CXX)
set(PLUMB_TENSOR_DEPENDENCIES ${TORCH_LIBRARIES})
set(PLUMB_PRIVATE_DEPENDENCIES Eigen3::Eigen tomlplusplus::tomlplusplus ICU::uc ICU::i18n ZLIB::ZLIB OpenSSL::Crypto
    protobuf::libprotobuf-lite)
