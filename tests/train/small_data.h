// Tiny data directories of running text and of labeled sentences.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "plumb/data/prepare_labels.h"
#include "support/text_lines.h"

namespace plumb::test {

/// Sixty short lines, in blocks of 12 tokens, with a token for masks.
inline void make_small_text(const std::filesystem::path& out) {
  std::vector<std::string> lines;
  for (int i = 0; i < 60; ++i)
    lines.push_back(fmt::format("a {} cat sees the {} dog", i % 2 == 0 ? "big" : "small", i));
  prepare_lines(out, lines, {"the cat sees a dog", "a big dog sees the cat"}, 12, 40, true);
}

/// Forty sentences with one of two labels; the validation split has the same ones.
inline void make_small_labels(const std::filesystem::path& out) {
  LabelOptions options;
  options.train = out.string() + ".tsv";
  options.valid = options.train;
  std::ofstream lines(options.train);
  for (int i = 0; i < 40; ++i)
    lines << (i % 2 == 0 ? "cat\tthe small cat" : "dog\tthe big dog") << " sees " << i << '\n';
  lines.close();
  options.tokenizer.vocabulary = 40;
  prepare_labels(options, out);
}

}  // namespace plumb::test
