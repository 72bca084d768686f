#include "plumb/study/transfer_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/text.h"
#include "plumb/data/prepare_labels.h"
#include "plumb/data/prepare_parts.h"
#include "plumb/data/prepare_text.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

LabeledText labeled_split(const DataDirectory& data, const std::string& split) {
  const std::vector<std::string> first = data.raw_source(split), second = data.raw_target(split);
  const std::vector<int32_t> labels = data.labels_of(split);
  LabeledText text{data.path(), {}};
  for (size_t i = 0; i < first.size(); ++i) {
    text.examples.push_back(
        {data.labels()[static_cast<size_t>(labels[i])], first[i], second[i], static_cast<int64_t>(i) + 1});
  }
  return text;
}

bool has_pairs(const LabeledText& text) {
  return std::any_of(text.examples.begin(), text.examples.end(),
                     [](const LabeledExample& example) { return !example.second.empty(); });
}

/// Text as a column, with tabs replaced by spaces.
std::string as_column(std::string text) {
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

/// Lines of label, TAB, text; with `pairs`, the second sentence follows in a third column.
void write_labeled_text(const fs::path& file, const LabeledText& text, bool pairs) {
  write_file_atomic(file, [&](std::ostream& out) {
    for (const LabeledExample& example : text.examples) {
      out << example.label << '\t' << as_column(example.first);
      if (pairs) out << '\t' << as_column(example.second);
      out << '\n';
    }
  });
}

/// The nonempty sentences, as lines of running text.
std::vector<std::string> sentences_of(const LabeledText& text) {
  std::vector<std::string> lines;
  for (const LabeledExample& example : text.examples) {
    if (!example.first.empty()) lines.push_back(example.first);
    if (!example.second.empty()) lines.push_back(example.second);
  }
  return lines;
}

}  // namespace

TransferData::TransferData(StudyContext& context, const TransferStudy& part)
    : context_(context), length_limit_(part.length_limit) {
  if (context.data.task() != "language-modeling") {
    throw Error("[transfer] pretrains language models, and [data] has no running text",
                "set data.block, such as 64, or data.directory made by `plumb data text`");
  }
  if (!part.labels.empty()) {
    const DataDirectory data = DataDirectory::open(part.labels);
    if (data.labels().empty())
      throw Error(fmt::format("transfer.labels: {} has no labels", part.labels), "make it with `plumb data labels`");
    train_ = labeled_split(data, "train");
    (void)drop_empty(train_);
    valid_ = labeled_split(data, "valid");
    origin_ = data.info();
    origin_.erase("command");
    return;
  }
  train_ = read_labeled_text(part.train, {});
  (void)drop_empty(train_);  // before drawing or holding out
  origin_ = {{"train", describe_file(part.train)}};
  if (part.valid.empty()) {
    valid_ = hold_out(train_, held_out_of(size()), static_cast<uint64_t>(context.config.study.seed));
    origin_["seed"] = context.config.study.seed;
  } else {
    valid_ = read_labeled_text(part.valid, {});
    origin_["valid"] = describe_file(part.valid);
  }
}

StageData TransferData::made(const std::string& name, Json settings,
                             const std::function<Json(const fs::path&)>& make) const {
  const fs::path directory = context_.out / "transfer" / name;
  settings["labels"] = origin_;
  settings["general"] = context_.data_settings;
  settings["length_limit"] = length_limit_;
  MeasurementRequest request;
  request.name = kTransferDataName + name;
  request.label = "data";
  request.settings = settings;
  request.measure = [&] {
    fs::create_directories(directory.parent_path());
    return make(directory);
  };
  const bool lost = !fs::exists(directory / "data.json") && context_.measurements.has(request);
  const Json info = lost ? request.measure() : context_.measurements.get(request);
  const Json& train = info.at("splits").at("train");
  const auto tokens = [&](const char* side) { return train.at(side).at("tokens").get<int64_t>(); };
  return {directory, std::move(settings), tokens("source") + tokens("target")};
}

StageData TransferData::text() const {
  TextOptions options;
  options.tokenizer_from = context_.data.path();
  options.block = context_.data.info().value("text", Json::object()).value("block", int64_t{0});
  options.length_limit = length_limit_;
  return made("text", {{"block", options.block}}, [&](const fs::path& directory) {
    TextCorpora corpora;
    corpora.train = sentences_of(train_);
    corpora.valid = sentences_of(valid_);
    return prepare_text_lines(std::move(corpora), options, directory);
  });
}

StageData TransferData::labels(int64_t examples, int64_t seed) const {
  if (examples >= size()) {
    throw Error(fmt::format("transfer.examples contains {}, of {} training examples", with_thousands(examples),
                            with_thousands(size())),
                "all of them are always measured; list smaller numbers");
  }
  if (const auto kinds = std::ssize(label_set(train_)); examples > 0 && examples < kinds) {
    throw Error(fmt::format("transfer.examples contains {}, but there are {} labels", examples, kinds),
                "list numbers that leave at least one example of every label");
  }
  const std::string name = examples == 0 ? "labels" : fmt::format("labels-{}-seed{}", examples, seed);
  Json settings = {{"examples", examples}};
  if (examples > 0) settings["seed"] = seed;
  return made(name, std::move(settings), [&](const fs::path& directory) {
    LabeledText train = train_;
    // hold_out leaves at least one example of every label.
    if (examples > 0) hold_out(train, size() - examples, static_cast<uint64_t>(seed));
    const bool pairs = has_pairs(train_) || has_pairs(valid_);
    LabelOptions options;
    options.train = directory.parent_path() / (name + ".train.tsv");
    options.valid = directory.parent_path() / (name + ".valid.tsv");
    write_labeled_text(options.train, train, pairs);
    write_labeled_text(*options.valid, valid_, pairs);
    if (pairs) options.format.text = {"2", "3"};
    options.tokenizer_from = context_.data.path();
    options.length_limit = length_limit_;
    return prepare_labels(options, directory);
  });
}

}  // namespace plumb
