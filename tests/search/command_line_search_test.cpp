// Random command lines with a standard output and a standard error that may be unusable, interrupted at random times:
// every command ends with a documented status, leaves its output complete or not at all, and can be repeated.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "search.h"
#include "support/dead_pipe.h"
#include "support/process.h"
#include "train/run_contents.h"

namespace plumb::command_line_search {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using test::Process;

enum class Stream { usable, closed, full, unread };
constexpr const char* kStreamNames[] = {"usable", "closed", "full", "unread"};

/// How a command is started, and the signals that it gets.
struct Circumstances {
  Stream output = Stream::usable, errors = Stream::usable;
  std::vector<int> signals;
  std::chrono::microseconds before{}, between{};

  [[nodiscard]] std::string text() const {
    std::string text = fmt::format("standard output {}, standard error {}", kStreamNames[static_cast<int>(output)],
                                   kStreamNames[static_cast<int>(errors)]);
    for (const int signal : signals) text += fmt::format(", signal {}", signal);
    return text + fmt::format(" after {} and {} µs", before.count(), between.count());
  }
};

Circumstances drawn(Random& random) {
  Circumstances found;
  const auto stream = [&] { return random.below(2) == 0 ? Stream::usable : static_cast<Stream>(random.below(4)); };
  found.errors = stream();
  found.output = stream();
  for (uint64_t signals = random.below(3); signals > 0; --signals)
    found.signals.push_back(random.below(2) == 0 ? SIGINT : SIGTERM);
  found.before = std::chrono::microseconds(random.below(2'500'000));
  found.between = std::chrono::microseconds(random.below(30'000));
  return found;
}

/// Starts a command in these circumstances and waits for its end. `before_signals` is called before the first signal.
int status_of(const Words& words, const fs::path& folder, const Circumstances& given,
              const std::function<void()>& before_signals = {}) {
  const test::DeadPipe pipe;
  const int full = ::open("/dev/full", O_WRONLY);
  const auto redirect = [&](int descriptor, Stream stream) {
    if (stream == Stream::closed) ::close(descriptor);
    if (stream == Stream::full) ::dup2(full, descriptor);
    if (stream == Stream::unread) ::dup2(pipe.writing(), descriptor);
  };
  Process process(test::plumb_program(), words, folder, [&] {
    redirect(STDOUT_FILENO, given.output);
    redirect(STDERR_FILENO, given.errors);
  });
  ::close(full);
  if (!given.signals.empty()) std::this_thread::sleep_for(given.before);
  if (before_signals) before_signals();
  for (const int signal : given.signals) {
    process.signal(signal);
    std::this_thread::sleep_for(given.between);
  }
  return process.wait().status;
}

void expect_documented(int status, const Circumstances& given) {
  std::set<int> documented = {0, 1, 2, 3};
  for (const int signal : given.signals) documented.insert(128 + signal);
  if (given.output == Stream::unread) documented.insert(128 + SIGPIPE);
  EXPECT_TRUE(documented.contains(status)) << status;
}

Words train(const std::string& out, int64_t steps, int64_t batch_tokens, int64_t width) {
  Words words = {"train", "--data", "data", "--out", out};
  for (const std::string& key :
       {std::string("model.heads=2"), std::string("model.encoder_layers=1"), std::string("model.decoder_layers=1"),
        fmt::format("model.d_model={}", width), fmt::format("train.steps={}", steps),
        fmt::format("train.batch_tokens={}", batch_tokens), std::string("train.log_every=1"),
        std::string("train.checkpoint_every=1000"), std::string("train.trouble.window=4"),
        std::string("train.trouble.threshold=1"), std::string("task.translation.beam=0")})
    words.insert(words.end(), {"--set", key});
  return words;
}

Words prepare(const std::string& out) {
  return {"data", "prepare", "--train", "pairs.de", "pairs.en", "--vocabulary", "300", "--out", out};
}

/// A training run: if it was being trained when the first signal came, its state is saved; it can be resumed, and then
/// has the files of a run that was left alone.
void interrupt_training(const fs::path& folder, Random& random) {
  const Words words = train("run", 4 + static_cast<int64_t>(random.below(20)), random.below(2) == 0 ? 300 : 3000,
                            random.below(2) == 0 ? 16 : 96);
  Words whole = words;
  std::replace(whole.begin(), whole.end(), std::string("run"), std::string("whole"));
  const test::Finished left_alone = test::run_plumb(whole, folder);
  ASSERT_EQ(left_alone.status, 0) << left_alone.errors;
  const Circumstances given = drawn(random);
  SCOPED_TRACE(join(words, " ") + "\n" + given.text());
  bool trained = false;
  const int status = status_of(words, folder, given, [&] {
    const fs::path metrics = folder / "run" / "metrics.jsonl";
    trained = fs::exists(metrics) && read_file(metrics).find("\"loss\"") != std::string::npos;
  });
  expect_documented(status, given);
  if (given.signals.empty() && given.output == Stream::usable) {
    EXPECT_EQ(status, 0);
  }
  if (trained || given.signals.empty()) {
    EXPECT_TRUE(fs::exists(folder / "run" / "result.json"));
  }
  const test::Finished resumed = test::run_plumb(words, folder);
  EXPECT_EQ(resumed.status, 0) << resumed.errors;
  const auto wanted = test::contents_of_run(folder / "whole");
  auto found = test::contents_of_run(folder / "run");
  // The checkpoint with which an interrupted run ended may still be there.
  std::erase_if(
      found, [&](const auto& file) { return file.first.starts_with("checkpoints/") && !wanted.contains(file.first); });
  test::expect_same_files(found, wanted);
}

/// A command that writes a directory writes all of it or nothing, and when it is repeated, nothing else is left.
void interrupt_output(const fs::path& folder, Random& random) {
  const bool averages = random.below(2) == 0;
  const Words words = averages ? Words{"average", "trained", "--last", "2", "--out", "new"} : prepare("new");
  const auto wanted = test::contents_of_run(folder / (averages ? "averaged" : "data"));
  Circumstances given = drawn(random);
  given.before /= 2;
  SCOPED_TRACE(join(words, " ") + "\n" + given.text());
  const int status = status_of(words, folder, given);
  expect_documented(status, given);
  if (fs::exists(folder / "new")) {
    test::expect_same_files(test::contents_of_run(folder / "new"), wanted);
  } else {
    EXPECT_NE(status, 0);
  }
  EXPECT_EQ(test::run_plumb(words, folder).status, 0);
  test::expect_same_files(test::contents_of_run(folder / "new"), wanted);
  for (const auto& entry : fs::directory_iterator(folder))
    EXPECT_LACKS(entry.path().filename().string(), ".plumb-tmp-") << entry.path();
}

/// Any other command, right or wrong: it has the status that it has without an audience, or an error if its result is
/// lost.
void say_to_no_one(const fs::path& folder, Random& random) {
  const std::vector<Words> all = {{"list"},
                                  {"--help"},
                                  {"train", "--help"},
                                  {"--version"},
                                  {"runs", "."},
                                  {"report", "trained"},
                                  {"score", "pairs.en", "pairs.de"},
                                  {"probe", "trained"},
                                  {"plan", "--config", "trained/config.toml"},
                                  {"translate", "trained"},
                                  {"train", "--data", "nothing", "--out", "no"},
                                  {"train", "--out", "trained"},
                                  {"train", "--data", "data", "--out", "no", "--set", "train.optimiser=adam"},
                                  {"trian"},
                                  {"train", "--otu", "x"},
                                  {"average", "trained", "--last", "99", "--out", "no"},
                                  {"data", "prepare", "--train", "none", "none", "--out", "no"},
                                  {"runs", "data"},
                                  {"export", "data", "--out", "no"}};
  const Words& words = all[random.below(all.size())];
  Circumstances given = drawn(random);
  given.signals.clear();
  SCOPED_TRACE(join(words, " ") + "\n" + given.text());
  const test::Finished heard = test::run_plumb(words, folder);
  const int status = status_of(words, folder, given);
  const bool loses = given.output != Stream::usable && !heard.output.empty() && heard.status == 0;
  EXPECT_EQ(status, !loses ? heard.status : given.output == Stream::unread ? 128 + SIGPIPE : 1);
}

TEST(CommandLineSearch, CommandLinesWithABrokenStandardErrorAndWithSignalsAtRandomTimes) {
  const test::TemporaryDirectory made;
  ASSERT_EQ(test::run_plumb({"data", "synthesize", "--pairs", "300", "--raw", "pairs"}, made.path()).status, 0);
  ASSERT_EQ(test::run_plumb(prepare("data"), made.path()).status, 0);
  Words short_run = train("trained", 4, 300, 16);
  short_run.insert(short_run.end(), {"--set", "train.checkpoint_every=1"});
  ASSERT_EQ(test::run_plumb(short_run, made.path()).status, 0);
  ASSERT_EQ(test::run_plumb({"average", "trained", "--last", "2", "--out", "averaged"}, made.path()).status, 0);
  test::search("command lines", 8, [&](Random& random, uint64_t) {
    const test::TemporaryDirectory folder;
    fs::copy(made.path(), folder.path(), fs::copy_options::recursive);
    switch (random.below(3)) {
      case 0:
        return interrupt_training(folder.path(), random);
      case 1:
        return interrupt_output(folder.path(), random);
      default:
        return say_to_no_one(folder.path(), random);
    }
  });
}

}  // namespace
}  // namespace plumb::command_line_search
