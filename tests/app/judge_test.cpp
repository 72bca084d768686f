// plumb judge and plumb compare as people and scripts use them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "support/paths.h"
#include "support/process.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

using test::Finished;
using test::run_plumb;

std::string golden(const std::string& name) { return (test::source_directory() / "tests/golden" / name).string(); }

TEST(JudgeVerb, AnswersAndItsStatusSaysSo) {
  const test::TemporaryDirectory folder;
  write_file_atomic(folder.path() / "runs.csv",
                    "arm,seed,eval/loss,grad\n"
                    "base,1,3.265625,NaN\nbase,2,3.28125,NaN\nbase,3,3.296875,NaN\n"
                    "wide,1,3.078125,NaN\nwide,2,3.09375,NaN\nwide,3,3.109375,NaN\n");
  const auto judge = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"judge", "runs.csv"});
    return run_plumb(arguments, folder.path());
  };
  const Finished better = judge({});
  EXPECT_EQ(better.status, 0) << better.errors;
  EXPECT_CONTAINS(better.output, "eval/loss at the end; less is better");
  EXPECT_CONTAINS(better.output,
                  "better than base?\nwide: supported. Its mean is 0.188 lower; the true difference may be ");
  EXPECT_CONTAINS(better.output, "runs.csv, run 4  wide");
  EXPECT_EQ(judge({"--baseline", "wide"}).status, 3);
  EXPECT_EQ(judge({"--margin", "0.1875"}).status, 4);
  EXPECT_EQ(judge({"--metric", "grad", "--better", "less"}).status, 4);  // every run failed
  const Json json = Json::parse(judge({"--looks", "5", "--json", "-"}).output);
  EXPECT_EQ(json["schema"], "plumb.verdicts/1");
  EXPECT_GT(json["pairs"][0]["confidence"], 0.95);
  EXPECT_EQ(json["runs"].size(), 6U);
  EXPECT_EQ(json["runs"][3]["arm"], "wide");
  EXPECT_EQ(json["runs"][3]["seed"], "1");
  EXPECT_EQ(json["runs"][3]["value"], 3.078125);
  EXPECT_EQ(judge({"--looks", "2"}).status, 2);
  EXPECT_EQ(judge({"--where", "arm"}).status, 2);
  EXPECT_EQ(run_plumb({"judge", "nowhere"}, folder.path()).status, 1);
}

// The log of a program that tries one idea after another: a baseline that was repeated, one run of each idea, a crash.
TEST(JudgeVerb, StatusesOfSeveralArms) {
  const test::TemporaryDirectory folder;
  const auto judge = [&](const std::string& table) {
    write_file_atomic(folder.path() / "results.tsv", table);
    return run_plumb({"judge", "results.tsv", "--by", "idea", "--metric", "val_bpb", "--json", "-"}, folder.path());
  };
  const std::string base =
      "idea\tval_bpb\tstatus\nbase\t1.00\tkeep\nbase\t1.01\tkeep\nbase\t0.99\tkeep\nbase\t1.00\tkeep\n";
  const Finished open = judge(base + "wide\t0.99\tkeep\nlr\t0.000000\tcrash\n");
  EXPECT_EQ(open.status, 4) << open.errors;
  const Json document = Json::parse(open.output);
  EXPECT_EQ(document["exit_status"], 4);
  EXPECT_EQ(document["arms"][2]["failed"], 1);
  EXPECT_EQ(document["runs"][5]["state"], "failed (crash)");
  EXPECT_TRUE(document["runs"][5]["value"].is_null());
  EXPECT_EQ(document["pairs"][1]["reason"], "failed: base 0 of 4, lr 1 of 1");
  EXPECT_EQ(judge(base + "wide\t0.90\tkeep\nlr\t0.000000\tOOM\n").status, 0);
  EXPECT_EQ(judge(base + "wide\t1.20\tkeep\nlr\t1.20\tdiscard\n").status, 3);
}

