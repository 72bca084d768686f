#include "events.h"

#include <chrono>

namespace plumb::app {

void EventFiles::write(const std::filesystem::path& run, const TrainPoint& point) {
  std::unique_ptr<EventWriter>& writer = writers_[run.string()];
  if (!writer) writer = std::make_unique<EventWriter>(run);
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto scalar = [&](const std::string& tag, double value) { writer->scalar(tag, point.step, value, now); };
  scalar("train/loss", point.loss);
  scalar("train/nll", point.nll);
  scalar("train/learning_rate", point.learning_rate);
  if (point.gradient_norm) scalar("train/gradient_norm", *point.gradient_norm);
  scalar("train/tokens_per_second", point.tokens_per_second);
  for (const auto& [name, value] : point.metrics)
    scalar("valid/" + (name.starts_with("valid_") ? name.substr(6) : name), value);
  writer->flush();
}

}  // namespace plumb::app
