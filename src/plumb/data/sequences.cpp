#include "plumb/data/sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/error.h"

namespace plumb {
namespace {

constexpr const char* kShapes =
    R"(expected: {"source": [[ids]], "target": [[ids]]}, {"tokens": [[ids]]}, {"tokens": [[ids]], "labels": [ids]} or )"
    R"({"tokens": [[ids]], "labels": [[id or null]]})";

int32_t token_id(const Json& json, const std::string& place) {
  if (!json.is_number_integer() || json < 0 || json > std::numeric_limits<int32_t>::max())
    throw Error(fmt::format("{} of a batch contains {}, which is not a token id", place, json.dump()));
  return json.get<int32_t>();
}

std::vector<std::vector<int32_t>> sequences(const Json& json, const std::string& key) {
  if (!json.contains(key) || !json[key].is_array()) throw Error(fmt::format("a batch has no array '{}'", key), kShapes);
  std::vector<std::vector<int32_t>> result;
  for (const Json& row : json[key]) {
    const std::string place = fmt::format("{}[{}]", key, result.size());
    if (!row.is_array()) throw Error(fmt::format("{} of a batch is not an array of token ids", place), kShapes);
    std::vector<int32_t>& ids = result.emplace_back();
    for (const Json& id : row) ids.push_back(token_id(id, place));
  }
  return result;
}

void extend(std::vector<int64_t>& to, TokenSpan ids) { to.insert(to.end(), ids.begin(), ids.end()); }

/// Uses the tokens unchanged.
Batch classification_from_json(const Json& json) {
  const auto tokens = sequences(json, "tokens");
  const auto segments = json.contains("segments") ? sequences(json, "segments") : std::vector<std::vector<int32_t>>();
  if (!json["labels"].is_array() || json["labels"].size() != tokens.size()) {
    throw Error(fmt::format("a batch of {} sequences needs the same number of labels", tokens.size()), kShapes);
  }
  Batch batch;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].empty()) throw Error(fmt::format("tokens[{}] of a batch is empty", i));
    extend(batch.source, tokens[i]);
    batch.source_layout.append(std::ssize(tokens[i]));
    batch.labels.push_back(token_id(json["labels"][i], fmt::format("labels[{}]", i)));
    batch.examples.push_back(static_cast<int64_t>(i));
    if (!json.contains("segments")) continue;
    if (segments.size() != tokens.size() || segments[i].size() != tokens[i].size())
      throw Error("a batch needs one segment for each token", kShapes);
    extend(batch.segments, segments[i]);
  }
  return batch;
}

/// Uses the tokens unchanged; those with a null label are not predicted.
Batch masked_from_json(const Json& json) {
  const auto tokens = sequences(json, "tokens");
  if (json["labels"].size() != tokens.size())
    throw Error(fmt::format("a batch of {} sequences needs the same number of lists of labels", tokens.size()),
                kShapes);
  Batch batch;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Json& labels = json["labels"][i];
    if (tokens[i].empty()) throw Error(fmt::format("tokens[{}] of a batch is empty", i));
    if (!labels.is_array() || labels.size() != tokens[i].size())
      throw Error(fmt::format("labels[{}] of a batch needs a label, or null, for each token", i), kShapes);
    for (size_t place = 0; place < labels.size(); ++place) {
      if (labels[place].is_null()) continue;
      batch.predicted_positions.push_back(std::ssize(batch.source) + static_cast<int64_t>(place));
      batch.labels.push_back(token_id(labels[place], fmt::format("labels[{}]", i)));
    }
    extend(batch.source, tokens[i]);
    batch.source_layout.append(std::ssize(tokens[i]));
    batch.examples.push_back(static_cast<int64_t>(i));
  }
  if (batch.labels.empty()) throw Error("no token of a batch has a label", kShapes);
  return batch;
}

/// Whether the labels are lists, with one label per token.
bool labels_tokens(const Json& json) {
  const auto labels = json.find("labels");
  return labels != json.end() && labels->is_array() && !labels->empty() && labels->front().is_array();
}

