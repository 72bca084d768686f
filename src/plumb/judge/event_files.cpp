#include "plumb/judge/event_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/report/crc32c.h"
#include "plumb/report/tensorboard.pb.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

template <typename Integer>
Integer little_endian(std::string_view bytes) {
  Integer value = 0;
  for (size_t i = 0; i < sizeof(Integer); ++i)
    value |= static_cast<Integer>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

/// Takes the first record off `bytes`; nothing if it is cut off. Throws Error on a wrong checksum.
std::optional<std::string_view> next_record(std::string_view& bytes, const fs::path& file) {
  constexpr size_t kHead = 12;  // length and its checksum
  constexpr size_t kTail = 4;   // checksum of the data
  if (bytes.size() < kHead) return {};
  const auto length = little_endian<uint64_t>(bytes);
  const bool sound = little_endian<uint32_t>(bytes.substr(8)) == masked_crc32c(bytes.substr(0, 8));
  if (sound && (length > bytes.size() || bytes.size() - length < kHead + kTail)) return {};
  if (!sound || little_endian<uint32_t>(bytes.substr(kHead + length)) != masked_crc32c(bytes.substr(kHead, length)))
    throw Error(fmt::format("{}: a record has a wrong checksum", file.string()),
                "the file is damaged, or is none of TensorBoard's");
  const std::string_view data = bytes.substr(kHead, length);
  bytes.remove_prefix(kHead + length + kTail);
  return data;
}

/// The number of a tensor that holds one.
std::optional<double> scalar_in(const tensorboard::Tensor& tensor) {
  if (tensor.float_val_size() == 1) return tensor.float_val(0);
  if (tensor.double_val_size() == 1) return tensor.double_val(0);
  const std::string& bytes = tensor.tensor_content();
  const auto as = [&](auto value) {
    std::memcpy(&value, bytes.data(), sizeof(value));
    return std::optional<double>(value);
  };
  constexpr int kFloat = 1;
  constexpr int kDouble = 2;
  if (tensor.dtype() == kFloat && bytes.size() == sizeof(float)) return as(0.0F);
  if (tensor.dtype() == kDouble && bytes.size() == sizeof(double)) return as(0.0);
  return {};
}

std::string text_of(const tensorboard::HyperparameterValue& value) {
  switch (value.kind_case()) {
    case tensorboard::HyperparameterValue::kNumberValue:
      return fmt::format("{}", value.number_value());
    case tensorboard::HyperparameterValue::kStringValue:
      return value.string_value();
    case tensorboard::HyperparameterValue::kBoolValue:
      return value.bool_value() ? "true" : "false";
    default:
      return {};
  }
}

void add_hyperparameters(RunRecord& record, const std::string& content) {
  tensorboard::HyperparameterData data;
  if (!data.ParseFromString(content) || !data.has_session_start_info()) return;
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [key, value] : data.session_start_info().hparams()) found.emplace_back(key, text_of(value));
  std::sort(found.begin(), found.end());  // the file has no order
  record.settings.insert(record.settings.end(), found.begin(), found.end());
}

void restart(RunRecord& record, double step) {
  for (auto& [metric, values] : record.series)
    std::erase_if(values, [&](const RunRecord::Value& value) { return value.step >= step; });
}

/// `begun`: the metrics of this file so far. The first value of one replaces what earlier files have from that step on:
/// a run that was resumed.
void add_event(RunRecord& record, const tensorboard::Event& event, std::set<std::string>& begun) {
  const auto step = static_cast<double>(event.step());
  if (event.has_session_log() && event.session_log().status() == tensorboard::SessionLog::START) restart(record, step);
  for (const tensorboard::Summary::Value& value : event.summary().value()) {
    if (value.metadata().plugin_data().plugin_name() == "hparams")
      add_hyperparameters(record, value.metadata().plugin_data().content());
    std::optional<double> number;
    if (value.has_simple_value()) number = value.simple_value();
    if (value.has_tensor()) number = scalar_in(value.tensor());
    if (!number) continue;
    std::vector<RunRecord::Value>& values = record.series[value.tag()];
    if (begun.insert(value.tag()).second)
      std::erase_if(values, [&](const RunRecord::Value& one) { return one.step >= step; });
    values.push_back({step, *number});
  }
}

}  // namespace

bool is_event_file(const fs::path& file) { return file.filename().string().find("tfevents") != std::string::npos; }

RunRecord read_event_files(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.is_regular_file() && is_event_file(entry.path())) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  RunRecord record{.name = directory.string()};
  for (const fs::path& file : files) {
    const std::string content = read_file(file);
    std::string_view bytes = content;
    std::set<std::string> begun;
    while (const std::optional<std::string_view> data = next_record(bytes, file)) {
      tensorboard::Event event;
      if (!event.ParseFromArray(data->data(), static_cast<int>(data->size())))
        throw Error(fmt::format("{}: a record is no event", file.string()));
      add_event(record, event, begun);
    }
  }
  return record;
}

}  // namespace plumb
