// plumb train as used by scripts: its exit status shows how the run ended.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using test::Finished;
using test::Process;
using test::run_plumb;

class TrainVerb : public test::SharedFolder<TrainVerb> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    test::succeeded(
        run_plumb({"data", "synthesize", "--pairs", "200", "--vocabulary", "300", "--out", "data"}, folder_->path()));
  }

  /// The arguments to train a tiny model, followed by `more`.
  static std::vector<std::string> arguments(const std::string& out, const std::vector<std::string>& more) {
    return test::with(
        test::with_keys({"train", "--data", "data", "--out", out, "-q"},
                        {"model.d_model=16", "model.heads=2", "model.feed_forward=16", "model.encoder_layers=1",
                         "model.decoder_layers=1", "train.batch_tokens=500", "task.translation.beam=0"}),
        more);
  }
  static Finished train(const std::string& out, const std::vector<std::string>& more) {
    return run_plumb(arguments(out, more), folder_->path());
  }

  static void wait_for_a_step(const std::string& out) {
    const fs::path metrics = *folder_ / out / "metrics.jsonl";
    for (int i = 0; i < 6000; ++i) {
      if (fs::exists(metrics) && read_file(metrics).find("\"loss\"") != std::string::npos) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << "no step";
  }
};

TEST_F(TrainVerb, DivergenceIsAFailure) {
  const std::vector<std::string> wild = {"--set", "train.optimizer=sgd",      "--set", "train.schedule=constant",
                                         "--set", "train.learning_rate=1e30", "--set", "train.warm_up=0"};
  for (const char* time : {"first", "again"}) {  // the second call only reports the outcome
    const Finished finished = train("wild", wild);
    EXPECT_EQ(finished.status, 3) << time;
    EXPECT_CONTAINS(finished.output, "wild: diverged at step ");
    EXPECT_TRUE(finished.errors.starts_with("plumb: error: wild: training diverged at step ")) << finished.errors;
  }
}

TEST_F(TrainVerb, AFinishedRunIsReportedAgainInTheSameWords) {
  const std::vector<std::string> scored = {"--set", "train.steps=2",          "--set", "train.validate_every=1",
                                           "--set", "train.score_every=1",    "--set", "train.best_metric=bleu",
                                           "--set", "task.translation.beam=1"};
  const Finished first = train("scored", scored), again = train("scored", scored);
  EXPECT_CONTAINS(first.output, ", BLEU ") << first.output << first.errors;
  EXPECT_EQ(again.output, first.output);
}

// At a START event, TensorBoard drops what earlier files contain from its step on.
TEST_F(TrainVerb, EventsForgetWhatARollbackUndid) {
  std::vector<std::string> wild = {"--set", "train.trouble.on_nonfinite=rollback"};
  for (const char* key : {"optimizer=sgd", "schedule=constant", "learning_rate=1e30", "warm_up=0", "log_every=1",
                          "trouble.rollback_limit=2"})
    wild.insert(wild.end(), {"--set", std::string("train.") + key});
  EXPECT_EQ(train("back", wild).status, 3);
  // In an Event, field 7, of 2 bytes, is a SessionLog; its field 1, the status, is START.
  constexpr std::string_view kStart = "\x3a\x02\x08\x01";
  int starts = 0;
  const std::string events = test::events_of(*folder_ / "back");
  for (size_t at = events.find(kStart); at != std::string::npos; at = events.find(kStart, at + 1)) ++starts;
  EXPECT_EQ(starts, 3);  // the run, and two rollbacks
}

TEST_F(TrainVerb, AnInterruptionHasTheStatusOfItsSignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string out = "interrupted" + std::to_string(signal);
    std::vector<std::string> command = arguments(out, {"--set", "train.steps=1000000", "--set", "train.log_every=1"});
    std::erase(command, "-q");
    Process process(test::plumb_program(), command, folder_->path());
    wait_for_a_step(out);
    process.signal(signal);
    const Finished finished = process.wait();
    EXPECT_EQ(finished.status, 128 + signal) << finished.errors;
    EXPECT_CONTAINS(finished.output, out + ": stopped at step ");
    EXPECT_CONTAINS(finished.errors, "continue with `plumb train --out " + out + "`");
    EXPECT_EQ(read_json(*folder_ / out / "result.json")["outcome"], "stopped");
    EXPECT_FALSE(fs::is_empty(*folder_ / out / "checkpoints"));
  }
}