TEST(JudgeVerb, KeepsASeriesOfCandidates) {
  const test::TemporaryDirectory folder;
  std::map<std::string, std::vector<double>> runs;
  const auto ask = [&](const std::string& candidate, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"judge", "--gate", "gate.jsonl"};
    for (const std::string& arm : {std::string("base"), candidate}) {
      std::string table = "seed,valid_loss\n";
      for (size_t i = 0; i < runs[arm].size(); ++i) table += fmt::format("{},{:.4f}\n", i, runs[arm][i]);
      write_file_atomic(folder.path() / (arm + ".csv"), table);
      arguments.push_back(arm + "=" + arm + ".csv");
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_plumb(arguments, folder.path());
  };
  runs = {{"base", {2.31, 2.33}}, {"same", {2.32}}, {"worse", {2.6}}, {"better", {1.9}}};
  const Finished begun = ask("same", {"--looks", "8"});
  EXPECT_EQ(begun.status, 4) << begun.errors;
  EXPECT_CONTAINS(begun.output, "same: more seeds, the next of base (base has 2 of 3 seeds)");
  for (const double loss : {2.32, 2.30, 2.34}) runs["base"].push_back(loss);
  EXPECT_EQ(ask("worse").status, 3);
  int status = 4;
  for (int i = 1; i < 20 && status == 4; ++i) {
    const Finished asked = ask("better", {"--json", "-"});
    status = asked.status;
    const Json json = Json::parse(asked.output);
    EXPECT_EQ(json["schema"], "plumb.gate/1");
    EXPECT_EQ(json["exit_status"], status);
    if (const std::string next = json["next"]; !next.empty())
      runs[next].push_back((next == "base" ? 2.31 : 1.9) + 0.001 * i);
  }
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ask("better").status, 0);
  runs["other"] = {2.3};
  const Finished late = ask("other");
  EXPECT_EQ(late.status, 2);
  EXPECT_CONTAINS(late.errors, "the best so far is better, not base");
  EXPECT_EQ(ask("better", {"--looks", "9"}).status, 2);
  EXPECT_EQ(ask("better", {"--by-seed"}).status, 2);
  EXPECT_EQ(run_plumb({"judge", "--gate", "gate.jsonl", "base=base.csv"}, folder.path()).status, 2);
}

// Logs as other programs write them, whatever they call their files (tests/judge/run_files_test.cpp has more kinds).
TEST(JudgeVerb, RunsOfOtherProgramsAreJudgedAndDrawn) {
  const test::TemporaryDirectory folder;
  for (int seed = 1; seed <= 3; ++seed) {
    for (const std::string arm : {"base", "wide"}) {
      std::string text = "number of parameters: 10.65M\n";
      for (int step = 0; step <= 500; step += 250)
        text += fmt::format("step {}: train loss 2.1, val loss {:.3f}\n", step,
                            (arm == "wide" ? 1.5 : 2.0) + 0.001 * seed + 1.0 / (step + 1));
      std::filesystem::create_directories(folder.path() / arm / std::to_string(seed));
      write_file_atomic(folder.path() / arm / std::to_string(seed) / "train.log", text);
    }
  }
  const Finished hint = run_plumb({"judge", "base=base", "wide=wide"}, folder.path());
  EXPECT_EQ(hint.status, 1);
  EXPECT_CONTAINS(hint.errors, "--line 'step {step}");
  const Finished judged = run_plumb(
      {"judge", "base=base", "wide=wide", "--line", "step {step}: train loss {}, val loss {val_loss}"}, folder.path());
  EXPECT_EQ(judged.status, 0) << judged.errors;
  EXPECT_CONTAINS(judged.output, "wide: supported");
  for (const std::string arm : {"base", "wide"})
    write_file_atomic(folder.path() / arm / "points.csv", "step,run,val_loss\n1,a,2\n2,a,1.5\n1,b,2\n2,b,1.25\n");
  const Finished page = run_plumb({"report", "base", "wide", "--out", "page.html", "--csv", "csv"}, folder.path());
  EXPECT_EQ(page.status, 0) << page.errors;
  EXPECT_CONTAINS(read_file(folder.path() / "csv" / "figure-val_loss.csv"), "1.25");
  EXPECT_EQ(run_plumb({"report", "nowhere"}, folder.path()).status, 1);
}

TEST(JudgeVerb, JudgesRunsOfPlumb) {
  const test::TemporaryDirectory folder;
  ASSERT_EQ(
      run_plumb({"data", "synthesize", "--pairs", "100", "--vocabulary", "200", "--out", "data"}, folder.path()).status,
      0);
  for (const char* rate : {"0.001", "0.1"}) {
    for (const char* seed : {"1", "2", "3"}) {
      run_plumb(test::with_keys({"train", "--data", "data", "--out", std::string("runs/") + rate + "-" + seed, "-q"},
                                {"model.d_model=8", "model.heads=1", "model.feed_forward=8", "model.encoder_layers=1",
                                 "model.decoder_layers=1", "train.batch_tokens=300", "task.translation.beam=0",
                                 "train.steps=4", "train.log_every=2", "train.validate_every=2",
                                 std::string("train.learning_rate=") + rate, std::string("train.seed=") + seed}),
                folder.path());
    }
  }
  const Finished judged = run_plumb({"judge", "runs", "--by", "learning_rate", "--json", "-"}, folder.path());
  const Json json = Json::parse(judged.output);
  EXPECT_EQ(json["metric"], "valid_loss");
  EXPECT_EQ(json["arms"][0]["name"], "0.001");
  EXPECT_EQ(json["arms"][1]["runs"], 3);
  // A sweep of one arm alone is nothing to judge.
  EXPECT_EQ(run_plumb({"judge", "a=runs"}, folder.path()).status, 2);
}

