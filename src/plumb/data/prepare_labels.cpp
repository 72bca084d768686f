#include "plumb/data/prepare_labels.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/data/directory.h"
#include "plumb/data/prepare_parts.h"
#include "plumb/data/split.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

struct LabeledSplit {
  std::string name;
  LabeledText text;
  Sequences first, second;
  int64_t cut = 0;  // examples that were truncated
};

std::vector<std::string> column_of(const LabeledText& text, std::string LabeledExample::*member) {
  std::vector<std::string> column;
  column.reserve(text.examples.size());
  for (const LabeledExample& example : text.examples) column.push_back(example.*member);
  return column;
}

/// Throws Error if a classifier cannot learn from these labels.
void check_label_set(const std::vector<std::string>& labels, const LabeledText& train) {
  if (labels.size() < 2) {
    throw Error(fmt::format("{}: every example has the label '{}'", train.file.string(), labels.front()),
                "a classifier needs at least two labels; --label selects their column");
  }
  if (labels.size() > 100 && labels.size() * 2 > train.examples.size()) {
    throw Error(fmt::format("{}: {} different labels in {} examples", train.file.string(),
                            with_thousands(std::ssize(labels)), with_thousands(std::ssize(train.examples))),
                "check that --label and --text select the right columns");
  }
}

/// Tells if the first line looks as if it named the columns.
void note_header(const LabeledText& train, const LabeledTextFormat& format) {
  const LabeledExample& first = train.examples.front();
  const bool again = std::any_of(train.examples.begin() + 1, train.examples.end(),
                                 [&](const LabeledExample& example) { return example.label == first.label; });
  if (format.header || first.line != 1 || again) return;
  say(fmt::format("{}: only the first line has the label '{}'; if it names the columns, pass --header",
                  train.file.string(), first.label));
}

LabeledText take_valid(LabeledText& train, const LabelOptions& options) {
  return hold_out(train, number_to_hold_out(options.valid_size, std::ssize(train.examples), "example"), options.seed);
}

DescribedTokenizer learn_tokenizer(const LabeledText& train, const TokenizerOptions& options) {
  const int64_t examples = std::ssize(train.examples);
  const auto sampled = [&](int64_t i) { return in_sample(i, examples, options.sample); };
  std::vector<std::string> lines;
  int64_t i = 0;
  for (const LabeledExample& example : train.examples) {
    if (sampled(i++)) lines.push_back(example.first);
  }
  i = 0;
  for (const LabeledExample& example : train.examples) {
    if (sampled(i++) && !example.second.empty()) lines.push_back(example.second);
  }
  say(fmt::format("training the tokenizer on {}", describe_sample(options, examples, "examples")));
  Tokenizer tokenizer = train_tokenizer(lines, options, "tokenizer");
  Json description = describe_tokenizers(options, tokenizer, tokenizer, true, examples);
  return {std::move(tokenizer), std::move(description)};
}

LabeledSplit encode(const std::string& name, LabeledText text, const Tokenizer& tokenizer, int64_t limit) {
  LabeledSplit split{name, std::move(text), {}, {}};
  split.first = encode_lines(tokenizer, column_of(split.text, &LabeledExample::first), name);
  split.second = encode_lines(tokenizer, column_of(split.text, &LabeledExample::second), name);
  for (size_t i = 0; i < split.first.size(); ++i) split.cut += cut_to_limit(split.first[i], split.second[i], limit);
  return split;
}

Json facts(const LabeledSplit& split, const std::vector<std::string>& labels, const Specials& specials) {
  Json counts = Json::object();
  for (const std::string& label : labels) counts[label] = 0;
  for (const LabeledExample& example : split.text.examples) {
    counts[example.label] = counts[example.label].get<int64_t>() + 1;
  }
  return {{"pairs", split.text.examples.size()},
          {"cut", split.cut},
          {"labels", counts},
          {"source", facts_of(split.first, specials)},
          {"target", facts_of(split.second, specials)}};
}

