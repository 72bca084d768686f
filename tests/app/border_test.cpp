// What comes from outside: nothing that is opened runs, nothing of the user's is lost, and every reader ends.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <map>

#include "plumb/base/checksum.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/run/metrics_file.h"
#include "search/search.h"
#include "support/errors.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using test::Finished;
using test::run_plumb;

using Words = std::vector<std::string>;

class Border : public test::SharedFolder<Border> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    ::setenv("PLUMB_PAYLOAD", path("payload").c_str(), 1);
    ::setenv("XDG_CONFIG_HOME", path("configuration").c_str(), 1);
    test::succeeded(plumb({"data", "synthesize", "--pairs", "200", "--vocabulary", "200", "--out", "data", "-q"}));
    test::succeeded(plumb(test::with_keys({"train", "--data", "data", "--out", "run", "-q"}, kKeys)));
  }
  static void TearDownTestSuite() {
    ::unsetenv("PLUMB_PAYLOAD");
    ::unsetenv("XDG_CONFIG_HOME");
    SharedFolder::TearDownTestSuite();
  }
  static inline const Words kKeys = {"model.d_model=16",        "model.heads=2",           "model.feed_forward=16",
                                     "model.encoder_layers=1",  "model.decoder_layers=1",  "train.batch_tokens=400",
                                     "task.translation.beam=0", "train.steps=2",           "train.log_every=1",
                                     "train.validate_every=2",  "train.checkpoint_every=1"};
  static Finished plumb(const Words& words) { return run_plumb(words, folder_->path()); }

  static void put(const fs::path& name, std::string_view content) {
    fs::create_directories((*folder_ / name).parent_path());
    std::ofstream(*folder_ / name, std::ios::binary) << content;
  }
  static void copy(const fs::path& from, const fs::path& to) {
    fs::remove_all(*folder_ / to);
    fs::create_directories((*folder_ / to).parent_path());
    fs::copy(*folder_ / from, *folder_ / to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }

  /// Whether the library of the tests was loaded since the last question.
  static bool payload_ran() { return fs::remove(*folder_ / "payload"); }

  /// Every file and link of a folder, with its content or target.
  static std::map<std::string, std::string> tree(const fs::path& name) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(*folder_ / name)) {
      const std::string at = fs::relative(entry.path(), *folder_ / name).string();
      files[at] = entry.is_symlink()        ? "-> " + fs::read_symlink(entry.path()).string()
                  : entry.is_regular_file() ? read_file(entry.path())
                                            : "";
    }
    return files;
  }
};

/// The commands that open a run, or a folder of runs.
std::vector<Words> openers(const std::string& run) {
  return {{"runs", run},
          {"report", run, "--out", "page.html"},
          {"judge", "a=" + run, "b=" + run},
          {"probe", run, "--pairs", "2"},
          {"spectrum", run, "--pairs", "2"},
          {"evaluate", run, "--split", "valid"},
          {"translate", run},
          {"generate", run, "--prompt", "a"},
          {"export", run, "--out", "exported"},
          {"average", run, "--out", "averaged"},
          {"diff", run, run},
          {"check", run},
          {"train", "--out", run, "--set", "train.steps=3"},
          {"finetune", run, "--data", "data", "--out", "tuned"}};
}

