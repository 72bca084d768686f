// Small files, and how many there are.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

namespace plumb::test {

inline void put(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline size_t entries(const std::filesystem::path& directory) {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator()));
}

}  // namespace plumb::test
