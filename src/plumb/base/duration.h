// The length of a period of training, in one of four units: "4000u", "10Mt", "2e", "10%".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plumb {

/// A number of steps, of target tokens or of epochs, or a share of the run. A plain number means steps.
class Duration {
 public:
  enum class Unit { steps, tokens, epochs, runs };
  /// Epochs and runs are counted in millionths, so that every duration is exact.
  static constexpr int64_t kParts = 1'000'000;

  Duration() = default;                        // 0 steps
  Duration(int64_t steps) : amount_(steps) {}  // NOLINT(google-explicit-constructor): a plain number is a duration
  /// "4000" or "4000u": steps (updates). "10Mt": target tokens, with k, M, G or B (10⁹) before the t, or nothing. "2e":
  /// epochs. "10%": a share of the run. All but steps may have a fraction, provided that they amount to a whole number
  /// of tokens, or of millionths of an epoch or of the run. A duration of 0 is 0 steps in any unit. Throws Error on
  /// anything else, and on values of 10¹⁵ steps or tokens, or 10⁹ epochs, and above.
  static Duration parse(std::string_view text);

  [[nodiscard]] Unit unit() const { return unit_; }
  /// Steps, tokens, or millionths of an epoch or of the run.
  [[nodiscard]] int64_t amount() const { return amount_; }
  [[nodiscard]] bool is_zero() const { return amount_ == 0; }

  /// The number of steps. Throws Error if the duration has another unit, which train/timeline.h resolves.
  [[nodiscard]] int64_t in_steps() const;

  /// Text that `parse` reads as the same duration, without a unit for steps: "4000", "1.5kt", "2e", "10%".
  [[nodiscard]] std::string text() const;

  /// True if both the amount and the unit are the same.
  bool operator==(const Duration&) const = default;

 private:
  Unit unit_ = Unit::steps;
  int64_t amount_ = 0;
};

}  // namespace plumb
