// Answers saved to a file during an evaluation, so that it can resume after an interruption.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/evaluate/answer.h"

namespace plumb {

/// The answers to requests, by number; nullopt if not known yet.
class AnswerStore {
 public:
  /// Starts with the answers in `file` if its settings are the same, otherwise with none; with an empty path, nothing
  /// is saved. `settings`: everything that the answers depend on.
  AnswerStore(std::filesystem::path file, Json settings, size_t requests);

  [[nodiscard]] const std::vector<std::optional<Answer>>& answers() const { return answers_; }
  [[nodiscard]] size_t known() const;

  void put(size_t request, const Answer& answer) { answers_[request] = answer; }

  /// Saves if the last save was at least 30 seconds ago.
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
