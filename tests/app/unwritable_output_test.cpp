// Standard output and standard error that cannot be written. Messages that are lost end no command; a lost result is an
// error.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "plumb/base/json.h"
#include "support/dead_pipe.h"
#include "support/shared_folder.h"
#include "train/run_contents.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using test::DeadPipe;
using test::Process;

class UnwritableOutput : public test::SharedFolder<UnwritableOutput> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    test::succeeded(test::run_plumb({"data", "synthesize", "--pairs", "200", "--raw", "pairs"}, folder_->path()));
    ASSERT_EQ(test::run_plumb(prepare("data"), folder_->path()).status, 0);
    ASSERT_EQ(test::run_plumb(train("whole"), folder_->path()).status, 0);
  }

  static std::vector<std::string> prepare(const std::string& out) {
    return {"data", "prepare", "--train", "pairs.de", "pairs.en", "--vocabulary", "300", "--out", out};
  }
  static std::vector<std::string> train(const std::string& out) {
    return test::with_keys({"train", "--data", "data", "--out", out},
                           {"model.d_model=16", "model.heads=2", "model.feed_forward=16", "model.encoder_layers=1",
                            "model.decoder_layers=1", "train.batch_tokens=500", "train.steps=3", "train.log_every=1",
                            "train.trouble.threshold=1", "train.trouble.window=2", "task.translation.beam=0"});
  }

  /// Runs a command with this file descriptor closed, full, or a pipe without a reader.
  static int status_of(const std::vector<std::string>& command, int descriptor, const std::string& how) {
    const DeadPipe pipe;
    const int full = ::open("/dev/full", O_WRONLY);
    const int other = how == "full" ? full : pipe.writing();
    const int status = Process(test::plumb_program(), command, folder_->path(),
                               [&] { how == "closed" ? ::close(descriptor) : ::dup2(other, descriptor); })
                           .wait()
                           .status;
    ::close(full);
    return status;
  }
};

TEST_F(UnwritableOutput, OfMessagesChangesNothing) {
  const auto whole = test::contents_of_run(*folder_ / "whole");
  for (const std::string how : {"full", "closed", "unread"}) {
    SCOPED_TRACE(how);
    EXPECT_EQ(status_of(prepare("data-" + how), STDERR_FILENO, how), 0) << how;
    test::expect_same_files(test::contents_of_run(*folder_ / ("data-" + how)),
                            test::contents_of_run(*folder_ / "data"));
    EXPECT_EQ(status_of(train("run-" + how), STDERR_FILENO, how), 0) << how;
    test::expect_same_files(test::contents_of_run(*folder_ / ("run-" + how)), whole);
    // Errors have their status, too.
    EXPECT_EQ(status_of({"train", "--data", "none", "--out", "no-" + how}, STDERR_FILENO, how), 1) << how;
    EXPECT_EQ(status_of({"train", "--nonsense"}, STDERR_FILENO, how), 2) << how;
    EXPECT_EQ(status_of({"nonsense"}, STDERR_FILENO, how), 2) << how;
  }
}

TEST_F(UnwritableOutput, OfAResultIsAnError) {
  for (const std::string how : {"full", "closed"}) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"list"}, {"--help"}, {"runs", "."}, {"man", "train"}, {"--version"}}) {
      EXPECT_EQ(test::run_plumb(command, folder_->path()).status, 0) << command.front();
      EXPECT_EQ(status_of(command, STDOUT_FILENO, how), 1) << command.front() << ", " << how;
    }
    EXPECT_EQ(status_of(train("unsaid-" + how), STDOUT_FILENO, how), 1);
    EXPECT_EQ(read_json(*folder_ / ("unsaid-" + how) / "result.json")["outcome"], "finished");
  }
}

// Otherwise the first file that the program opens would be standard error, and messages would be written to it.
TEST_F(UnwritableOutput, WithAllDescriptorsClosedNoFileTakesTheirPlaces) {
  const auto close_all = [] {
    for (const int descriptor : {0, 1, 2}) ::close(descriptor);
  };
  Process process(test::plumb_program(), train("closed"), folder_->path(), close_all);
  EXPECT_EQ(process.wait().status, 1);  // the summary is lost
  test::expect_same_files(test::contents_of_run(*folder_ / "closed"), test::contents_of_run(*folder_ / "whole"));
}

}  // namespace
}  // namespace plumb
