#include "events.h"

#include <chrono>

namespace plumb::app {

void EventFiles::write(const std::filesystem::path& run, const TrainPoint& point) {
  std::unique_ptr<EventWriter>& writer = writers_[run.string()];
  if (!writer) writer = std::make_unique<EventWriter>(run);
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto scalar = [&](const char* tag, double value) { writer->scalar(tag, point.step, value, now); };
  scalar("train/loss", point.loss);
  scalar("train/nll", point.nll);
  scalar("train/learning_rate", point.learning_rate);
  scalar("train/gradient_norm", point.gradient_norm);
  scalar("train/tokens_per_second", point.tokens_per_second);
  if (point.valid_loss) scalar("valid/loss", *point.valid_loss);
  if (point.valid_nll) scalar("valid/nll", *point.valid_nll);
  if (point.bleu) scalar("valid/bleu", *point.bleu);
  writer->flush();
}

}  // namespace plumb::app