Batch text_from_json(const Json& json) {
  Batch batch;
  for (const std::vector<int32_t>& ids : sequences(json, "tokens")) {
    const auto example = static_cast<int64_t>(batch.examples.size());
    if (ids.size() < 2) {
      throw Error(fmt::format("tokens[{}] of a batch leaves nothing to predict", example),
                  "position i predicts token i + 1, so at least two tokens are needed");
    }
    extend(batch.target_input, TokenSpan(ids).first(ids.size() - 1));
    extend(batch.labels, TokenSpan(ids).subspan(1));
    batch.target_layout.append(std::ssize(ids) - 1);
    batch.examples.push_back(example);
  }
  return batch;
}

Batch pairs_from_json(const Json& json) {
  const auto sources = sequences(json, "source");
  const auto targets = sequences(json, "target");
  if (sources.size() != targets.size())
    throw Error(fmt::format("a batch has {} sources but {} targets", sources.size(), targets.size()));
  Batch batch;
  for (size_t i = 0; i < sources.size(); ++i)
    append_pair(batch, sources[i], {}, targets[i], {}, static_cast<int64_t>(i));
  return batch;
}

}  // namespace

void append_sentence(Batch& batch, TokenSpan ids, const Specials& specials, int64_t example) {
  batch.target_input.push_back(token_before_text(specials));
  extend(batch.target_input, ids);
  extend(batch.labels, ids);
  batch.labels.push_back(specials.eos);
  batch.target_layout.append(std::ssize(ids) + 1);
  batch.examples.push_back(example);
}

void append_pair(Batch& batch, TokenSpan source, const Specials& source_specials, TokenSpan target,
                 const Specials& target_specials, int64_t example) {
  extend(batch.source, source);
  batch.source.push_back(source_specials.eos);
  batch.source_layout.append(std::ssize(source) + 1);
  append_sentence(batch, target, target_specials, example);
}

void append_running_text(Batch& batch, TokenSpan ids, const Specials& specials, int64_t example) {
  batch.target_input.push_back(token_before_text(specials));
  extend(batch.target_input, ids.first(ids.size() - 1));
  extend(batch.labels, ids);
  batch.target_layout.append(std::ssize(ids));
  batch.examples.push_back(example);
}

void append_labeled(Batch& batch, TokenSpan first, TokenSpan second, const Specials& specials, int64_t label,
                    int64_t example, bool backward) {
  const auto before = std::ssize(batch.source);
  const auto append = [&](TokenSpan ids) {
    extend(batch.source, ids);
    if (backward) std::reverse(batch.source.end() - std::ssize(ids), batch.source.end());
    batch.source.push_back(specials.eos);
  };
  batch.source.push_back(token_before_text(specials));
  append(first);
  if (!second.empty())
    batch.source.insert(batch.source.end(), static_cast<size_t>(specials.separators - 1), specials.eos);
  batch.segments.resize(batch.source.size(), 0);
  if (!second.empty()) {
    append(second);
    batch.segments.resize(batch.source.size(), 1);
  }
  batch.source_layout.append(std::ssize(batch.source) - before);
  batch.labels.push_back(label);
  batch.examples.push_back(example);
}

int64_t labeled_length(int64_t first, int64_t second, const Specials& specials) {
  return 1 + first + 1 + (second > 0 ? specials.separators - 1 + second + 1 : 0);
}

void move_to_target(Batch& batch) {
  batch.target_input = std::exchange(batch.source, {});
  batch.target_layout = std::exchange(batch.source_layout, {});
  batch.segments.clear();
}

Batch batch_from_json(const Json& json) {
  if (json.is_object() && (json.contains("source") || json.contains("target"))) return pairs_from_json(json);
  if (json.is_object() && json.contains("tokens") && labels_tokens(json)) return masked_from_json(json);
  if (json.is_object() && json.contains("tokens"))
    return json.contains("labels") ? classification_from_json(json) : text_from_json(json);
  throw Error("a batch contains neither 'source' and 'target' nor 'tokens'", kShapes);
}

}  // namespace plumb
