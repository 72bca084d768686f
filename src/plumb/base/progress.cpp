#include "plumb/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "plumb/base/broken_pipe.h"
#include "plumb/base/descriptor.h"
#include "plumb/base/terminal.h"
#include "plumb/base/text.h"
#include "plumb/base/utf8.h"

namespace plumb {
namespace {

Verbosity& verbosity_storage() {
  static Verbosity value = Verbosity::normal;
  return value;
}

thread_local const ProgressListener* listener_of_thread = nullptr;

/// Whether the terminal's last line is a bar, which the next output replaces.
std::atomic<bool> bar_shown = false;
static_assert(std::atomic<bool>::is_always_lock_free);

constexpr std::string_view kClearLine = "\r\033[K";

constexpr std::chrono::milliseconds kTerminalPeriod{100};
constexpr std::chrono::seconds kLinePeriod{10};

/// Writes a text, or as much of it as can be written. Calls only async-signal-safe functions.
void write_to_standard_error(std::string_view text) {
  const BrokenPipeGuard guard;
  const int before = errno;
  write_all(STDERR_FILENO, text);
  errno = before;
}

/// The first `columns` characters of UTF-8 text.
std::string_view cut(std::string_view text, size_t columns) {
  size_t end = 0;
  while (end < text.size() && (is_continuation(text[end]) || columns-- > 0)) ++end;
  return text.substr(0, end);
}

/// The parts that fit into `width` columns, separated by two spaces; drops the least important parts until they do.
std::string fitting(std::vector<ProgressPart> parts, size_t width) {
  const auto joined = [&] {
    std::vector<std::string> texts;
    for (const ProgressPart& part : parts) texts.push_back(printable(part.text));
    return join(texts, "  ");
  };
  std::string line = joined();
  while (characters_in(line) > width) {
    const auto least = std::min_element(parts.begin(), parts.end(),
                                        [](const auto& a, const auto& b) { return a.importance < b.importance; });
    if (least->importance >= ProgressPart::kAlways) break;
    parts.erase(least);
    line = joined();
  }
  return line;
}

/// "LABEL [####....] TAIL" in at most `width` columns: the bar shrinks first, then the line is cut off.
std::string bar_line(std::string_view label, double fraction, std::string_view tail, size_t width) {
  constexpr size_t kLongest = 24;
  constexpr size_t kShortest = 8;
  const size_t text = characters_in(label) + 1 + characters_in(tail);
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

void write_line(std::string_view line) {
  std::array<char, 4096> lines{};  // as much as a pipe takes at once, so that those of several processes do not mix
  size_t used = 0;
  const auto add = [&](std::string_view text) {
    while (!text.empty()) {
      if (used == lines.size()) write_to_standard_error({lines.data(), std::exchange(used, 0)});
      const size_t copied = text.copy(&lines[used], lines.size() - used);
      used += copied;
      text.remove_prefix(copied);
    }
  };
  if (bar_shown.exchange(false)) add(kClearLine);
  for (std::array<char, 16> room{}; !line.empty();) add(next_printable(line, room));
  add("\n");
  write_to_standard_error({lines.data(), used});
}

void say(std::string_view line) {
  if (verbosity() != Verbosity::quiet && listener_of_thread == nullptr) write_line(line);
}

void warn(std::string_view line) { write_line(fmt::format("plumb: warning: {}", line)); }

Progress::Progress(const std::string& label, int64_t total, Unit unit, int64_t before)
    : label_(printable(label)),
      total_(std::max<int64_t>(total, before + 1)),
      before_(before),
      unit_(unit),
      listener_(listener_of_thread),
      terminal_(::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_ && bar_shown.exchange(false)) write_to_standard_error("\n");
}

void Progress::update(int64_t done, std::string_view note) {
  std::vector<ProgressPart> notes;
  if (!note.empty()) notes.push_back({std::string(note)});
  update(done, notes);
}

double Progress::fraction() const {
  return std::min(1.0, static_cast<double>(done_ - before_) / static_cast<double>(total_ - before_));
}

void Progress::update(int64_t done, const std::vector<ProgressPart>& notes) {
  done_ = done;
  if (listener_ != nullptr) {
    (*listener_)(fraction());
    return;
  }
  if (verbosity() == Verbosity::quiet) return;
  const auto now = Clock::now();
  const bool last = done_ >= total_;
  const auto period = terminal_ ? Clock::duration(kTerminalPeriod) : Clock::duration(kLinePeriod);
  if (now - shown_at_ < period && !(last && (terminal_ || shown_))) return;
  shown_at_ = now;
  show(notes, last);
}

void Progress::show(const std::vector<ProgressPart>& notes, bool last) {
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin_).count();
  const double share = fraction();
  const std::string time =
      last ? duration(elapsed)
           : (share > 0 ? duration(elapsed * (1 - share) / share) + " left" : std::string("starting"));
  // A single note is cut off at the end of the line. Several notes compete for space with the remaining time.
  const bool choosing = std::any_of(notes.begin(), notes.end(),
                                    [](const ProgressPart& note) { return note.importance < ProgressPart::kAlways; });
  std::vector<ProgressPart> parts = {
      {unit_ == Unit::percent ? fmt::format("{:.0f}%", 100 * share) : fmt::format("{}/{}", done_, total_)},
      {time, choosing ? ProgressPart::kTime : ProgressPart::kAlways}};
  parts.insert(parts.end(), notes.begin(), notes.end());
  if (terminal_) {
    // The last column stays empty: some terminals wrap once it is written.
    const size_t width = std::max<size_t>(terminal_width(STDERR_FILENO), 1) - 1;
    const size_t used = characters_in(label_) + 1;
    const std::string tail = fitting(std::move(parts), width > used ? width - used : 0);
    // The bar counts all steps, including those done earlier.
    const double filled = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
    bar_shown = true;
    write_to_standard_error(std::string(kClearLine) + bar_line(label_, filled, tail, width));
  } else {
    write_line(fmt::format("{}  {}", label_, fitting(std::move(parts), std::string::npos)));
  }
  shown_ = true;
}

}  // namespace plumb
