#include "plumb/base/batch.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "plumb/base/error.h"

namespace plumb {
namespace {

std::vector<std::vector<int32_t>> sequences(const Json& json, const std::string& side) {
  if (!json.is_object() || !json.contains(side) || !json[side].is_array()) {
    throw Error(fmt::format("a batch has no array '{}'", side), R"(wanted: {"source": [[ids]], "target": [[ids]]})");
  }
  std::vector<std::vector<int32_t>> result;
  for (const Json& row : json[side]) {
    const size_t index = result.size();
    if (!row.is_array()) throw Error(fmt::format("{}[{}] of a batch is no array of token ids", side, index));
    std::vector<int32_t> ids;
    for (const Json& id : row) {
      if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<int32_t>::max()) {
        throw Error(fmt::format("{}[{}] of a batch holds {}, which is no token id", side, index, id.dump()));
      }
      ids.push_back(id.get<int32_t>());
    }
    result.push_back(std::move(ids));
  }
  return result;
}

}  // namespace

void append(Batch& batch, std::span<const int32_t> source, std::span<const int32_t> target, int64_t example) {
  batch.source.insert(batch.source.end(), source.begin(), source.end());
  batch.source.push_back(kEos);
  batch.target_input.push_back(kBos);
  batch.target_input.insert(batch.target_input.end(), target.begin(), target.end());
  batch.labels.insert(batch.labels.end(), target.begin(), target.end());
  batch.labels.push_back(kEos);
  batch.source_layout.append(static_cast<int64_t>(source.size()) + 1);
  batch.target_layout.append(static_cast<int64_t>(target.size()) + 1);
  batch.examples.push_back(example);
}

void append_running_text(Batch& batch, std::span<const int32_t> ids, int64_t example) {
  batch.source.push_back(kEos);
  batch.target_input.push_back(kBos);
  batch.target_input.insert(batch.target_input.end(), ids.begin(), ids.end() - 1);
  batch.labels.insert(batch.labels.end(), ids.begin(), ids.end());
  batch.source_layout.append(1);
  batch.target_layout.append(static_cast<int64_t>(ids.size()));
  batch.examples.push_back(example);
}

Batch batch_from_json(const Json& json) {
  const auto sources = sequences(json, "source");
  const auto targets = sequences(json, "target");
  if (sources.size() != targets.size()) {
    throw Error(fmt::format("a batch has {} sources but {} targets", sources.size(), targets.size()));
  }
  Batch batch;
  for (size_t i = 0; i < sources.size(); ++i) append(batch, sources[i], targets[i], static_cast<int64_t>(i));
  return batch;
}

}  // namespace plumb