void write_labeled(const fs::path& splits, const LabeledSplit& split) {
  write_split(splits / (split.name + ".tokens"), split.first, split.second);
  write_lines(splits / (split.name + ".source"), column_of(split.text, &LabeledExample::first));
  write_lines(splits / (split.name + ".target"), column_of(split.text, &LabeledExample::second));
  write_lines(splits / (split.name + ".labels"), column_of(split.text, &LabeledExample::label));
}

}  // namespace

bool cut_to_limit(std::vector<int32_t>& first, std::vector<int32_t>& second, int64_t limit) {
  const int64_t surplus = std::ssize(first) + std::ssize(second) - limit;
  if (surplus <= 0) return false;
  // The longer one loses tokens down to the other's length; the rest is shared, and the second loses the odd token.
  const int64_t difference = std::ssize(first) - std::ssize(second);
  const int64_t alone = std::min(surplus, std::abs(difference));
  const int64_t shared = surplus - alone;
  first.resize(first.size() - static_cast<size_t>((difference > 0 ? alone : 0) + shared / 2));
  second.resize(second.size() - static_cast<size_t>((difference < 0 ? alone : 0) + (shared + 1) / 2));
  return true;
}

Json prepare_labels(const LabelOptions& options, const fs::path& out) {
  check_data_output(out, "classification");
  check_options(options.length_limit, options.valid_size, names_of(options.tests));
  Json inputs;
  std::vector<std::pair<std::string, LabeledText>> texts;
  const auto read = [&](const std::string& name, const fs::path& file) {
    LabeledText text = read_labeled_text(file, options.format);
    inputs[name] = Json::array({describe_file(file)});
    return text;
  };
  LabeledText train = read("train", options.train);
  const int64_t dropped = drop_empty(train);
  if (dropped > 0) say(fmt::format("dropped {} training examples without text", with_thousands(dropped)));
  const std::vector<std::string> labels = label_set(train);
  check_label_set(labels, train);
  note_header(train, options.format);
  LabeledText valid = options.valid ? read("valid", *options.valid) : take_valid(train, options);
  texts.emplace_back("train", std::move(train));
  texts.emplace_back("valid", std::move(valid));
  for (const auto& [name, file] : options.tests) texts.emplace_back(name, read(name, file));
  for (const auto& [name, text] : texts) check_labels(text, labels);

  const DescribedTokenizer described = options.tokenizer_from.empty()
                                           ? learn_tokenizer(texts.front().second, options.tokenizer)
                                           : borrow_tokenizer(options.tokenizer_from);
  const Tokenizer& tokenizer = described.tokenizer;
  std::vector<LabeledSplit> splits;
  for (auto& [name, text] : texts) {
    const LabeledSplit& split = splits.emplace_back(encode(name, std::move(text), tokenizer, options.length_limit));
    const auto has_tokens = [](const Sequences& side) {
      return std::any_of(side.begin(), side.end(), [](const std::vector<int32_t>& ids) { return !ids.empty(); });
    };
    require_usable(has_tokens(split.first) || has_tokens(split.second), name, WantedSides::either, inputs);
    if (split.cut > 0) {
      say(fmt::format("{}: truncated {} examples to {} tokens", name, with_thousands(split.cut), options.length_limit));
    }
  }

  Json info = make_document("data", 1);
  info["task"] = "classification";
  info["labels"] = labels;
  info["tokenizer"] = described.description;
  info["length_limit"] = options.length_limit;
  info["held_out"] = !options.valid.has_value();
  info["seed"] = options.seed;
  info["dropped"] = {{"empty", dropped}};
  for (const LabeledSplit& split : splits) info["splits"][split.name] = facts(split, labels, tokenizer.specials());
  info["inputs"] = inputs;
  write_data_directory(out, info, [&](const fs::path& directory) {
    for (const LabeledSplit& split : splits) write_labeled(directory / "splits", split);
    tokenizer.save(directory / "tokenizer.model");
  });
  return info;
}

}  // namespace plumb
