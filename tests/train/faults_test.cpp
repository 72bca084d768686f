// Damage to the files of a run is reported or makes no difference: no crashes and no silently wrong results.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/io/safetensors.h"
#include "plumb/run/checkpoints.h"
#include "plumb/run/directory.h"
#include "plumb/train/run_training.h"
#include "run_contents.h"
#include "support/errors.h"
#include "support/fast_directory.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class Faults : public ::testing::Test {
 protected:
  Faults() {
    test::make_copy_task(folder_ / "data");
    config_ = test::copy_run(folder_ / "data");
    config_.model.d_model = 8;
    config_.model.feed_forward = 8;
    config_.train.steps = 14;
    config_.train.checkpoint_every = 3;
    config_.train.keep_checkpoints = 2;
    config_.train.validate_every = 4;
    config_.train.keep_best = 2;
    config_.train.score_every = -1;
    run_training(config_, whole_);
    run_training(config_, stopped_, test::stop_after(9));
  }

  fs::path copy_of_stopped() const {
    fs::remove_all(folder_ / "run");
    fs::copy(stopped_, folder_ / "run", fs::copy_options::recursive);
    return folder_ / "run";
  }

  /// The messages of a resumed run.
  struct Told {
    std::string error;     // empty if the run ended
    std::string warnings;  // on standard error

    [[nodiscard]] std::string all() const { return error + warnings; }
  };
  [[nodiscard]] Told resume(const fs::path& run) const {
    ::testing::internal::CaptureStderr();
    Told told;
    try {
      run_training(config_, run);
    } catch (const Error& error) {
      told.error = error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "not an Error: " << error.what();
    }
    told.warnings = ::testing::internal::GetCapturedStderr();
    return told;
  }

  /// Expects that damage was noticed or made no difference: the run ends like an intact one, unless there was an error
  /// or a warning that states what is lost.
  static void expect_no_harm(const Told& told, const fs::path& run, const std::map<std::string, std::string>& wanted,
                             const std::string& where) {
    if (!told.error.empty()) return;
    const auto found = end_of(run);
    for (const auto& [name, content] : wanted) {
      if (found.contains(name) && found.at(name) == content) continue;
      const bool is_lost = name.find("best") != std::string::npos
                               ? told.warnings.find("best") != std::string::npos
                               : told.warnings.find("continues without its history") != std::string::npos;
      EXPECT_TRUE(is_lost) << where << ": another " << name << "; told: " << told.all();
    }
  }

  /// The files at the end of a run, without intermediate checkpoints and the recorded command.
  static std::map<std::string, std::string> end_of(const fs::path& run) {
    auto contents = test::contents_of_run(run);
    std::erase_if(contents, [](const auto& entry) {
      const bool is_between =
          entry.first.starts_with("checkpoints/") && entry.first.find("000014") == std::string::npos;
      return is_between || entry.first == "plumb.json";
    });
    return contents;
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(stopped_))
      if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), stopped_).string());
    std::sort(names.begin(), names.end());
    return names;
  }

  test::FastDirectory folder_;
  RunConfig config_;
  fs::path whole_ = folder_ / "whole", stopped_ = folder_ / "stopped";
};

TEST_F(Faults, FlippedBitsAreNoticedOrMakeNoDifference) {
  const std::vector<std::string> names = files();
  const auto wanted = end_of(whole_);
  Random random(1, "flips");
  int told = 0;
  constexpr int kFlips = 500;
  for (int i = 0; i < kFlips; ++i) {
    const fs::path run = copy_of_stopped();
    const std::string& name = names[random.below(names.size())];
    std::string content = read_file(run / name);
    const uint64_t bit = random.below(8 * content.size());
    content[bit / 8] = static_cast<char>(content[bit / 8] ^ (1 << (bit % 8)));
    std::ofstream(run / name, std::ios::binary) << content;
    const Told message = resume(run);
    told += message.all().empty() ? 0 : 1;
    expect_no_harm(message, run, wanted, fmt::format("{}, bit {}", name, bit));
    if (HasFailure()) break;
  }
  EXPECT_GT(told, kFlips / 4);
}