// As a shell does for what it starts in the background, and nohup.
TEST_F(TrainVerb, SignalsThatWereIgnoredStayIgnored) {
  const std::vector<std::string> endless = {"--set", "train.steps=1000000", "--set", "train.log_every=1"};
  Process process(test::plumb_program(), arguments("ignoring", endless), folder_->path(), [] {
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
  });
  wait_for_a_step("ignoring");
  process.signal(SIGINT);
  process.signal(SIGHUP);
  const auto size = fs::file_size(*folder_ / "ignoring" / "metrics.jsonl");
  while (fs::file_size(*folder_ / "ignoring" / "metrics.jsonl") < size + 2000)  // it takes further steps
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().status, 128 + SIGTERM);
}

TEST_F(TrainVerb, ARunThatIsMovedSaysWhereItIs) {
  std::vector<std::string> command = arguments("old", {"--set", "train.steps=1000000", "--set", "train.log_every=1"});
  std::erase(command, "-q");
  Process process(test::plumb_program(), command, folder_->path());
  wait_for_a_step("old");
  fs::rename(*folder_ / "old", *folder_ / "moved");
  const auto size = fs::file_size(*folder_ / "moved" / "metrics.jsonl");
  while (fs::file_size(*folder_ / "moved" / "metrics.jsonl") < size + 2000)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  process.signal(SIGTERM);
  const Finished finished = process.wait();
  EXPECT_EQ(finished.status, 128 + SIGTERM) << finished.errors;
  const std::string place = (fs::canonical(folder_->path()) / "moved").string();
  EXPECT_CONTAINS(finished.output, place + ": stopped at step ");
  EXPECT_CONTAINS(finished.errors, "continue with `plumb train --out " + place + "`");
  EXPECT_FALSE(fs::exists(*folder_ / "old"));
  EXPECT_EQ(read_json(*folder_ / "moved" / "result.json")["outcome"], "stopped");
  EXPECT_FALSE(fs::is_empty(*folder_ / "moved" / "checkpoints"));
  EXPECT_CONTAINS(test::events_of(*folder_ / "moved"), "train/loss");
}

