// Tiny data directories of running text.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "plumb/data/directory.h"
#include "plumb/data/prepare_text.h"

namespace plumb::test {

/// `count` lines: these in turn.
inline std::vector<std::string> in_turn(size_t count, const std::vector<std::string>& lines) {
  std::vector<std::string> all;
  for (size_t i = 0; i < count; ++i) all.push_back(lines[i % lines.size()]);
  return all;
}

/// Data of these lines in blocks of `block` tokens, or a sequence each if that is 0; `mask`: with a token for masks.
inline DataDirectory prepare_lines(const std::filesystem::path& out, std::vector<std::string> train,
                                   std::vector<std::string> valid, int64_t block, int64_t vocabulary = 24,
                                   bool mask = false) {
  prepare_text_lines({.train = std::move(train), .valid = std::move(valid)},
                     {.tokenizer = {.vocabulary = vocabulary, .mask = mask}, .block = block}, out);
  return DataDirectory::open(out);
}

}  // namespace plumb::test