TEST_F(Border, NothingThatIsOpenedLoadsALibrary) {
  const std::string library = PLUMB_PAYLOAD_LIBRARY;
  const std::string config = read_file(*folder_ / "run" / "config.toml");
  // Without the first and the last line, which seal it.
  const std::string body =
      config.substr(config.find("\n[") + 1, config.rfind("\n", config.size() - 2) - config.find("\n["));
  const std::vector<std::string> spellings = {
      "\nload = [\"%\"]\n", "load = [\"%\"]\n",     "load=[\"%\"]\n",          "\"load\" = [\"%\"]\n",
      "load\t= \"%\"\n",    " load = [\"%\"]\n",    "load  =  [\"%\"]\n",      "load = '%'\n",
      "load = [\n\"%\"]\n", "'load' = ['''%''']\n", "\"lo\\u0061d\" = \"%\"\n"};
  for (const std::string& spelling : spellings) {
    copy("run", "received");
    std::string text = spelling + body;
    text.replace(text.find('%'), 1, library);
    put("received/config.toml", text);
    for (const Words& words : openers("received")) {
      if (spelling != spellings.front() && words[0] != "runs") continue;
      const Finished finished = plumb(words);
      EXPECT_FALSE(payload_ran()) << words[0] << ' ' << spelling << finished.errors;
    }
    const Finished needed = plumb({"translate", "received"});
    EXPECT_EQ(needed.status, 1);
    EXPECT_CONTAINS(needed.errors, "needs the library");
    EXPECT_CONTAINS(needed.errors, "--load " + library);
  }
  for (const char* word : {"--load=", "--load "}) {  // a prompt, not an option
    (void)plumb({"generate", "run", "--prompt", word + library});
    (void)plumb({"generate", "run", "--prompt", "--load", library});
    (void)plumb({"__complete", "generate", word + library, ""});
    EXPECT_FALSE(payload_ran()) << word;
  }
  EXPECT_EQ(plumb({"list", "norm", "--load", library}).status, 0);
  EXPECT_TRUE(payload_ran());
  EXPECT_EQ(plumb({"list", "norm", "--load=" + library}).status, 0);
  EXPECT_TRUE(payload_ran());
  put("configuration/plumb/trusted-libraries", digest_of(library).sha256 + "  payload.so\n");
  EXPECT_EQ(plumb({"probe", "received", "--pairs", "2"}).status, 0);
  EXPECT_TRUE(payload_ran());
  (void)plumb({"runs", "received"});
  EXPECT_FALSE(payload_ran()) << "listing runs needs no library";
  fs::remove_all(*folder_ / "configuration");
}

TEST_F(Border, NothingOfTheUserIsLost) {
  copy("run", "work/run");
  copy("data", "work/out");
  put("documents/letter", "mine");
  // Beside the outputs: what looks like something of Plumb's.
  for (const std::string name :
       {"out.old-2024", "out.tmp-1", "out.plumb-tmp-backup", "run.old-1", "exported.old-thesis"}) {
    put("work/" + name + "/notes", "mine");
    put("work/" + name + "/plumb.json", R"({"kind": "data"})");
  }
  // Within a run: the same, and links.
  put("work/run/notes.tmp-2", "mine");
  put("work/run/my.tmp-plots/figure", "mine");
  put("work/run/best.old-good/weights", "mine");
  put("work/run/checkpoints/step-000001.tmp-7/notes", "mine");
  fs::create_directory_symlink("../../../documents", *folder_ / "work/run/checkpoints/step-000009.set-aside");
  fs::remove_all(*folder_ / "work/run/best");
  fs::create_directory_symlink("../../documents", *folder_ / "work/run/best");
  fs::remove(*folder_ / "work/run/result.json");
  fs::create_symlink("../../documents/letter", *folder_ / "work/run/result.json");
  const auto before = tree("work"), documents = tree("documents");

  (void)plumb({"data", "synthesize", "--pairs", "100", "--vocabulary", "100", "--out", "work/out", "-q"});
  (void)plumb({"train", "--out", "work/run", "--set", "train.steps=4", "-q"});
  (void)plumb({"export", "run", "--out", "work/exported"});
  (void)plumb({"average", "run", "--out", "work/exported"});  // of another kind
  (void)plumb({"new", "norm", "my-norm", "--out", "work/exported"});
  EXPECT_NE(plumb({"data", "synthesize", "--pairs", "100", "--vocabulary", "100", "--out", "documents", "-q"}).status,
            0);

  EXPECT_EQ(tree("documents"), documents);
  const auto after = tree("work");
  for (const auto& [name, content] : before) {
    if (content != "mine") continue;
    ASSERT_TRUE(after.contains(name)) << name;
    EXPECT_EQ(after.at(name), "mine") << name;
  }
}