TEST_F(TrainVerb, ALimitOfFileSizesIsAnErrorThatSaysSo) {
  Process process(test::plumb_program(), arguments("limited", {"--set", "train.log_every=1"}), folder_->path(), [] {
    const rlimit limit{20'000, 20'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
  const Finished finished = process.wait();
  EXPECT_EQ(finished.status, 1) << finished.output;
  EXPECT_CONTAINS(finished.errors, "File too large");
  EXPECT_CONTAINS(finished.errors, "ulimit -f");
  for (const auto& entry : fs::recursive_directory_iterator(*folder_ / "limited"))
    EXPECT_LACKS(entry.path().filename().string(), ".plumb-tmp-");
}

/// Keys of a model whose steps take some tenths of a second or more.
std::vector<std::string> slow_steps() {
  std::vector<std::string> slow;
  for (const char* key : {"model.d_model=384", "model.feed_forward=1536", "model.encoder_layers=4",
                          "model.decoder_layers=4", "train.batch_tokens=2000", "train.log_every=1"})
    slow.insert(slow.end(), {"--set", key});
  return slow;
}

// GNU timeout, wrappers and schedulers send one signal to the process and one to its group.
TEST_F(TrainVerb, TwoSignalsInARowAreOneDecision) {
  for (const auto& [first, second] : {std::pair{SIGTERM, SIGTERM}, {SIGINT, SIGTERM}}) {
    const std::string out = "in-a-row" + std::to_string(first);
    Process process(test::plumb_program(), arguments(out, slow_steps()), folder_->path());
    wait_for_a_step(out);
    process.signal(first);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    process.signal(second);
    const Finished finished = process.wait();
    EXPECT_EQ(finished.status, 128 + first) << finished.errors;
    EXPECT_EQ(finished.errors, "");  // quiet
    EXPECT_EQ(read_json(*folder_ / out / "result.json")["outcome"], "stopped");
    EXPECT_FALSE(fs::is_empty(*folder_ / out / "checkpoints"));
  }
}

TEST_F(TrainVerb, ASignalIsAcknowledgedAndALaterOneOfAnotherKindEndsItAtOnce) {
  std::vector<std::string> command = arguments("twice", slow_steps());
  std::erase(command, "-q");
  Process process(test::plumb_program(), command, folder_->path());
  wait_for_a_step("twice");
  process.signal(SIGINT);
  while (process.errors().find("interrupted: stops after this step") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // In the middle of that step, more than two seconds pass until the next signal.
  process.signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(2200));
  process.signal(SIGTERM);
  process.signal(SIGCONT);
  EXPECT_EQ(process.wait().status, 128 + SIGTERM);
  EXPECT_FALSE(fs::exists(*folder_ / "twice" / "result.json"));
}

TEST_F(TrainVerb, ASecondProcessIsRefusedWhileTheFirstLives) {
  Process process(test::plumb_program(),
                  arguments("shared", {"--set", "train.steps=1000000", "--set", "train.log_every=1"}), folder_->path());
  wait_for_a_step("shared");
  const Finished second = train("shared", {"--set", "train.steps=2"});  // it would finish
  EXPECT_EQ(second.status, 1);
  EXPECT_CONTAINS(second.errors, "shared: another process is training here");
  process.signal(SIGKILL);
  (void)process.wait();
}

// A launcher such as torchrun sees in every process how the run ended.
TEST_F(TrainVerb, EveryRankHasTheStatusOfTheRun) {
  const auto as_rank = [](int rank, int port, const std::vector<std::string>& command) {
    std::vector<std::string> all = {"RANK=" + std::to_string(rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
                                    "MASTER_PORT=" + std::to_string(port), test::plumb_program()};
    all.insert(all.end(), command.begin(), command.end());
    return std::make_unique<Process>("env", all, folder_->path());
  };
  const std::vector<std::string> wild = {"--set", "train.optimizer=sgd",      "--set", "train.schedule=constant",
                                         "--set", "train.learning_rate=1e30", "--set", "train.warm_up=0"};
  const std::vector<std::string> endless = {"--set", "train.steps=1000000", "--set", "train.log_every=1"};
  for (const bool diverges : {true, false}) {
    const std::string out = diverges ? "ranks-wild" : "ranks-endless";
    const auto command = arguments(out, diverges ? wild : endless);
    // Below the ports that the system gives to sockets of other tests.
    const int port = 20000 + static_cast<int>(::getpid() % 12000) + (diverges ? 0 : 1);
    const auto first = as_rank(0, port, command), second = as_rank(1, port, command);
    if (!diverges) {
      wait_for_a_step(out);
      first->signal(SIGTERM);
    }
    const Finished zero = first->wait();
    EXPECT_EQ(zero.status, diverges ? 3 : 128 + SIGTERM) << zero.errors;
    const Finished other = second->wait();  // the process without a signal reports an interruption
    EXPECT_EQ(other.status, diverges ? 3 : 128 + SIGINT) << other.errors;
    EXPECT_EQ(other.output, "");
  }
}

// Runs in a separate mount namespace, if the test is allowed to create one.
TEST_F(TrainVerb, AFullDiskAndAReadOnlyDirectoryAreErrors) {
  const auto in_namespace = [](const std::string& script) {
    return Process("unshare", {"-m", "--propagation", "private", "sh", "-c", script}, folder_->path()).wait();
  };
  if (in_namespace("mkdir -p small && mount -t tmpfs -o size=200k none small").status != 0)
    GTEST_SKIP() << "cannot mount";
  ASSERT_EQ(train("stopped", {"--set", "train.steps=4", "--set", "train.checkpoint_every=2"}).status, 0);
  const std::string plumb = "'" + test::plumb_program() + "' train -q --out ";
  // Room for the run and half a checkpoint.
  uintmax_t room = 0, checkpoint = 0;
  for (const auto& entry : fs::recursive_directory_iterator(*folder_ / "stopped")) {
    if (!entry.is_regular_file()) continue;
    const uintmax_t pages = (entry.file_size() + 4095) / 4096 + 1;
    room += 4 * pages;
    if (entry.path().string().find("step-000004") != std::string::npos) checkpoint += 4 * pages;
  }
  const std::string size = std::to_string(room + checkpoint / 2) + "k";
  const Finished full = in_namespace("mount -t tmpfs -o size=" + size + " none small && cp -r stopped small/run && " +
                                     plumb + "small/run --set train.steps=400; echo status $?");
  EXPECT_CONTAINS(full.output, "status 1") << full.output << full.errors;
  EXPECT_CONTAINS(full.errors, "No space left on device");
  EXPECT_CONTAINS(full.errors, "the last good checkpoint is small/run/checkpoints/step-");
  const Finished fixed = in_namespace("mount --bind stopped stopped && mount -o remount,bind,ro stopped && " + plumb +
                                      "stopped --set train.steps=6");
  EXPECT_EQ(fixed.status, 1);
  EXPECT_CONTAINS(fixed.errors, "Read-only file system");
  EXPECT_EQ(read_json(*folder_ / "stopped" / "result.json")["outcome"], "finished");
}

TEST_F(TrainVerb, WritesWhatIsWatchedForTensorBoard) {
  const Finished finished = train("watched", {"--set", "train.steps=2", "--set", "watch.every=2", "--set",
                                              "watch.what=[\"updates\", \"activations\"]"});
  ASSERT_EQ(finished.status, 0) << finished.errors;
  const std::string events = test::events_of(*folder_ / "watched");
  for (const char* tag : {"train/loss", "watch/updates/total", "watch/updates/ratio/encoder.layers.0",
                          "watch/activations/largest_logit/decoder.layers.0.cross_attention"}) {
    EXPECT_CONTAINS(events, tag);
  }
  EXPECT_LACKS(events, "watch/curvature");
  EXPECT_CONTAINS(read_file(*folder_ / "watched" / "metrics.jsonl"), "{\"step\":2,\"watch\":{");
  // The commands that measure a run accept its configuration.
  EXPECT_EQ(run_plumb({"probe", "watched", "--pairs", "2", "-q"}, folder_->path()).status, 0);
}

TEST_F(TrainVerb, SeveralProcessesAreWatchedByTheFirst) {
  const std::vector<std::string> shared = {"--processes", "2", "--set", "train.steps=3"};
  std::vector<std::string> watched = shared;
  watched.insert(watched.end(), {"--set", "watch.every=3", "--set", "watch.examples=4"});
  ASSERT_EQ(train("plain", shared).status, 0);
  test::succeeded(train("seen", watched));
  const fs::path file = fs::path("checkpoints") / "step-000003" / "model.safetensors";
  EXPECT_TRUE(read_file(*folder_ / "plain" / file) == read_file(*folder_ / "seen" / file));
  const Json result = read_json(*folder_ / "seen" / "result.json");
  ASSERT_EQ(result["watched"].size(), 3U);
  for (const Json& record : result["watched"]) EXPECT_TRUE(record["watch"]["curvature"].contains("hessian")) << record;
}

TEST_F(TrainVerb, SaysWhatDurationsComeTo) {
  std::vector<std::string> all = arguments(
      "lasting", {"--set", "train.steps=0.5e", "--set", "train.warm_up=10t", "--set", "train.validate_every=1e"});
  std::erase(all, "-q");
  const Finished finished = test::succeeded(run_plumb(all, folder_->path()));
  const std::string steps = read_json(*folder_ / "lasting" / "result.json")["steps"].dump();
  EXPECT_CONTAINS(finished.errors, "durations: train.warm_up = 10t (1 step), train.steps = 0.5e (" + steps +
                                       " steps), train.validate_every = 1e (not within the run)\n");
  const Finished wrong = train("wrong", {"--set", "train.steps=2ee"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_CONTAINS(wrong.errors, "'2ee' is not a duration");
}

TEST_F(TrainVerb, ALostSummaryIsAnError) {
  ASSERT_EQ(train("short", {"--set", "train.steps=1"}).status, 0);
  const std::string command = "'" + test::plumb_program() + "' train --out short > /dev/full";
  const Finished finished = Process("/bin/sh", {"-c", command}, folder_->path()).wait();
  EXPECT_EQ(finished.status, 1);
  EXPECT_CONTAINS(finished.errors, "cannot write to standard output");
}

TEST_F(TrainVerb, ContinuesWithDataAtANewLocation) {
  ASSERT_EQ(train("before", {"--set", "train.steps=2"}).status, 0);
  fs::rename(*folder_ / "before", *folder_ / "after");
  fs::copy(*folder_ / "data", *folder_ / "copy", fs::copy_options::recursive);
  const Finished finished = test::succeeded(
      run_plumb({"train", "--out", "after", "--data", "copy", "--set", "train.steps=4", "-q"}, folder_->path()));
  EXPECT_CONTAINS(finished.output, "after: finished at step 4 ");
}

// Control characters must not make config.toml unreadable.
TEST_F(TrainVerb, PathsMayContainAnyCharacterButMustBeUtf8) {
  const std::string odd = "odd \x01\t\"\\ \x7F\nname";
  fs::copy(*folder_ / "data", *folder_ / odd, fs::copy_options::recursive);
  std::vector<std::string> all = arguments("odd run", {"--set", "train.steps=1"});
  all[2] = odd;
  test::succeeded(run_plumb(all, folder_->path()));
  EXPECT_EQ(run_plumb({"train", "--out", "odd run", "-q"}, folder_->path()).status, 0);

  fs::copy(*folder_ / "data", *folder_ / "caf\xE9", fs::copy_options::recursive);
  for (const std::vector<std::string>& places :
       std::vector<std::vector<std::string>>{{"caf\xE9", "never"}, {"data", "r\xE9"}}) {
    const Finished finished = run_plumb({"train", "--data", places[0], "--out", places[1]}, folder_->path());
    EXPECT_EQ(finished.status, 1);
    EXPECT_CONTAINS(finished.errors, "not valid UTF-8");
    EXPECT_FALSE(fs::exists(*folder_ / places[1]));
  }
}

TEST_F(TrainVerb, AResultFileIsCheckedBeforeTraining) {
  const Finished finished = train("unmade", {"--json", "data"});
  EXPECT_EQ(finished.status, 1);
  EXPECT_FALSE(fs::exists(*folder_ / "unmade"));
}

}  // namespace
}  // namespace plumb
