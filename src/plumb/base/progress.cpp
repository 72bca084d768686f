#include "plumb/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "plumb/base/text.h"

namespace plumb {
namespace {

Verbosity& verbosity_storage() {
  static Verbosity value = Verbosity::normal;
  return value;
}

constexpr std::chrono::milliseconds kTerminalPeriod{100};
constexpr std::chrono::seconds kLinePeriod{10};

}  // namespace

void set_verbosity(Verbosity verbosity) { verbosity_storage() = verbosity; }
Verbosity verbosity() { return verbosity_storage(); }

void say(std::string_view line) {
  if (verbosity() != Verbosity::quiet) fmt::print(stderr, "{}\n", line);
}

Progress::Progress(std::string label, int64_t total)
    : label_(std::move(label)), total_(std::max<int64_t>(total, 1)), terminal_(::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_ && terminal_) std::fputs("\n", stderr);
}

void Progress::update(int64_t done, std::string_view note) {
  done_ = done;
  if (verbosity() == Verbosity::quiet) return;
  const auto now = Clock::now();
  const bool last = done_ >= total_;
  const auto period = terminal_ ? Clock::duration(kTerminalPeriod) : Clock::duration(kLinePeriod);
  if (now - shown_at_ < period && !(last && (terminal_ || shown_))) return;
  shown_at_ = now;
  show(note, last);
}

void Progress::show(std::string_view note, bool last) {
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin_).count();
  const double fraction = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  const std::string time =
      last ? duration(elapsed)
           : (done_ > 0 ? duration(elapsed * (1 - fraction) / fraction) + " left" : std::string("starting"));
  const std::string tail = fmt::format("{}/{}  {}{}{}", done_, total_, time, note.empty() ? "" : "  ", note);
  if (terminal_) {
    constexpr int kWidth = 24;
    const auto filled = static_cast<size_t>(fraction * kWidth);
    fmt::print(stderr, "\r\033[K{} [{}{}] {}", label_, std::string(filled, '#'), std::string(kWidth - filled, '.'),
               tail);
    std::fflush(stderr);
  } else {
    fmt::print(stderr, "{}  {}\n", label_, tail);
  }
  shown_ = true;
}

}  // namespace plumb
