#include "plumb/report/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include "plumb/base/descriptor.h"
#include "plumb/base/error.h"
#include "plumb/base/machine.h"
#include "plumb/base/parse_number.h"
#include "plumb/report/crc32c.h"
#include "plumb/report/tensorboard.pb.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

template <typename Integer>
std::string little_endian(Integer value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(value); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFFU);
  return bytes;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// Creates a file of its own. TensorBoard reads those of a directory in order of name, so the time comes first; it is
/// later than those of all other files, since a clock may go back.
fs::path created_in(const fs::path& directory, double now) {
  constexpr std::string_view kBegin = "events.out.tfevents.";
  auto time = static_cast<int64_t>(now);
  std::error_code failure;
  for (const auto& other : fs::directory_iterator(directory, failure)) {
    const std::string name = other.path().filename().string();
    if (!name.starts_with(kBegin)) continue;
    time = std::max(time, parse_number<int64_t>(std::string_view(name).substr(kBegin.size(), 10)).value_or(0) + 1);
  }
  for (int attempt = 0;; ++attempt) {
    fs::path name = directory / fmt::format("{}{:010}.{}.{}.{}", kBegin, time, host_name(), ::getpid(), attempt);
    if (Descriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)).is_open()) return name;
    if (errno == EEXIST) continue;
    throw Error(fmt::format("{}: cannot be written: {}", name.string(), std::strerror(errno)),
                "check the directory's permissions");
  }
}

}  // namespace

EventWriter::EventWriter(const fs::path& directory) {
  const double time = now();
  std::error_code failure;
  fs::create_directories(directory, failure);
  path_ = created_in(directory, time);
  tensorboard::Event event;
  event.set_wall_time(time);
  event.set_file_version("brain.Event:2");
  add(event.SerializeAsString());
  flush();
}

EventWriter::~EventWriter() {
  try {
    flush();
  } catch (const Error&) {
  }
}

void EventWriter::start(int64_t step, double wall_time) {
  tensorboard::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  add(event.SerializeAsString());
}

void EventWriter::scalar(const std::string& tag, int64_t step, double value, double wall_time) {
  tensorboard::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  tensorboard::Summary::Value* point = event.mutable_summary()->add_value();
  point->set_tag(tag);
  point->set_simple_value(static_cast<float>(value));
  add(event.SerializeAsString());
}

void EventWriter::hyperparameters(const std::vector<std::pair<std::string, std::string>>& settings, double wall_time) {
  tensorboard::HyperparameterData data;
  auto& values = *data.mutable_session_start_info()->mutable_hparams();
  for (const auto& [name, text] : settings) {
    tensorboard::HyperparameterValue& value = values[name];
    if (text == "true" || text == "false") {
      value.set_bool_value(text == "true");
    } else if (const auto number = parse_number<double>(text)) {
      value.set_number_value(*number);
    } else {
      value.set_string_value(text);
    }
  }
  tensorboard::Event event;
  event.set_wall_time(wall_time);
  tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
  value->set_tag("_hparams_/session_start_info");
  value->mutable_metadata()->mutable_plugin_data()->set_plugin_name("hparams");
  value->mutable_metadata()->mutable_plugin_data()->set_content(data.SerializeAsString());
  add(event.SerializeAsString());
}

void EventWriter::add(const std::string& event) {
  const std::string length = little_endian(static_cast<uint64_t>(event.size()));
  pending_ += length + little_endian(masked_crc32c(length)) + event + little_endian(masked_crc32c(event));
}

void EventWriter::flush() {
  if (pending_.empty()) return;
  const Descriptor out(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!out.is_open() || !out.write(pending_)) throw write_failure(path_.string());
  pending_.clear();
}

}  // namespace plumb
