// The only progress display: a bar on a terminal, occasional lines elsewhere. Always on standard error, and never the
// end of a program: what cannot be written there is lost.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

enum class Verbosity { quiet, normal, verbose };

/// How much is written to standard error; set when a command starts.
void set_verbosity(Verbosity verbosity);
Verbosity verbosity();

/// Receives the progress of work that is part of a larger task: the fraction done, in [0, 1].
using ProgressListener = std::function<void(double)>;

/// During its lifetime, progress displays created by this thread report to the listener instead of standard error, and
/// `say` is silent in this thread.
class ListenToProgress {
 public:
  explicit ListenToProgress(ProgressListener listener);
  ~ListenToProgress();
  ListenToProgress(const ListenToProgress&) = delete;
  ListenToProgress& operator=(const ListenToProgress&) = delete;

 private:
  ProgressListener listener_;
  const ProgressListener* outer_;
};

/// Writes one printable() line to standard error, even if quiet, in place of a bar that is shown there. An unwritable
/// standard error or a pipe that nobody reads is ignored. May be called in a signal handler.
void write_line(std::string_view line);

/// The same, unless quiet.
void say(std::string_view line);

/// A piece of a progress line. If the line is too long for the terminal, the least important pieces are dropped first.
struct ProgressPart {
  static constexpr int kTime = 100;     // the remaining time
  static constexpr int kAlways = 1000;  // never dropped, but cut off at the end of the line

  std::string text;
  int importance = kAlways;
};

/// Writes "plumb: warning: LINE", even if quiet: something was damaged or lost.
void warn(std::string_view line);

/// Shows progress through `total` steps, or its percentage, and the remaining time.
class Progress {
 public:
  enum class Unit { steps, percent };
  /// `before` of the `total` steps were done earlier.
  Progress(const std::string& label, int64_t total, Unit unit = Unit::steps, int64_t before = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` steps are complete, including those done earlier; `note` is shown after the remaining time ("loss 3.21").
  void update(int64_t done, std::string_view note = {});
  /// The same with several notes, of which those that fit are shown.
  void update(int64_t done, const std::vector<ProgressPart>& notes);

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] double fraction() const;  // of the steps not done earlier
  void show(const std::vector<ProgressPart>& notes, bool last);

  std::string label_;
  int64_t total_;
  int64_t before_;
  Unit unit_;
  const ProgressListener* listener_;
  int64_t done_ = 0;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point shown_at_ = begin_;
};

}  // namespace plumb
