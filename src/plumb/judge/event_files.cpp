#include "plumb/judge/event_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
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

/// A value's number, or that of a tensor which holds one.
std::optional<double> scalar_in(const tensorboard::Summary::Value& value) {
  if (value.has_simple_value()) return value.simple_value();
  const tensorboard::Tensor& tensor = value.tensor();
  if (tensor.float_val_size() == 1) return tensor.float_val(0);
  if (tensor.double_val_size() == 1) return tensor.double_val(0);
  const std::string& bytes = tensor.tensor_content();
  const auto as = [&](auto number) {
    std::memcpy(&number, bytes.data(), sizeof(number));
    return std::optional<double>(number);
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

/// Drops the last values of a metric: those from a step on, at which the run went on.
void drop_from(std::vector<RunRecord::Value>& values, double step) {
  while (!values.empty() && values.back().step >= step) values.pop_back();
}

void add_hyperparameters(RunRecord& record, const std::string& content) {
  tensorboard::HyperparameterData data;
  if (!data.ParseFromString(content) || !data.has_session_start_info()) return;
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [key, value] : data.session_start_info().hparams()) found.emplace_back(key, text_of(value));
  std::sort(found.begin(), found.end());  // the file has no order
  record.settings.insert(record.settings.end(), found.begin(), found.end());
}

void add_event(EventFile& part, const tensorboard::Event& event) {
  const auto step = static_cast<double>(event.step());
  if (event.has_session_log() && event.session_log().status() == tensorboard::SessionLog::START) {
    part.restart = std::min(part.restart, step);
    for (auto& [metric, values] : part.record.series) drop_from(values, step);
  }
  for (const tensorboard::Summary::Value& value : event.summary().value()) {
    if (value.metadata().plugin_data().plugin_name() == "hparams")
      add_hyperparameters(part.record, value.metadata().plugin_data().content());
    if (const std::optional<double> number = scalar_in(value))
      part.record.series[value.tag()].push_back({step, *number});
  }
}

EventFile read_part(const fs::path& file, std::string stamp) {
  const MappedFile content(file);
  std::string_view bytes(reinterpret_cast<const char*>(content.bytes().data()), content.bytes().size());
  EventFile part{.stamp = std::move(stamp)};
  while (const std::optional<std::string_view> data = next_record(bytes, file)) {
    tensorboard::Event event;
    if (data->size() > INT_MAX || !event.ParseFromArray(data->data(), static_cast<int>(data->size())))
      throw Error(fmt::format("{}: a record is no event", file.string()));
    add_event(part, event);
  }
  part.begin = part.restart;
  for (const auto& [metric, values] : part.record.series) {
    if (values.empty()) continue;
    part.begin = std::min(part.begin, values.front().step);
    part.end = std::max(part.end, values.back().step);
    if (values.size() > 1) part.stride = std::max(part.stride, values[1].step - values[0].step);
  }
  return part;
}

/// Adds a later part: the run was resumed.
void add_part(RunRecord& record, const EventFile& part) {
  for (auto& [metric, values] : record.series) drop_from(values, part.restart);
  record.settings.insert(record.settings.end(), part.record.settings.begin(), part.record.settings.end());
  record.append(part.record);
}

}  // namespace

void RunRecord::append(const RunRecord& later) {
  for (const auto& [metric, values] : later.series) {
    std::vector<Value>& all = series[metric];
    if (!values.empty()) drop_from(all, values.front().step);
    all.insert(all.end(), values.begin(), values.end());
  }
  state = later.state;
  failed = later.failed;
  ended = later.ended;
}

bool is_event_file(const fs::path& file) { return file.filename().string().find("tfevents") != std::string::npos; }

RunRecord read_event_files(const fs::path& directory, EventFiles& known) {
  std::set<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.is_regular_file() && is_event_file(entry.path())) paths.insert(entry.path());
  }
  std::vector<EventFile> parts;
  for (const fs::path& path : paths) {
    std::string stamp = file_stamp(path);
    EventFile& file = known[path];
    if (stamp.empty() || file.stamp != stamp) file = read_part(path, std::move(stamp));
    parts.push_back(file);
  }
  RunRecord record{.name = directory.string(), .place = directory};
  // Names begin with the time. But a clock may go back: a part that leaves a gap waits for one that begins earlier.
  for (double end = -EventFile::kNever, stride = 0; !parts.empty();) {
    const double first = std::min_element(parts.begin(), parts.end(), [](const EventFile& a, const EventFile& b) {
                           return a.begin < b.begin;
                         })->begin;
    const auto next = std::find_if(parts.begin(), parts.end(), [&](const EventFile& part) {
      return part.begin <= std::max(first, end + std::max(stride, part.stride));
    });
    end = std::max(end, next->end);
    stride = std::max(stride, next->stride);
    add_part(record, *next);
    parts.erase(next);
  }
  return record;
}

}  // namespace plumb