TEST_F(Border, EveryReaderEndsAtWhatIsNoFile) {
  const Words files = {"config.toml", "metrics.jsonl", "plumb.json", "result.json",
                       "checkpoints/step-000002/state.json"};
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& file : files) {
    for (const char* kind : {"pipe", "zero", "spaces", "folder"}) {
      copy("run", "received");
      const fs::path path = *folder_ / "received" / file;
      fs::remove_all(path);
      if (kind == std::string("pipe")) (void)::mkfifo(path.c_str(), 0600);
      if (kind == std::string("zero")) fs::create_symlink("/dev/zero", path);
      if (kind == std::string("folder")) fs::create_directory(path);
      if (kind == std::string("spaces")) {
        put("received/" + file, " ");
        fs::resize_file(path, uint64_t{128} << 20);  // more than is read of settings
      }
      for (const Words& words : {Words{"runs", "received"}, Words{"translate", "received"}}) {
        if (words[0] == "translate" && file != "config.toml") continue;
        const Finished finished = plumb(words);
        EXPECT_LE(finished.status, 2) << words[0] << ' ' << file << ' ' << kind << finished.errors;
      }
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(5));  // none of them hangs
}

/// The weights and the history of a run, without the times.
std::string trained(const fs::path& run) {
  std::string text = read_file(run / "checkpoints/step-000002/model.safetensors");
  for (const TrainPoint& point : read_metrics(run / "metrics.jsonl"))
    text += fmt::format("{} {}\n", point.step, point.loss);
  return text;
}

// A few faults in the suite; with PLUMB_FAULTS=1000, each call of each kind fails once.
TEST_F(Border, ASystemCallThatFailsIsReportedAndLosesNothing) {
  const auto most = static_cast<int>(test::number_from_environment("PLUMB_FAULTS", 2));
  const std::string whole = trained(*folder_ / "run");
  for (const char* call : {"write", "fsync", "rename", "mkdir", "open"}) {
    for (int number = 1, tried = 0; tried<most; ++tried, number += most> 100 ? 1 : 7) {
      const auto train = [] {
        return plumb(test::with_keys({"train", "--data", "data", "--out", "faulty", "-q"}, kKeys));
      };
      fs::remove_all(*folder_ / "faulty");
      fs::remove(*folder_ / "mark");
      for (const auto& [name, value] : std::map<std::string, std::string>{{"LD_PRELOAD", PLUMB_FAULT_LIBRARY},
                                                                          {"FAULT_CALL", call},
                                                                          {"FAULT_FOLDER", path("faulty")},
                                                                          {"FAULT_MARK", path("mark")},
                                                                          {"FAULT_NUMBER", std::to_string(number)}})
        ::setenv(name.c_str(), value.c_str(), 1);
      const Finished first = train();
      ::unsetenv("LD_PRELOAD");
      if (!fs::exists(*folder_ / "mark")) break;  // there are no more of these calls
      EXPECT_EQ(first.status, 1) << call << ' ' << number << first.errors;
      EXPECT_CONTAINS(first.errors, "plumb: error: ");
      EXPECT_EQ(train().status, 0) << call << ' ' << number;
      EXPECT_EQ(trained(*folder_ / "faulty"), whole) << call << ' ' << number;
    }
  }
}

TEST_F(Border, NamesOfOthersDoNotReachTheTerminalAsTheyAre) {
  const std::string hostile = "\x1b]0;title\x07";
  put("log.csv", "run,arm,step," + hostile + "loss\na,x,1,2\n");
  put("model/config.json", "{\"model_type\": \"gpt2\", \"\\u001b[31mkey\": 1}");
  put("a.toml",
      "[model]\n\""
      "\\u001b[31mkey\" = 1\n");
  copy("run", hostile);
  for (const Words& words : {Words{"judge", "log.csv"}, Words{"import", "model", "--out", "imported"},
                             Words{"probe", "--config", "a.toml", "--data", "data"}, Words{"runs", "."},
                             Words{"probe", hostile, "--pairs", "2"}, Words{"translate", hostile + "missing"}}) {
    const Finished finished = plumb(words);
    EXPECT_LACKS(finished.errors, "\x1b") << words[0];
    if (words[0] == "runs") {  // a table; other output goes to a pipe as it is
      EXPECT_LACKS(finished.output, "\x1b");
    }
  }
  fs::remove_all(*folder_ / hostile);
}

}  // namespace
}  // namespace plumb
