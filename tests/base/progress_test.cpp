#include "plumb/base/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>

#include "plumb/base/running_mean.h"

namespace plumb {
namespace {

/// Redirects standard error to a terminal that the test controls.
class Terminal {
 public:
  Terminal() : before_(::dup(STDERR_FILENO)) {
    set_verbosity(Verbosity::normal);
    if (::openpty(&outside_, &inside_, nullptr, nullptr, nullptr) != 0) return;
    ::fcntl(outside_, F_SETFL, O_NONBLOCK);
    ::dup2(inside_, STDERR_FILENO);
  }
  ~Terminal() {
    set_verbosity(Verbosity::quiet);
    ::dup2(before_, STDERR_FILENO);
    for (const int descriptor : {before_, inside_, outside_}) ::close(descriptor);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void resize(unsigned short columns) const {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(inside_, TIOCSWINSZ, &size);
  }

  /// The output since the last call.
  [[nodiscard]] std::string output() const {
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(outside_, buffer.data(), buffer.size());
    return {buffer.data(), count > 0 ? static_cast<size_t>(count) : 0};
  }

  /// The same without the sequence that clears a line.
  [[nodiscard]] std::string line() const {
    const std::string text = output();
    const std::string clear = "\r\033[K";
    return text.starts_with(clear) ? text.substr(clear.size()) : "not cleared: " + text;
  }

 private:
  int before_;
  int inside_ = -1;
  int outside_ = -1;
};

TEST(Progress, FitsTheTerminalAsItIsNow) {
  const Terminal terminal;
  Progress progress("train", 10000);
  const std::string note = "step 10000  loss 3.214  lr 1.00e-03  12345 tok/s";
  const auto shown = [&](unsigned short columns) {
    terminal.resize(columns);
    progress.update(10000, note);  // the last update is shown immediately
    return terminal.line();
  };
  EXPECT_EQ(shown(120), "train [########################] 10000/10000  0 s  " + note);
  EXPECT_EQ(shown(93), "train [#################] 10000/10000  0 s  " + note);
  EXPECT_EQ(shown(80), "train 10000/10000  0 s  " + note);
  EXPECT_EQ(shown(40), "train 10000/10000  0 s  step 10000  los");
  EXPECT_EQ(shown(1), "");
  EXPECT_EQ(shown(0).size(), 72U);  // unknown width: 80
}

TEST(Progress, LeavesOutTheLeastImportantNotes) {
  const Terminal terminal;
  Progress progress("train", 10000);
  const std::vector<ProgressPart> notes = {{"epoch 2", 1}, {"loss 3.214", ProgressPart::kTime + 1}, {"12345 tok/s", 2}};
  const auto shown = [&](unsigned short columns) {
    terminal.resize(columns);
    progress.update(10000, notes);
    return terminal.line();
  };
  EXPECT_EQ(shown(120), "train [########################] 10000/10000  0 s  epoch 2  loss 3.214  12345 tok/s");
  EXPECT_EQ(shown(58), "train 10000/10000  0 s  epoch 2  loss 3.214  12345 tok/s");  // 57 columns, none for the bar
  EXPECT_EQ(shown(56), "train 10000/10000  0 s  loss 3.214  12345 tok/s");
  EXPECT_EQ(shown(48), "train 10000/10000  0 s  loss 3.214  12345 tok/s");
  EXPECT_EQ(shown(47), "train [#########] 10000/10000  0 s  loss 3.214");
  EXPECT_EQ(shown(35), "train 10000/10000  0 s  loss 3.214");
  EXPECT_EQ(shown(34), "train 10000/10000  loss 3.214");
  EXPECT_EQ(shown(30), "train 10000/10000  loss 3.214");
  EXPECT_EQ(shown(29), "train [########] 10000/10000");
  EXPECT_EQ(shown(10), "train 100");
}

TEST(Progress, CountsWhatWasDoneBefore) {
  const Terminal terminal;
  terminal.resize(60);
  double heard = 0;
  Progress shown("train", 100, Progress::Unit::steps, 40);
  shown.update(100);
  EXPECT_EQ(terminal.line(), "train [########################] 100/100  0 s");
  const ListenToProgress listener([&](double share) { heard = share; });
  Progress resumed("train", 100, Progress::Unit::steps, 40);
  resumed.update(55);
  EXPECT_DOUBLE_EQ(heard, 0.25);  // 15 of the remaining 60
}

TEST(Progress, MakesWayForLines) {
  const Terminal terminal;
  terminal.resize(80);
  const std::string bar = "\r\033[Ktrain [########################] 2/2  0 s";
  {
    Progress progress("train", 2);
    progress.update(2);
    EXPECT_EQ(terminal.output(), bar);
    say("a notice");
    EXPECT_EQ(terminal.output(), "\r\033[Ka notice\r\n");  // the terminal adds the carriage return
    warn("lost");
    EXPECT_EQ(terminal.output(), "plumb: warning: lost\r\n");
    progress.update(2);
    EXPECT_EQ(terminal.output(), bar);
  }
  EXPECT_EQ(terminal.output(), "\r\n");
  {
    Progress progress("train", 2);
    progress.update(2);
    say("the last word");
    EXPECT_EQ(terminal.output(), bar + "\r\033[Kthe last word\r\n");
  }
  EXPECT_EQ(terminal.output(), "");
}

TEST(Progress, TextOfOthersNeitherControlsTheTerminalNorBeginsALine) {
  const Terminal terminal;
  terminal.resize(80);
  const std::string hostile =
      "a\x1b]0;title\x07\nplumb: error: b\r\xC2\x9B"
      "2Jc";
  const std::string shown = "a\\x1b]0;title\\x07\\nplumb: error: b\\x0d\\xc2\\x9b2Jc";
  for (const auto write : {write_line, say, warn}) {
    write(hostile);
    EXPECT_EQ(terminal.output(), (write == warn ? "plumb: warning: " : "") + shown + "\r\n");
  }
  Progress progress("train\x1b[2J", 2);
  progress.update(2, "note\x07");
  EXPECT_EQ(terminal.line(), "train\\x1b[2J [########################] 2/2  0 s  note\\x07");
}

TEST(Progress, LongLinesAreWrittenWhole) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(pipe[1], STDERR_FILENO);
  std::string line, shown;
  for (int i = 0; i < 2000; ++i) line += "ü\x1b", shown += "ü\\x1b";
  write_line(line);
  ::dup2(before, STDERR_FILENO);
  for (const int descriptor : {before, pipe[1]}) ::close(descriptor);
  std::string read(2 * shown.size(), '\0');
  size_t size = 0;
  for (ssize_t count = 0; (count = ::read(pipe[0], &read[size], read.size() - size)) > 0;)
    size += static_cast<size_t>(count);
  ::close(pipe[0]);
  EXPECT_EQ(read.substr(0, size), shown + "\n");
}

TEST(Progress, ThatCannotBeShownIsNoError) {
  const int before = ::dup(STDERR_FILENO), full = ::open("/dev/full", O_WRONLY);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  ::close(pipe[0]);
  for (const int broken : {full, pipe[1]}) {
    ::dup2(broken, STDERR_FILENO);
    errno = 5;
    say("lost");
    warn("lost");
    write_line("lost");
    EXPECT_EQ(errno, 5);
    Progress progress("train", 2);
    progress.update(2);
  }
  ::close(STDERR_FILENO);
  say("lost");
  ::dup2(before, STDERR_FILENO);
  for (const int descriptor : {before, full, pipe[1]}) ::close(descriptor);
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

TEST(Progress, CountsCharactersNotBytes) {
  const Terminal terminal;
  terminal.resize(12);
  Progress progress("überprüfen", 2);
  progress.update(2);
  EXPECT_EQ(terminal.line(), "überprüfen ");
}

// By hand: (0.5·4 + 1) / (0.5 + 1) = 2, (0.25·4 + 0.5·1 + 4) / 1.75 = 22/7.
TEST(RunningMean, WeighsRecentValuesMoreAndTheFirstInFull) {
  RunningMean mean(0.5);
  EXPECT_DOUBLE_EQ(mean.add(4), 4);
  EXPECT_DOUBLE_EQ(mean.add(1), 2);
  EXPECT_DOUBLE_EQ(mean.add(4), 22.0 / 7.0);
}

}  // namespace
}  // namespace plumb