TEST(CompareVerb, ComparesEvaluations) {
  const test::TemporaryDirectory folder;
  for (const char* model : {"gpt2", "llama"}) {
    const Finished evaluated = run_plumb({"evaluate", golden(std::string("evaluation/") + model), "--tasks",
                                          golden("evaluation/choices.jsonl") + "," + golden("evaluation/texts.jsonl"),
                                          "--out", model, "--samples", "-q"},
                                         folder.path());
    ASSERT_EQ(evaluated.status, 0) << evaluated.errors;
  }
  const Finished text = run_plumb({"compare", "gpt2", "llama"}, folder.path());
  EXPECT_EQ(text.status, 0) << text.errors;
  const Json json = Json::parse(run_plumb({"compare", "gpt2", "llama", "--json", "-"}, folder.path()).output);
  EXPECT_EQ(json["schema"], "plumb.comparison/1");
  const Json results = read_json(folder.path() / "llama" / "results.json")["tasks"];
  for (const Json& one : json["differences"]) {
    const Json& metrics = results[one["task"].get<std::string>()]["metrics"];
    EXPECT_NEAR(one["second"].get<double>(), metrics[one["metric"].get<std::string>()]["value"].get<double>(), 1e-9)
        << one;
  }
  EXPECT_EQ(run_plumb({"compare", "gpt2", "nowhere"}, folder.path()).status, 1);
  EXPECT_EQ(run_plumb({"compare", "gpt2", "gpt2", "--metric", "bleu"}, folder.path()).status, 2);
  // The same answers twice are two samples of each item.
  std::filesystem::create_directory(folder.path() / "twice");
  for (const char* copy : {"a", "b"})
    std::filesystem::copy(folder.path() / "gpt2", folder.path() / "twice" / copy,
                          std::filesystem::copy_options::recursive);
  EXPECT_EQ(run_plumb({"compare", "twice", "gpt2"}, folder.path()).status, 1);
  const Finished repeated = run_plumb({"compare", "twice", "twice", "--repeated", "--json", "-"}, folder.path());
  ASSERT_EQ(repeated.status, 0) << repeated.errors;
  const Json rows = Json::parse(repeated.output)["differences"];
  EXPECT_EQ(rows[0]["samples"], 2);
  EXPECT_EQ(rows[0]["sampling_error"], 0);
  EXPECT_EQ(rows[1]["metric"], "acc pass@2");
  EXPECT_EQ(rows[3]["metric"], "acc flip rate");
  EXPECT_EQ(rows[3]["first"], 0);
  EXPECT_EQ(run_plumb({"compare", "twice", "twice", "--repeated", "--pass-at", "3"}, folder.path()).status, 2);
  EXPECT_EQ(run_plumb({"compare", "gpt2", "llama", "--pass-at", "2"}, folder.path()).status, 2);
}

TEST(DiffVerb, NamesWhereModelsPart) {
  const test::TemporaryDirectory folder;
  const std::string model = golden("huggingface/gpt2");
  const Finished same = run_plumb({"diff", model, model}, folder.path());
  EXPECT_EQ(same.status, 0) << same.errors;
  EXPECT_CONTAINS(same.output, "They compute the same");
  std::filesystem::copy(model, folder.path() / "changed");
  std::string config = read_file(folder.path() / "changed" / "config.json");
  const size_t at = config.find("\"layer_norm_epsilon\": ");
  ASSERT_NE(at, std::string::npos);
  const size_t value = at + 22;
  config.replace(value, config.find_first_of(",\n", value) - value, "0.01");
  write_file_atomic(folder.path() / "changed" / "config.json", config);
  const Finished parted = run_plumb({"diff", model, "changed"}, folder.path());
  EXPECT_EQ(parted.status, 3) << parted.errors;
  EXPECT_CONTAINS(parted.output, "model.norm_eps");
  EXPECT_CONTAINS(parted.output, "They part at decoder.layers.0.self_attention.input");
  EXPECT_EQ(run_plumb({"diff", model, golden("huggingface/bert_body")}, folder.path()).status, 1);
}

}  // namespace
}  // namespace plumb
