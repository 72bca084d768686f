#include "plumb/base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
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

thread_local const ProgressListener* listener_of_thread = nullptr;

constexpr std::chrono::milliseconds kTerminalPeriod{100};
constexpr std::chrono::seconds kLinePeriod{10};

/// The current width of the terminal in columns; 80 if unknown.
size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

/// The first `columns` characters of UTF-8 text.
std::string_view cut(std::string_view text, size_t columns) {
  size_t end = 0;
  while (end < text.size() && !(begins_character(text[end]) && columns-- == 0)) ++end;
  return text.substr(0, end);
}

/// "LABEL [####....] TAIL" in at most `width` columns: the bar shrinks first, then the end is cut off.
std::string bar_line(std::string_view label, double fraction, std::string_view tail, size_t width) {
  constexpr size_t kLongest = 24;
  constexpr size_t kShortest = 8;
  const size_t text = columns_of(label) + 1 + columns_of(tail);
  const size_t room = width > text + 3 ? std::min(kLongest, width - text - 3) : 0;  // for the bar, with "[", "] "
  std::string line(label);
  if (room >= kShortest) {
    const auto filled = static_cast<size_t>(fraction * static_cast<double>(room));
    line += fmt::format(" [{}{}]", std::string(filled, '#'), std::string(room - filled, '.'));
  }
  line += fmt::format(" {}", tail);
  return std::string(cut(line, width));
}

}  // namespace

void set_verbosity(Verbosity verbosity) { verbosity_storage() = verbosity; }
Verbosity verbosity() { return verbosity_storage(); }

ListenToProgress::ListenToProgress(ProgressListener listener)
    : listener_(std::move(listener)), outer_(listener_of_thread) {
  listener_of_thread = &listener_;
}

ListenToProgress::~ListenToProgress() { listener_of_thread = outer_; }

void say(std::string_view line) {
  if (verbosity() != Verbosity::quiet && listener_of_thread == nullptr) fmt::print(stderr, "{}\n", line);
}

void warn(std::string_view line) { fmt::print(stderr, "plumb: warning: {}\n", line); }

Progress::Progress(std::string label, int64_t total, Unit unit)
    : label_(std::move(label)),
      total_(std::max<int64_t>(total, 1)),
      unit_(unit),
      listener_(listener_of_thread),
      terminal_(::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_ && terminal_) std::fputs("\n", stderr);
}

void Progress::update(int64_t done, std::string_view note) {
  done_ = done;
  if (listener_ != nullptr) {
    (*listener_)(std::min(1.0, static_cast<double>(done) / static_cast<double>(total_)));
    return;
  }
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
  const std::string done =
      unit_ == Unit::percent ? fmt::format("{:.0f} %", 100 * fraction) : fmt::format("{}/{}", done_, total_);
  const std::string tail = fmt::format("{}  {}{}{}", done, time, note.empty() ? "" : "  ", note);
  if (terminal_) {
    // The last column stays free: some terminals move to the next line once it is written.
    fmt::print(stderr, "\r\033[K{}", bar_line(label_, fraction, tail, terminal_width() - 1));
    std::fflush(stderr);
  } else {
    fmt::print(stderr, "{}  {}\n", label_, tail);
  }
  shown_ = true;
}

}  // namespace plumb
