// An observer of a run whose moments are functions, as tests need them.
#pragma once

#include <functional>

#include "plumb/train/trainer.h"

namespace plumb::test {

/// Calls the functions that are set. Passed as the only observer of a run.
struct Moments final : TrainObserver {
  std::function<void(const TrainPoint&)> point;
  std::function<void(const WatchRecord&)> watch;
  std::function<void(const TroubleRecord&)> trouble;
  std::function<void(const Trainer&)> checkpoint;  // once its files are complete
  std::function<void(const Trainer&)> best;        // the same
  std::function<void(const std::filesystem::path&)> place;
  std::function<bool()> stop;

  void on_point(const TrainPoint& now) override { call(point, now); }
  void on_watch(const WatchRecord& now) override { call(watch, now); }
  void on_trouble(const TroubleRecord& now) override { call(trouble, now); }
  void on_checkpoint(const Trainer& now) override { call(checkpoint, now); }
  void on_best(const Trainer& now) override { call(best, now); }
  void on_place(const std::filesystem::path& now) override { call(place, now); }
  bool stops() override { return stop && stop(); }
  [[nodiscard]] bool reads_files() const override { return checkpoint || best; }

  operator TrainObservers() { return {this}; }  // NOLINT(google-explicit-constructor)

 private:
  template <typename Value>
  static void call(const std::function<void(const Value&)>& function, const Value& value) {
    if (function) function(value);
  }
};

/// Stops a run after `steps` steps.
inline Moments stop_after(int64_t steps) {
  Moments moments;
  moments.stop = [left = steps]() mutable { return --left == 0; };
  return moments;
}

}  // namespace plumb::test
