#include "plumb/data/prepare.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/data/prepare_parts.h"
#include "plumb/data/split.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

struct Tokenizers {
  Tokenizer source, target;
};

Tokenizers train_tokenizers(const ParallelText& text, const TokenizerOptions& options, bool joint) {
  if (!joint) {
    return {train_tokenizer(text.sources, options, "source tokenizer"),
            train_tokenizer(text.targets, options, "target tokenizer")};
  }
  std::vector<std::string> both = text.sources;
  both.insert(both.end(), text.targets.begin(), text.targets.end());
  const Tokenizer tokenizer = train_tokenizer(both, options, "joint tokenizer");
  return {tokenizer, tokenizer};
}

struct EncodedSplit {
  ParallelText text;
  Sequences sources, targets;
};

// Drops the pairs for which `reason` returns one, and counts them by reason.
template <typename Reason>
void drop(EncodedSplit& split, Json& dropped, const Reason& reason) {
  EncodedSplit kept;
  for (size_t i = 0; i < split.text.size(); ++i) {
    const char* why = reason(split.sources[i], split.targets[i]);
    if (why != nullptr) {
      dropped[why] = dropped[why].get<int64_t>() + 1;
      continue;
    }
    kept.text.append(std::move(split.text.sources[i]), std::move(split.text.targets[i]));
    kept.sources.push_back(std::move(split.sources[i]));
    kept.targets.push_back(std::move(split.targets[i]));
  }
  split = std::move(kept);
}

Json facts(const EncodedSplit& split, const Tokenizers& tokenizers) {
  Json result;
  result["pairs"] = split.text.size();
  result["source"] = facts_of(split.sources, tokenizers.source.specials());
  result["target"] = facts_of(split.targets, tokenizers.target.specials());
  return result;
}

void write_encoded(const fs::path& splits, const std::string& name, const EncodedSplit& split) {
  write_split(splits / (name + ".tokens"), split.sources, split.targets);
  write_lines(splits / (name + ".source"), split.text.sources);
  write_lines(splits / (name + ".target"), split.text.targets);
}

void check_options(const PrepareOptions& options) {
  if (options.length_limit < 1) {
    throw Error(fmt::format("the length limit must be at least 1, not {}", options.length_limit));
  }
  if (options.valid_size < 0) throw Error(fmt::format("--valid-size must be at least 0, not {}", options.valid_size));
}

Json describe_input(const CorpusFiles& files) {
  Json list = Json::array();
  for (const fs::path& file : {files.source, files.target}) {
    if (!file.empty()) list.push_back(describe_file(file));
  }
  return list;
}

// Moves the validation pairs out of `train`.
ParallelText take_valid(ParallelText& train, const PrepareOptions& options) {
  const auto pairs = static_cast<int64_t>(train.size());
  const int64_t wanted = options.valid_size > 0 ? options.valid_size : std::clamp<int64_t>(pairs / 20, 1, 1000);
  if (wanted >= pairs) {
    throw Error(fmt::format("{} pairs cannot be held out of {}", with_thousands(wanted), with_thousands(pairs)),
                "give a smaller --valid-size, or validation files with --valid");
  }
  auto [rest, held] = hold_out(train, wanted, options.seed);
  if (held.size() == 0) {
    throw Error(
        fmt::format("no validation pairs can be held out: every target sentence occurs in more than {} pairs", wanted),
        "give a larger --valid-size, or validation files with --valid");
  }
  train = std::move(rest);
  return std::move(held);
}

}  // namespace

Json prepare_data(const PrepareOptions& options, const fs::path& out) {
  check_output_directory(out, "data");
  check_options(options);
  std::vector<std::string> names;
  for (const auto& [name, files] : options.tests) names.push_back(name);
  check_test_names(names);
  Corpora corpora;
  const auto read = [&](const std::string& name, const CorpusFiles& files) {
    ParallelText text = read_parallel_text(files);
    corpora.inputs[name] = describe_input(files);
    return text;
  };
  corpora.train = read("train", options.train);
  if (options.valid) corpora.valid = read("valid", *options.valid);
  for (const auto& [name, files] : options.tests) corpora.tests.emplace_back(name, read(name, files));
  return prepare_corpora(std::move(corpora), options, out);
}

Json prepare_corpora(Corpora corpora, const PrepareOptions& options, const fs::path& out) {
  check_output_directory(out, "data");
  check_options(options);
  Json dropped = {{"empty", drop_empty(corpora.train)}, {"over_length_limit", 0}};
  if (corpora.train.size() == 0)
    throw Error(fmt::format("{}: contains no pair with text on both sides", origin_of("train", corpora.inputs)));
  const bool held_out = !corpora.valid;
  if (held_out) corpora.valid = take_valid(corpora.train, options);

  say(fmt::format("training the tokenizer on {} pairs", with_thousands(std::ssize(corpora.train.sources))));
  const Tokenizers tokenizers = train_tokenizers(corpora.train, options.tokenizer, options.joint);

  std::vector<std::pair<std::string, EncodedSplit>> splits;
  const auto encode_split = [&](const std::string& name, ParallelText text) {
    EncodedSplit split;
    split.sources = encode_lines(tokenizers.source, text.sources, name + " source");
    split.targets = encode_lines(tokenizers.target, text.targets, name + " target");
    require_tokens(name, split.sources, split.targets, WantedSides::both, corpora.inputs);
    split.text = std::move(text);
    splits.emplace_back(name, std::move(split));
  };
  encode_split("train", std::move(corpora.train));
  drop(splits.front().second, dropped, [&](const auto& s, const auto& t) -> const char* {
    if (s.empty() || t.empty()) return "empty";  // only characters that normalization removes
    return std::max(std::ssize(s), std::ssize(t)) > options.length_limit ? "over_length_limit" : nullptr;
  });
  if (dropped["empty"] > 0) say(fmt::format("dropped {} training pairs with an empty side", dropped["empty"].dump()));
  if (dropped["over_length_limit"] > 0) {
    say(fmt::format("dropped {} training pairs with more than {} tokens on a side", dropped["over_length_limit"].dump(),
                    options.length_limit));
  }
  if (splits.front().second.text.size() == 0) {
    throw Error(fmt::format("every training pair has more than {} tokens on a side", options.length_limit),
                "increase --length-limit");
  }
  encode_split("valid", std::move(*corpora.valid));
  for (auto& [name, text] : corpora.tests) encode_split(name, std::move(text));

  Json info = make_document("data", 1);
  info["task"] = "translation";
  if (!options.source_language.empty()) info["source_language"] = options.source_language;
  if (!options.target_language.empty()) info["target_language"] = options.target_language;
  info["tokenizer"] = describe_tokenizers(options.tokenizer, tokenizers.source, tokenizers.target, options.joint);
  info["length_limit"] = options.length_limit;
  info["held_out"] = held_out;
  info["seed"] = options.seed;
  info["dropped"] = dropped;
  for (const auto& [name, split] : splits) info["splits"][name] = facts(split, tokenizers);
  info["inputs"] = corpora.inputs;

  write_data_directory(out, info, [&](const fs::path& directory) {
    for (const auto& [name, split] : splits) write_encoded(directory / "splits", name, split);
    if (options.joint) {
      tokenizers.source.save(directory / "tokenizer.model");
    } else {
      tokenizers.source.save(directory / "source.model");
      tokenizers.target.save(directory / "target.model");
    }
  });
  return info;
}

}  // namespace plumb
