#include "plumb/data/prepare_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/data/prepare_parts.h"
#include "plumb/data/split.h"
#include "plumb/data/trim.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

using Lines = std::vector<std::string>;

void drop_blank(Lines& lines) {
  std::erase_if(lines, [](const std::string& line) { return is_blank(line); });
}

/// Words between white space, plus one for each line end, as is customary in language modeling.
int64_t count_words(const Lines& lines) {
  int64_t words = 0;
  for (const std::string& line : lines) {
    std::istringstream in(line);
    std::string word;
    while (in >> word) ++words;
    ++words;
  }
  return words;
}

/// Moves the last lines out of `train`.
Lines take_valid(Lines& train, int64_t wanted) {
  const auto lines = std::ssize(train);
  if (wanted == 0) wanted = std::clamp<int64_t>(lines / 20, 1, 1000);
  if (wanted >= lines) {
    throw Error(fmt::format("{} lines cannot be held out of {}", with_thousands(wanted), with_thousands(lines)),
                "give a smaller --valid-size, or a validation file with --valid");
  }
  Lines held(train.end() - wanted, train.end());
  train.resize(static_cast<size_t>(lines - wanted));
  return held;
}

/// Concatenates all lines and cuts them into blocks.
Sequences cut_into_blocks(const Sequences& lines, int64_t block, int32_t eos) {
  Sequences blocks;
  const auto add = [&](int32_t id) {
    if (blocks.empty() || std::ssize(blocks.back()) == block) blocks.emplace_back();
    blocks.back().push_back(id);
  };
  for (const auto& line : lines) {
    for (const int32_t id : line) add(id);
    add(eos);
  }
  return blocks;
}

}  // namespace

Json prepare_text(const TextOptions& options, const fs::path& out) {
  check_output_directory(out, "data");
  TextCorpora corpora;
  const auto read = [&](const std::string& name, const fs::path& file) {
    corpora.inputs[name] = Json::array({describe_file(file)});
    return read_lines(file);
  };
  corpora.train = read("train", options.train);
  if (options.valid) corpora.valid = read("valid", *options.valid);
  for (const auto& [name, file] : options.tests) corpora.tests.emplace_back(name, read(name, file));
  return prepare_text_lines(std::move(corpora), options, out);
}

Json prepare_text_lines(TextCorpora corpora, const TextOptions& options, const fs::path& out) {
  check_output_directory(out, "data");
  if (options.block < 0 || options.block == 1)
    throw Error(fmt::format("the block size must be 0 or at least 2, not {}", options.block));
  if (options.length_limit < 1)
    throw Error(fmt::format("the length limit must be at least 1, not {}", options.length_limit));
  if (options.valid_size < 0) throw Error(fmt::format("--valid-size must be at least 0, not {}", options.valid_size));
  std::vector<std::string> names;
  for (const auto& [name, lines] : corpora.tests) names.push_back(name);
  check_test_names(names);

  drop_blank(corpora.train);
  if (corpora.train.empty()) throw Error(fmt::format("{}: contains no text", origin_of("train", corpora.inputs)));
  const bool held_out = !corpora.valid;
  if (held_out) corpora.valid = take_valid(corpora.train, options.valid_size);
  std::vector<std::pair<std::string, Lines>> texts;
  texts.emplace_back("train", std::move(corpora.train));
  texts.emplace_back("valid", std::move(*corpora.valid));
  for (auto& test : corpora.tests) texts.push_back(std::move(test));

  for (auto& [name, lines] : texts) {
    drop_blank(lines);
    if (lines.empty()) throw Error(fmt::format("{}: contains no text", origin_of(name, corpora.inputs)));
  }

  say(fmt::format("training the tokenizer on {} lines", with_thousands(std::ssize(texts.front().second))));
  const Tokenizer tokenizer = train_tokenizer(texts.front().second, options.tokenizer, "tokenizer");

  Json info = make_document("data", 1);
  info["task"] = "language-modeling";
  info["tokenizer"] = describe_tokenizers(options.tokenizer, tokenizer, tokenizer, true);
  info["text"] = {{"block", options.block}};
  info["length_limit"] = options.block > 0 ? options.block : options.length_limit;
  info["held_out"] = held_out;

  int64_t dropped = 0;
  std::vector<Sequences> sequences;
  for (auto& [name, lines] : texts) {
    Sequences encoded = encode_lines(tokenizer, lines, name);
    require_tokens(name, encoded, Sequences(encoded.size()), WantedSides::either, corpora.inputs);
    if (options.block > 0) {
      encoded = cut_into_blocks(encoded, options.block, require_special(tokenizer.specials().eos, "end of a line"));
    } else if (name == "train") {
      Lines kept_lines;
      Sequences kept;
      for (size_t i = 0; i < encoded.size(); ++i) {
        if (encoded[i].empty() || std::ssize(encoded[i]) > options.length_limit) continue;
        kept.push_back(std::move(encoded[i]));
        kept_lines.push_back(std::move(lines[i]));
      }
      dropped = std::ssize(encoded) - std::ssize(kept);
      encoded = std::move(kept);
      lines = std::move(kept_lines);
      if (dropped > 0) {
        say(fmt::format("dropped {} training lines that are empty or have more than {} tokens", dropped,
                        options.length_limit));
      }
      if (encoded.empty())
        throw Error(fmt::format("every training line has more than {} tokens", options.length_limit),
                    "increase --length-limit");
    }
    const Sequences none(encoded.size());
    info["splits"][name] = {{"pairs", encoded.size()},
                            {"words", count_words(lines)},
                            {"source", facts_of(none, tokenizer.specials())},
                            {"target", facts_of(encoded, tokenizer.specials())}};
    sequences.push_back(std::move(encoded));
  }
  info["dropped"] = {{"over_length_limit", dropped}};
  info["inputs"] = corpora.inputs;

  write_data_directory(out, info, [&](const fs::path& directory) {
    const fs::path splits = directory / "splits";
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto& [name, lines] = texts[i];
      write_split(splits / (name + ".tokens"), Sequences(sequences[i].size()), sequences[i]);
      if (options.block > 0) continue;
      write_lines(splits / (name + ".source"), Lines(lines.size()));
      write_lines(splits / (name + ".target"), lines);
    }
    tokenizer.save(directory / "tokenizer.model");
  });
  return info;
}

}  // namespace plumb