TEST_F(Faults, FilesThatAreCutShortOrMissingAreNoticedOrMakeNoDifference) {
  const auto wanted = end_of(whole_);
  for (const std::string& name : files()) {
    for (const char* how : {"missing", "empty", "half", "one byte less"}) {
      const fs::path run = copy_of_stopped();
      const auto size = fs::file_size(run / name);
      if (how == std::string("missing")) fs::remove(run / name);
      if (how == std::string("empty")) fs::resize_file(run / name, 0);
      if (how == std::string("half")) fs::resize_file(run / name, size / 2);
      if (how == std::string("one byte less")) fs::resize_file(run / name, size - 1);
      const Told message = resume(run);
      expect_no_harm(message, run, wanted, name + ", " + how);
      const bool is_harmless = name.ends_with("state.json") && how == std::string("one byte less");  // only a newline
      if (name.find("step-000009") != std::string::npos && !is_harmless) {
        EXPECT_EQ(message.error, "");
        EXPECT_CONTAINS(message.warnings, "checkpoint step-000009: ") << name << ", " << how;
        EXPECT_CONTAINS(message.warnings, "going back to step-000006");
        EXPECT_TRUE(end_of(run) == wanted) << name << ", " << how;
      }
    }
  }
}

// Translation and measurements read the parameters of any checkpoint without checking the rest of it.
TEST_F(Faults, ParametersWithAFlippedBitAreNotLoaded) {
  const fs::path file = fs::path("best") / "model.safetensors";
  const NamedTensors intact = load_safetensors(stopped_ / file);
  Random random(2, "flips");
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    const fs::path run = copy_of_stopped();
    std::string content = read_file(run / file);
    const uint64_t bit = random.below(8 * content.size());
    content[bit / 8] = static_cast<char>(content[bit / 8] ^ (1 << (bit % 8)));
    std::ofstream(run / file, std::ios::binary) << content;
    try {
      const std::unique_ptr<Model> model = load_model(run, run / "best");
      const NamedTensors found = named_values(model->parameters());
      std::map<std::string, Tensor> wanted(intact.begin(), intact.end());
      for (const auto& [name, tensor] : found)
        EXPECT_TRUE(at::equal(tensor, wanted.at(name))) << name << ", bit " << bit;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 150);
}

TEST_F(Faults, TheOnlyGoodCheckpointIsNeverRemoved) {
  config_.train.keep_checkpoints = 1;
  fs::path run = folder_ / "one";
  run_training(config_, run, test::stop_after(6));
  // A later damaged checkpoint does not count as the one to keep.
  fs::copy(run / "checkpoints" / "step-000006", run / "checkpoints" / "step-000013");
  fs::resize_file(run / "checkpoints" / "step-000013" / "optimizer.safetensors", 100);
  // Nor does a name with more digits than a step can have.
  fs::create_directories(run / "checkpoints" / "step-99999999999999999999999");
  int64_t seen = 0;
  test::Moments looking;
  looking.checkpoint = [&](const Trainer& trainer) {
    ++seen;
    EXPECT_EQ(damage_of(run / "checkpoints" / fmt::format("step-{:06}", trainer.step())), "");
  };
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_training(config_, run, looking).outcome, RunOutcome::finished);
  EXPECT_CONTAINS(::testing::internal::GetCapturedStderr(),
                  "checkpoint step-000013: optimizer.safetensors has 100 bytes");
  EXPECT_EQ(seen, 3);                                                       // 9, 12, 14
  EXPECT_FALSE(fs::exists(run / "checkpoints" / "step-000013.set-aside"));  // removed once the run has passed it

  // If none is intact, the error names all of them.
  config_.train.keep_checkpoints = 2;
  run = copy_of_stopped();
  for (const auto& [step, path] : checkpoints_of(run)) fs::resize_file(path / "model.safetensors", 100);
  const std::string message = resume(run).error;
  EXPECT_CONTAINS(message, "no checkpoint is intact: step-000009: ");
  EXPECT_CONTAINS(message, "step-000006: ");
  EXPECT_EQ(checkpoints_of(run).size(), 2U);
}

TEST_F(Faults, ABestCheckpointThatARollbackUndoesIsReplacedByTheOneBefore) {
  const fs::path run = copy_of_stopped(), kept = run / "best-checkpoints";
  const auto step_of_best = [&] { return read_json(run / "best" / "state.json")["step"].get<int64_t>(); };
  const int64_t best = step_of_best();
  std::vector<int64_t> others;
  for (const auto& entry : fs::directory_iterator(kept)) {
    const int64_t step = read_json(entry.path() / "state.json")["step"];
    if (step != best) others.push_back(step);
  }
  ASSERT_EQ(others.size(), 1U);
  return_best(run, best, others[0]);  // nothing is undone
  EXPECT_EQ(step_of_best(), best);
  return_best(run, best - 1, others[0]);
  EXPECT_EQ(step_of_best(), others[0]);
  EXPECT_EQ(read_file(run / "best" / "model.safetensors"),
            read_file(kept / fmt::format("step-{:06}", others[0]) / "model.safetensors"));
  ::testing::internal::CaptureStderr();
  return_best(run, others[0] - 1, 1);  // never kept
  EXPECT_CONTAINS(::testing::internal::GetCapturedStderr(), "the best of the remaining steps, 1, was not kept");
  EXPECT_EQ(step_of_best(), others[0]);
  return_best(run, others[0] - 1, 0);
  EXPECT_FALSE(fs::exists(run / "best"));
}

