#include "events.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "plumb/base/input.h"
#include "plumb/base/toml_text.h"

namespace plumb::app {
namespace {

/// Seconds since 1970.
double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Writes every number of a JSON object, including nested objects.
void write_numbers(EventWriter& writer, const std::string& tag, int64_t step, const Json& value, double now) {
  if (value.is_number()) writer.scalar(tag, step, value.get<double>(), now);
  if (!value.is_object()) return;
  for (const auto& [key, inner] : value.items())
    write_numbers(writer, fmt::format("{}/{}", tag, key), step, inner, now);
}

/// The keys of a run's configuration, without the quotes of texts.
std::vector<std::pair<std::string, std::string>> settings_of(const std::filesystem::path& run) {
  const std::filesystem::path file = run / "config.toml";
  if (!std::filesystem::exists(file)) return {};
  std::vector<std::pair<std::string, std::string>> settings = key_values(read_file(file));
  for (auto& [key, value] : settings) {
    if (value.size() > 1 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
  }
  return settings;
}

}  // namespace

EventWriter& EventFiles::writer_of(const std::filesystem::path& run, int64_t step) {
  std::unique_ptr<EventWriter>& writer = writers_[run.string()];
  if (!writer) {
    writer = std::make_unique<EventWriter>(run);
    writer->start(step, wall_time());
    writer->hyperparameters(settings_of(run), wall_time());
  }
  return *writer;
}

void EventFiles::go_back(const std::filesystem::path& run, int64_t step) {
  EventWriter& writer = writer_of(run, step + 1);
  writer.start(step + 1, wall_time());  // from this step on, TensorBoard drops earlier points
  writer.flush();
}

void EventFiles::write(const std::filesystem::path& run, const WatchRecord& record) {
  EventWriter& writer = writer_of(run, record.step);
  write_numbers(writer, "watch", record.step, to_json(record).at("watch"), wall_time());
  writer.flush();
}

void EventFiles::write(const std::filesystem::path& run, const TrainPoint& point) {
  EventWriter& writer = writer_of(run, point.step);
  const double now = wall_time();
  const auto scalar = [&](const std::string& tag, double value) { writer.scalar(tag, point.step, value, now); };
  scalar("train/loss", point.loss);
  scalar("train/nll", point.nll);
  scalar("train/learning_rate", point.learning_rate);
  if (point.gradient_norm) scalar("train/gradient_norm", *point.gradient_norm);
  scalar("train/tokens_per_second", point.tokens_per_second);
  scalar("train/epoch", static_cast<double>(point.epoch));
  scalar("train/tokens", static_cast<double>(point.tokens));
  if (point.exchange_seconds) scalar("train/exchange_seconds", *point.exchange_seconds);
  if (point.exchange_bytes) scalar("train/exchange_bytes", *point.exchange_bytes);
  if (point.data_seconds) scalar("train/data_seconds", *point.data_seconds);
  scalar("train/perplexity", std::exp(point.nll));
  if (point.ceiling_fraction) scalar("train/ceiling_fraction", *point.ceiling_fraction);
  if (const auto nll = point.metrics.get("valid_nll"); nll && !point.metrics.get("perplexity"))
    scalar("valid/perplexity", std::exp(*nll));
  if (point.skipped_steps) scalar("train/skipped_steps", *point.skipped_steps);
  for (const auto& [name, value] : point.metrics)
    scalar("valid/" + (name.starts_with("valid_") ? name.substr(6) : name), value);
  writer.flush();
}

}  // namespace plumb::app
