// Answers kept in a file while a model is evaluated, so that an evaluation that was interrupted can continue.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/evaluate/answer.h"

namespace plumb {

/// The answers to a number of requests. The file is written at most twice a minute, and by `save`.
class AnswerStore {
 public:
  /// Begins with the answers in `file` if it has the same settings, otherwise with none; an empty path: nothing is
  /// kept. `settings` are everything that the answers depend on.
  AnswerStore(std::filesystem::path file, Json settings, size_t requests);

  [[nodiscard]] const std::vector<std::optional<Answer>>& answers() const { return answers_; }
  [[nodiscard]] size_t known() const;

  void put(size_t request, const Answer& answer) { answers_[request] = answer; }

  /// Writes the file if the last time is long enough ago.
  void save_sometimes();
  void save();

 private:
  using Clock = std::chrono::steady_clock;

  std::filesystem::path file_;
  Json settings_;
  std::vector<std::optional<Answer>> answers_;
  Clock::time_point saved_at_ = Clock::now();
};

}  // namespace plumb