// Only files in the checkpoint are read, whatever its state.json lists.
TEST_F(Faults, ACheckpointListsPlainFilesOfItsOwn) {
  for (const char* name : {"/dev/zero", "../../plumb.json", ".", "..", "", "pipe", "link", "folder"}) {
    const fs::path run = copy_of_stopped(), newest = run / "checkpoints" / "step-000009";
    ASSERT_EQ(::mkfifo((newest / "pipe").c_str(), 0600), 0);
    fs::create_symlink("optimizer.safetensors", newest / "link");
    fs::create_directory(newest / "folder");
    Json state = read_json(newest / "state.json");
    const Json mark = state["files"]["optimizer.safetensors"];
    state["files"][name] = mark;
    seal(state);
    write_json(newest / "state.json", state);
    EXPECT_NE(damage_of(newest), "") << name;
    if (std::string(name).find('/') != std::string::npos) {
      EXPECT_CONTAINS(damage_of(newest), std::string("lists '") + name + "'");
      EXPECT_THROW((void)read_snapshot(newest), Error) << name;
    }
    const Told message = resume(run);
    EXPECT_CONTAINS(message.warnings, "going back to step-000006") << name;
    EXPECT_EQ(message.error, "") << name;
  }
  EXPECT_EQ(test::message_of([&] { (void)mark_of("/dev/zero"); }), "/dev/zero: is a device, not a file");
}

// A link may lead to anything of the user's, who received the run from somebody.
TEST_F(Faults, ALinkWithinARunIsRefusedAndWhatItLeadsToStays) {
  const fs::path documents = folder_ / "documents", letter = documents / "letter";
  fs::create_directory(documents);
  std::ofstream(letter) << "Dear reader";
  for (const char* name : {"best", "checkpoints", "best-checkpoints", "checkpoints/step-000012",
                           "checkpoints/step-000009", "best-checkpoints/step-000012", "config.toml", "data.json",
                           "metrics.jsonl", "environment.jsonl", "result.json", "plumb.json"}) {
    for (const bool dangles : {false, true}) {
      const fs::path run = copy_of_stopped(), place = run / name;
      const bool is_file = fs::path(name).has_extension();
      const fs::path original = folder_ / "original";
      fs::remove_all(original);
      if (fs::exists(place)) fs::rename(place, original);  // what it leads to may even be a part of the run
      const fs::path target = dangles                ? documents / "none"
                              : fs::exists(original) ? original
                              : is_file              ? letter
                                                     : documents;
      const auto contents = [&] {
        return fs::is_directory(target) ? test::contents_of_run(target)
                                        : std::map<std::string, std::string>{{"", dangles ? "" : read_file(target)}};
      };
      const auto before = contents();
      fs::create_symlink(target, place);
      const Told message = resume(run);
      EXPECT_NE(message.error, "") << name;
      EXPECT_TRUE(fs::is_symlink(place)) << name;
      EXPECT_EQ(contents(), before) << name;
      EXPECT_EQ(fs::exists(target), !dangles) << name;
      if (name != std::string("plumb.json")) {
        EXPECT_CONTAINS(message.error, place.string() + ": is a symbolic link");
      }
    }
  }
}

// A limit on file sizes simulates a full disk: writing fails in the middle of a file.
TEST_F(Faults, AFullDiskLeavesTheLastGoodCheckpoint) {
  const fs::path run = folder_ / "full";
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  test::Moments moments;
  moments.best = [](const Trainer&) {};  // makes files complete before the limit is set
  moments.stop = [&, left = 5]() mutable {
    struct rlimit small = before;
    small.rlim_cur = 4096;
    if (--left == 0) ::setrlimit(RLIMIT_FSIZE, &small);
    return false;
  };
  const std::string message = test::message_of([&] { run_training(config_, run, moments); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_CONTAINS(message, "writing failed: File too large");
  EXPECT_CONTAINS(message, "the last good checkpoint is " + (run / "checkpoints" / "step-000003").string());
  EXPECT_EQ(resume(run).all(), "");
  EXPECT_TRUE(end_of(run) == end_of(whole_));
}

TEST_F(Faults, AKillBeforeTheFirstFileLeavesADirectoryThatIsUsedAgain) {
  fs::create_directories(folder_ / "new");
  std::ofstream(folder_ / "new" / "plumb.json.plumb-tmp-0123456789abcdef") << "{\"sche";
  EXPECT_EQ(resume(folder_ / "new").all(), "");
  EXPECT_TRUE(end_of(folder_ / "new") == end_of(whole_));
}

}  // namespace
}  // namespace plumb
