// plumb runs and plumb report on training runs, as people and scripts use them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using test::Finished;
using test::run_plumb;

class RunVerbs : public test::SharedFolder<RunVerbs> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    ASSERT_EQ(plumb({"data", "synthesize", "--pairs", "200", "--vocabulary", "300", "--out", "data"}).status, 0);
    for (const char* rate : {"0.001", "0.01"}) {
      test::succeeded(plumb(test::with_keys(
          {"train", "--data", "data", "--out", std::string("runs/") + rate, "-q"},
          {"model.d_model=16", "model.heads=2", "model.feed_forward=16", "model.encoder_layers=1",
           "model.decoder_layers=1", "train.batch_tokens=500", "task.translation.beam=0", "train.steps=6",
           "train.log_every=2", "train.validate_every=2", std::string("train.learning_rate=") + rate})));
    }
  }
  static Finished plumb(const std::vector<std::string>& arguments) { return run_plumb(arguments, folder_->path()); }
  static std::string read(const std::string& name) { return read_file(*folder_ / name); }
};

TEST_F(RunVerbs, ListsAndSorts) {
  const Finished listed = test::succeeded(plumb({"runs", "runs"}));
  const std::vector<std::string> lines = split(listed.output, '\n');
  EXPECT_TRUE(lines[0].starts_with("run    learning_rate  outcome   step  best validation loss")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("0.001          0.001  finished     6")) << lines[1];
  const Finished sorted = plumb({"runs", "runs", "--sort", "learning_rate", "--descending"});
  EXPECT_TRUE(split(sorted.output, '\n')[1].starts_with("0.01 ")) << sorted.output;
  const Json json = Json::parse(plumb({"runs", "runs/0.001", "runs/0.01", "--json", "-"}).output);
  EXPECT_EQ(json["differs"], Json({"train.learning_rate"}));
  EXPECT_EQ(json["runs"][1]["directory"], "runs/0.01");
  const Finished unknown = plumb({"runs", "runs", "--sort", "learningrate"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_CONTAINS(unknown.errors, "learning_rate");
  EXPECT_EQ(plumb({"runs", "data"}).status, 1);
}

TEST_F(RunVerbs, ListChosenColumnsAlsoAsCsv) {
  const std::vector<std::string> lines =
      split(test::succeeded(plumb({"runs", "runs", "--columns", "run,batch_tokens,train.learning_rate"})).output, '\n');
  EXPECT_EQ(lines[0], "run    batch_tokens  learning_rate");
  EXPECT_EQ(lines[1], "0.001           500          0.001");
  EXPECT_EQ(plumb({"runs", "runs", "--columns", "run,step,loss", "--sort", "run", "--descending", "--csv"})
                .output.substr(0, 42),
            "run,step,best validation loss\n0.01,6," +
                plumb({"runs", "runs/0.01", "--columns", "loss", "--csv"}).output.substr(21, 5));
  EXPECT_TRUE(plumb({"runs", "runs", "--csv"}).output.starts_with("run,learning_rate,outcome,step,"));
  const Finished unknown = plumb({"runs", "runs", "--columns", "run,learningrate"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_CONTAINS(unknown.errors, "did you mean 'learning_rate'?");
}

TEST_F(RunVerbs, ReportWritesDataForOtherPrograms) {
  const Finished done =
      test::succeeded(plumb({"report", "runs", "--out", "c.html", "--csv", "c/csv", "--svg", "c/svg"}));
  EXPECT_CONTAINS(done.output, "c/csv: ");
  EXPECT_TRUE(read("c/csv/table-runs.csv").starts_with("run,learning_rate,"));
  const std::vector<std::string> loss = split(read("c/csv/figure-loss.csv"), '\n');
  EXPECT_TRUE(loss[0].starts_with("series,step,nats per token,low,high,epochs,target tokens,\"seconds of training,"))
      << loss[0];
  EXPECT_TRUE(loss[1].starts_with("\"learning_rate 0.001, training\",1,")) << loss[1];
  EXPECT_CONTAINS(read("c/svg/figure-loss.svg"), ">nats per token</text>");
  const Finished one = test::succeeded(plumb({"report", "runs", "--out", "c.html", "--svg", "one", "--figure", "loss",
                                              "--series", "learning_rate 0.001, training"}));
  EXPECT_CONTAINS(one.output, "one: 1 files");
  EXPECT_LACKS(read("one/figure-loss.svg"), "validation");
  EXPECT_EQ(plumb({"report", "runs", "--out", "c.html", "--figure", "loss"}).status, 2);
}

TEST_F(RunVerbs, LeaveOutWhatAKilledCommandHasLeft) {
  const fs::path averaged = *folder_ / "runs" / "averaged";
  const pid_t child = ::fork();
  if (child == 0) {
    write_directory_atomic(averaged, "run", [](const fs::path& at) {
      fs::copy(*folder_ / "runs" / "0.001", at, fs::copy_options::recursive);
      ::kill(::getpid(), SIGKILL);
    });
  }
  ::waitpid(child, nullptr, 0);
  std::string left;
  for (const auto& entry : fs::directory_iterator(*folder_ / "runs")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("averaged.plumb-tmp-")) left = name;
  }
  ASSERT_TRUE(fs::exists(*folder_ / "runs" / left / "result.json"));
  EXPECT_LACKS(plumb({"runs", "runs"}).output, left);
  EXPECT_EQ(Json::parse(plumb({"runs", "runs", "--json", "-"}).output)["runs"].size(), 2U);
  EXPECT_EQ(plumb({"average", "runs/0.001", "--last", "1", "--out", "runs/averaged"}).status, 0);
  EXPECT_FALSE(fs::exists(*folder_ / "runs" / left));
  fs::remove_all(averaged);
}

TEST_F(RunVerbs, ReportsOneRunInItsDirectoryAndSeveralWhereTold) {
  const Finished one = test::succeeded(plumb({"report", "runs/0.001"}));
  EXPECT_EQ(one.output, "runs/0.001/report.html\n");
  EXPECT_CONTAINS(read("runs/0.001/report.html"), "target tokens");
  const Finished nowhere = plumb({"report", "runs/0.001", "runs/0.01"});
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_CONTAINS(nowhere.errors, "--out");
  const Finished both = test::succeeded(plumb({"report", "runs/0.001", "runs/0.01", "--out", "both.html"}));
  EXPECT_CONTAINS(read("both.html"), "2 training runs");
  EXPECT_EQ(plumb({"report", "data"}).status, 1);
}

TEST_F(RunVerbs, ReportsToStandardOutput) {
  const std::string command = R"("$0" report runs --out /dev/stdout | cat > piped.html)";
  test::succeeded(test::Process("/bin/sh", {"-c", command, test::plumb_program()}, folder_->path()).wait());
  const std::string page = read("piped.html"), end = "</html>";
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_CONTAINS(page, "2 training runs");
  EXPECT_LE(page.size() - page.rfind(end), end.size() + 1) << "something follows the page";
}

TEST_F(RunVerbs, ReportsAsPdf) {
  const std::string command = R"(PATH=/nowhere; export PATH; exec "$0" report runs --out p.html --pdf p.pdf)";
  const Finished alone = test::Process("/bin/sh", {"-c", command, test::plumb_program()}, folder_->path()).wait();
  EXPECT_EQ(alone.status, 1);
  EXPECT_CONTAINS(alone.errors, "hint: install chromium");
  EXPECT_FALSE(fs::exists(*folder_ / "p.pdf"));
  const Finished done = plumb({"report", "runs", "--out", "p.html", "--pdf", "p.pdf"});
  if (done.errors.find("no Chromium is installed") != std::string::npos) GTEST_SKIP() << done.errors;
  EXPECT_EQ(test::succeeded(done).output, "p.html\np.pdf\n");
  const std::string pdf = read("p.pdf");
  EXPECT_TRUE(pdf.starts_with("%PDF-"));
  EXPECT_CONTAINS(pdf.substr(pdf.size() - 10), "%%EOF");
  EXPECT_CONTAINS(pdf, "/MediaBox [0 0 59");  // A4, not Letter
}

TEST_F(RunVerbs, ReportsAStudyWhereverItIsWritten) {
  fs::create_directories(*folder_ / "study");
  fs::copy(test::source_directory() / "tests/report/sample_results.json", *folder_ / "study" / "results.json");
  fs::copy(*folder_ / "runs", *folder_ / "study" / "runs", fs::copy_options::recursive);
  ASSERT_EQ(plumb({"report", "study"}).status, 0);
  const Finished elsewhere = test::succeeded(plumb({"report", "study", "--out", "elsewhere.html"}));
  EXPECT_EQ(elsewhere.output, "elsewhere.html\n");
  EXPECT_EQ(read("elsewhere.html"), read("study/report.html"));
  const Finished runs = test::succeeded(plumb({"report", "study/runs", "--out", "runs.html"}));
  EXPECT_CONTAINS(read("runs.html"), "2 training runs");
}

TEST_F(RunVerbs, MetricsAndEventsSayTheSame) {
  const std::vector<std::string> lines = split(read("runs/0.01/metrics.jsonl"), '\n');
  const Json first = Json::parse(lines[1]);
  for (const char* key : {"loss", "nll", "train_perplexity", "learning_rate", "gradient_norm", "tokens_per_second",
                          "tokens", "ceiling_fraction"})
    EXPECT_TRUE(first.contains(key)) << key;
  EXPECT_DOUBLE_EQ(first["train_perplexity"].get<double>(), std::exp(first["nll"].get<double>()));
  EXPECT_GT(first["ceiling_fraction"].get<double>(), 0.0);
  EXPECT_LT(first["ceiling_fraction"].get<double>(), 1.0);
  const std::string events = test::events_of(*folder_ / "runs/0.01");
  for (const char* tag :
       {"train/loss", "train/nll", "train/perplexity", "train/learning_rate", "train/gradient_norm",
        "train/tokens_per_second", "train/tokens", "train/epoch", "train/ceiling_fraction", "valid/perplexity"})
    EXPECT_CONTAINS(events, std::string(tag) + '\x15') << tag;  // the whole tag: its value follows
}

}  // namespace
}  // namespace plumb
