// [transfer]: its stages, which arms share, its data, and its numbers, recomputed from the runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <set>

#include "plumb/base/error.h"
#include "plumb/data/directory.h"
#include "plumb/data/prepare_labels.h"
#include "plumb/run/directory.h"
#include "plumb/study/study.h"
#include "plumb/study/transfer_data.h"
#include "plumb/study/transfer_stages.h"
#include "study/parts.h"
#include "support/entries.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class TransferPart : public ::testing::Test {
 protected:
  TransferPart() {
    write_labels(folder_ / "train.tsv", 60);
    write_labels(folder_ / "valid.tsv", 20);
    config_.data.pairs = 300;
    config_.data.block = 12;
    config_.data.vocabulary = 120;
    config_.model.kind = "decoder";
    config_.model.d_model = 8;
    config_.model.feed_forward = 12;
    config_.model.heads = 2;
    config_.model.encoder_layers = config_.model.decoder_layers = config_.model.layers = 2;
    config_.model.embedding_size = 8;
    config_.model.hidden_size = 10;
    config_.model.dropout = 0;
    config_.train.steps = 3;
    config_.train.batch_tokens = 200;
    config_.train.warm_up = 0;
    config_.train.decay_start = 1;
    part_.train = (folder_ / "train.tsv").string();
    part_.valid = (folder_ / "valid.tsv").string();
    part_.arms = {"scratch", "complete"};
    part_.seeds = 2;
    part_.epochs = part_.few_epochs = 4;
    part_.batch_tokens = 200;
    part_.models = {{"decoder", "", 0, 1e-3, {1e-2}}};
  }

  /// Three labels; of every six examples, three have the first and one the last.
  static void write_labels(const fs::path& file, int examples) {
    std::ofstream lines(file);
    for (int i = 0; i < examples; ++i) {
      const char* label = i % 6 < 3 ? "one" : i % 6 < 5 ? "two" : "six";
      lines << label << "\tthe " << label << " man sees number " << i << '\n';
    }
  }

  [[nodiscard]] fs::path out() const { return folder_ / "out"; }
  [[nodiscard]] Json run() const { return run_in(out()); }
  [[nodiscard]] Json run_in(const fs::path& out) const {
    StudyConfig config = config_;
    config.parts["transfer"] = Options(part_);
    return run_study(config, out);
  }

  /// The directories of runs whose names begin with this, by name without the hash.
  [[nodiscard]] std::map<std::string, fs::path> runs(const std::string& beginning) const {
    std::map<std::string, fs::path> found;
    for (const auto& entry : fs::directory_iterator(out() / "runs")) {
      const std::string name = entry.path().filename();
      if (!name.starts_with(beginning)) continue;
      EXPECT_TRUE(found.emplace(name.substr(0, name.rfind('-')), entry.path()).second) << name;
    }
    return found;
  }

  /// Makes the study claim that pretraining lowers this error by half a point, as a paper does.
  void claim_pretraining_lowers(const std::string& error) {
    StudyClaim& claim = config_.study.claims.emplace_back();
    claim.text = "Pretraining lowers the error";
    claim.source = "a paper";
    claim.quantity = error;
    claim.of = {"transfer.arm=scratch"};
    claim.against = {"transfer.arm=complete"};
    claim.above = 0.5;
  }

  /// A run's final error in percent.
  static double error_of_run(const fs::path& run) {
    return 100 - 100 * read_json(run / "result.json").at("metrics").at("accuracy").get<double>();
  }

  test::TemporaryDirectory folder_;
  StudyConfig config_;
  TransferStudy part_;
};

std::set<double> rate_factors(const RunConfig& run) {
  std::set<double> factors;
  for (const ParameterGroup& group : run.train.groups) factors.insert(group.learning_rate_factor);
  return factors;
}

TEST_F(TransferPart, ArmsDifferInOneThingAndShareTheirStages) {
  part_.arms = {"scratch",    "complete",   "no-text",     "no-discriminative", "no-unfreezing",
                "no-slanted", "last-layer", "all-at-once", "chain-thaw"};
  part_.seeds = 1;
  part_.epochs = 5;
  part_.models.push_back({"awd-lstm", "lstm", 2e-3, 1e-3, {1e-2}});
  part_.models.push_back({"encoder", "", 0, 1e-3, {1e-2}});
  config_.study.claims = test::claims_of("ulmfit");
  for (const StudyClaim& claim : test::claims_of("finetuning")) config_.study.claims.push_back(claim);
  const Json results = run();
  for (const std::string kind : {"decoder", "awd-lstm", "encoder"}) {
    const std::string prefix = fmt::format("transfer-{}-", kind);
    const auto all = runs(prefix);
    ASSERT_EQ(all.size(), 11U) << kind;  // two language models, nine classifiers
    const fs::path pretrained = all.at(prefix + "pretrained"), text = all.at(prefix + "text");
    EXPECT_EQ(load_run_config(pretrained).model.kind, kind);
    EXPECT_EQ(load_run_config(pretrained).train.learning_rate, kind == "awd-lstm" ? 2e-3 : config_.train.learning_rate);
    EXPECT_EQ(load_run_config(pretrained).model.initialization == "lstm", kind == "awd-lstm");
    EXPECT_EQ(fs::path(load_run_config(text).initial_weights), latest_checkpoint(fs::absolute(pretrained)));
    const auto classifier = [&](const std::string& arm) {
      return load_run_config(all.at(fmt::format("{}{}-labels60-lr0.01-seed1", prefix, arm)));
    };
    const RunConfig complete = classifier("complete");
    EXPECT_EQ(fs::path(complete.initial_weights), latest_checkpoint(fs::absolute(text)));
    // Layers 1 and 0 and the embeddings of a two-layer model: η/2.6, η/2.6², η/2.6³, each frozen one epoch longer.
    EXPECT_EQ(rate_factors(complete).size(), 3U);
    EXPECT_NEAR(*rate_factors(complete).begin(), std::pow(2.6, -3), 1e-15);
    std::set<std::string> frozen;
    for (const ParameterGroup& group : complete.train.groups) frozen.insert(group.frozen_until.text());
    EXPECT_EQ(frozen, (std::set<std::string>{"1e", "2e", "3e"}));
    EXPECT_EQ(complete.train.schedule, "constant * slanted_triangular");
    EXPECT_EQ(complete.train.steps, Duration::parse("5e"));
    // Each differs from the complete recipe only as its name says.
    RunConfig changed = complete;
    changed.initial_weights = latest_checkpoint(fs::absolute(pretrained)).string();
    EXPECT_EQ(to_toml(classifier("no-text")), to_toml(changed));
    changed = complete;
    changed.train.schedule = "constant";
    EXPECT_EQ(to_toml(classifier("no-slanted")), to_toml(changed));
    changed = complete;
    for (ParameterGroup& group : changed.train.groups) group.learning_rate_factor = 1;
    EXPECT_EQ(to_toml(classifier("no-discriminative")), to_toml(changed));
    changed = complete;
    for (ParameterGroup& group : changed.train.groups) group.frozen_until = 0;
    EXPECT_EQ(to_toml(classifier("no-unfreezing")), to_toml(changed));
    changed.train.groups.clear();
    EXPECT_EQ(to_toml(classifier("all-at-once")), to_toml(changed));
    changed.initial_weights.clear();
    EXPECT_EQ(to_toml(classifier("scratch")), to_toml(changed));
    for (const ParameterGroup& group : classifier("last-layer").train.groups) EXPECT_EQ(group.frozen_until, -1);
    EXPECT_NE(to_toml(classifier("chain-thaw")), to_toml(complete));
    EXPECT_EQ(test::with_id(results["figures"], "transfer_recipes_" + kind)["series"][0]["y"].size(), 9U);
  }
  EXPECT_EQ(test::with_id(results["tables"], "transfer_language_models")["rows"].size(), 6U);
  std::set<std::string> claims;
  for (const Json& verdict : results["verdicts"]) {
    claims.insert(verdict["claim"].get<std::string>());
    EXPECT_EQ(verdict["verdict"], "this setting cannot test it") << verdict;  // a generated corpus
  }
  EXPECT_EQ(claims, (std::set<std::string>{"Gradual unfreezing helps a recurrent model",
                                           "Discriminative rates help a recurrent model",
                                           "The slanted triangular schedule helps a recurrent model",
                                           "Training the last layer alone is worse than the complete recipe",
                                           "Fine-tuning on the task's text before its labels lowers the error",
                                           "Pretraining lowers the error (awd-lstm, all labels)",
                                           "Gradual unfreezing does not help a Transformer (decoder)",
                                           "Pretraining lowers the error (decoder, all labels)",
                                           "Gradual unfreezing does not help a Transformer (encoder)",
                                           "Pretraining lowers the error (encoder, all labels)"}));
}

TEST_F(TransferPart, ReportsTheErrorsOfItsRuns) {
  part_.arms = {"complete", "no-unfreezing"};
  part_.models[0].learning_rates = {3e-2, 1e-3};
  config_.study.claims = test::claims_of("finetuning");
  const Json results = run();
  // By brute force: the rate with the smallest mean error, and the differences of its runs, seed by seed.
  const auto all = runs("transfer-decoder-");
  const auto best = [&](const std::string& arm) {
    std::vector<double> errors;
    double least = std::numeric_limits<double>::infinity();
    for (const char* rate : {"0.001", "0.03"}) {
      std::vector<double> of_rate;
      for (int seed = 1; seed <= 2; ++seed)
        of_rate.push_back(
            error_of_run(all.at(fmt::format("transfer-decoder-{}-labels60-lr{}-seed{}", arm, rate, seed))));
      if (of_rate[0] + of_rate[1] < least) {
        least = of_rate[0] + of_rate[1];
        errors = of_rate;
      }
    }
    return errors;
  };
  const std::vector<double> complete = best("complete"), without = best("no-unfreezing");
  const Json verdict =
      test::entry(results["verdicts"], "claim", "Gradual unfreezing does not help a Transformer (decoder)");
  EXPECT_CONTAINS(verdict["setting"].get<std::string>(), "decoder of ") << verdict;
  EXPECT_NEAR(verdict["effect"]["mean"].get<double>(), (without[0] - complete[0] + without[1] - complete[1]) / 2, 1e-9);
  EXPECT_EQ(verdict["effect"]["seeds"], 2);
  const Json bars = test::with_id(results["figures"], verdict["figure"].get<std::string>())["series"][0];
  EXPECT_EQ(bars["x"], Json::array({"complete recipe", "without gradual unfreezing"}));
  // Student's t with one degree of freedom is 12.7062 at 97.5%; the standard error of two values is half their
  // distance.
  const auto expect_bar = [&](size_t i, const std::vector<double>& errors) {
    const double mean = (errors[0] + errors[1]) / 2, half = 12.7062 * std::abs(errors[0] - errors[1]) / 2;
    EXPECT_NEAR(bars["y"][i].get<double>(), mean, 1e-9);
    EXPECT_NEAR(bars["low"][i].get<double>(), mean - half, 1e-3);
    EXPECT_NEAR(bars["high"][i].get<double>(), mean + half, 1e-3);
  };
  expect_bar(0, complete);
  expect_bar(1, without);
  const Json rows = test::with_id(results["tables"], "transfer_runs")["rows"];
  ASSERT_EQ(rows.size(), 8U);
  for (const Json& row : rows) {
    const std::string arm = row[1] == "complete recipe" ? "complete" : "no-unfreezing";
    const std::string name =
        fmt::format("transfer-decoder-{}-labels60-lr{:g}-seed{}", arm, row[3].get<double>(), row[4].get<int64_t>());
    EXPECT_NEAR(row[7].get<double>(), error_of_run(all.at(name)), 1e-9) << name;
  }
  // Runs with different seeds start from the same weights and see their data in a different order.
  const auto seeded = [&](int seed) {
    return load_run_config(all.at(fmt::format("transfer-decoder-complete-labels60-lr0.03-seed{}", seed)));
  };
  EXPECT_EQ(seeded(1).initial_weights, seeded(2).initial_weights);
  EXPECT_EQ(seeded(2).train.seed, 2);
  // A second run finds everything trained.
  std::map<fs::path, fs::file_time_type> written;
  for (const auto& [name, path] : all) written[path] = fs::last_write_time(path / "result.json");
  const Json again = run();
  EXPECT_EQ(again["figures"], results["figures"]);
  EXPECT_EQ(again["tables"], results["tables"]);
  for (const auto& [path, time] : written) EXPECT_EQ(fs::last_write_time(path / "result.json"), time) << path;
}

TEST_F(TransferPart, FewerLabelsAreDrawnByTheSeedWithEachLabel) {
  part_.examples = {12};
  claim_pretraining_lowers("classification_error_decoder_labels12");
  for (int i = 0; i < 30; ++i)  // blank: ignored
    std::ofstream(folder_ / "train.tsv", std::ios::app) << "two\t \n";
  const Json results = run();
  const fs::path data = out() / "transfer";
  const LabeledText train = read_labeled_text(folder_ / "train.tsv", {});
  std::set<std::string> whole;
  for (const LabeledExample& example : train.examples) whole.insert(example.first);
  std::vector<std::set<std::string>> drawn;
  for (const char* name : {"labels-12-seed1", "labels-12-seed2"}) {
    const DataDirectory few = DataDirectory::open(data / name);
    EXPECT_EQ(few.labels_of("valid").size(), 20U);
    std::map<std::string, int> counts;
    for (const int32_t label : few.labels_of("train")) ++counts[few.labels()[static_cast<size_t>(label)]];
    // In proportion: 30, 20 and 10 of 60.
    EXPECT_EQ(counts, (std::map<std::string, int>{{"one", 6}, {"six", 2}, {"two", 4}}));
    const std::vector<std::string> lines = few.raw_source("train");
    drawn.emplace_back(lines.begin(), lines.end());
    for (const std::string& line : lines) EXPECT_EQ(whole.count(line), 1U) << line;
  }
  EXPECT_NE(drawn[0], drawn[1]);
  // The task's text has no labels and, like all data, the vocabulary of the general text.
  const DataDirectory text = DataDirectory::open(data / "text");
  EXPECT_EQ(text.task(), "language-modeling");
  EXPECT_EQ(text.target_vocabulary(), DataDirectory::open(out() / "data").target_vocabulary());
  const Json figure = test::with_id(results["figures"], "transfer_labels");
  ASSERT_EQ(figure["series"].size(), 2U);
  for (const Json& series : figure["series"]) EXPECT_EQ(series["x"], Json::array({12, 60}));
  EXPECT_EQ(figure["series"][0]["style"], "dashed");
  ASSERT_EQ(results["verdicts"].size(), 1U);
  EXPECT_EQ(results["verdicts"][0]["figure"], "transfer_labels");
  const auto all = runs("transfer-decoder-scratch-labels12-");
  ASSERT_EQ(all.size(), 2U);
  for (const auto& [name, path] : all)
    EXPECT_TRUE(load_run_config(path).data.find("labels-12-seed") != std::string::npos);
}

TEST_F(TransferPart, LabelsOfADataDirectoryAreTheSameLabels) {
  part_.arms = {"complete"};
  part_.seeds = 1;
  const Json of_files = run();
  LabelOptions options;
  options.train = folder_ / "train.tsv";
  options.valid = folder_ / "valid.tsv";
  options.tokenizer.vocabulary = 60;  // not used
  prepare_labels(options, folder_ / "labels");
  part_.train.clear();
  part_.valid.clear();
  part_.labels = (folder_ / "labels").string();
  const Json of_directory = run_in(folder_ / "other");
  EXPECT_EQ(of_directory["figures"], of_files["figures"]);
}

TEST_F(TransferPart, WithoutAStageOnTextTheClassifierBeginsWithThePretrainedModel) {
  part_.arms = {"complete", "no-text"};
  part_.text_epochs = 0;
  part_.seeds = 1;
  (void)run();
  const auto all = runs("transfer-decoder-");
  ASSERT_EQ(all.size(), 2U);  // "no-text" would be the same arm
  EXPECT_EQ(fs::path(load_run_config(all.at("transfer-decoder-complete-labels60-lr0.01-seed1")).initial_weights),
            latest_checkpoint(fs::absolute(all.at("transfer-decoder-pretrained"))));
}

/// Except in the arm that does not start from its weights.
TEST_F(TransferPart, WhatFollowsADivergedRunDivergedToo) {
  config_.train.optimizer = "sgd";
  config_.train.learning_rate = 1e30;
  config_.train.clip_norm = 0;
  claim_pretraining_lowers("classification_error_decoder");
  const Json results = run();
  for (const Json& row : test::with_id(results["tables"], "transfer_runs")["rows"]) {
    EXPECT_EQ(row[7].is_number(), row[1] == "from scratch") << row;
    EXPECT_EQ(row[7].is_null(), row[1] == "complete recipe") << row;
  }
  const Json& verdict = results["verdicts"].at(0);
  EXPECT_CONTAINS(verdict["reason"].get<std::string>(), "0 and 2 of 2 runs failed") << verdict;
  EXPECT_EQ(runs("transfer-decoder-").size(), 3U);
  for (const auto& [name, path] : runs("transfer-decoder-scratch-"))
    EXPECT_TRUE(load_run_config(path).initial_weights.empty()) << name;
}

// Its data are prepared for that, which measures nothing.
TEST_F(TransferPart, ClaimsAreRegisteredBeforeItIsMeasured) {
  claim_pretraining_lowers("classification_error_decoder");
  config_.parts["transfer"] = Options(part_);
  EXPECT_EQ(register_claims(config_, out()).judged_in,
            std::vector<std::vector<std::string>>{{"scratch against complete"}});
  EXPECT_TRUE(fs::exists(out() / "measurements" / "transfer-data-labels.json"));
  const Json results = run();
  const Json& verdict = test::entry(results["verdicts"], "claim", "Pretraining lowers the error");
  EXPECT_CONTAINS(verdict["source"].get<std::string>(), "a paper; registered on 20");
  for (const char* file : {"registration.json", "results.json"}) fs::remove(out() / file);
  EXPECT_CONTAINS(test::message_of([&] { register_claims(config_, out()); }), "has been measured");
}

TEST_F(TransferPart, MistakesAreErrorsBeforeAnythingIsTrained) {
  const auto message = [&](const std::string& toml) {
    const Error error = test::error_of([&] { (void)read_study(Config::from_string(toml, "test")); });
    return error.what() + ("; " + error.hint());
  };
  const std::string model = "[[transfer.model]]\nkind = \"decoder\"\n";
  EXPECT_EQ(message("[transfer]\ntrain = \"a.tsv\"\n" + model), "accepted; ");
  EXPECT_CONTAINS(message("[transfer]\n" + model), "transfer.labels");
  EXPECT_CONTAINS(message("[transfer]\ntrain = \"a\"\nlabels = \"b\"\n" + model), "exactly one source");
  EXPECT_CONTAINS(message("[transfer]\nlabels = \"b\"\nvalid = \"c\"\n" + model), "belongs to transfer.train");
  EXPECT_CONTAINS(message("[transfer]\ntrain = \"a.tsv\"\n"), "[[transfer.model]]");
  EXPECT_CONTAINS(message("[transfer]\ntrain = \"a.tsv\"\n" + model + model), "twice");
  EXPECT_CONTAINS(message("[transfer]\ntrain = \"a.tsv\"\narms = [\"thaw\"]\n" + model),
                  "transfer.arms = \"thaw\" must be");
  EXPECT_CONTAINS(message("[transfer]\ntrain = \"a.tsv\"\nseeds = 0\n" + model), "transfer.seeds");

  for (const char* line : {"rate_divisor = 0.5", "arms = []", "examples = [20, 10, 20]"}) {
    const std::string key = std::string(line).substr(0, std::string(line).find(' '));
    EXPECT_CONTAINS(message("[transfer]\ntrain = \"a.tsv\"\n" + std::string(line) + "\n" + model), "transfer." + key)
        << line;
  }
  EXPECT_CONTAINS(message("[transfer]\ntrain = \"a.tsv\"\n" + model + "pretraining_rate = inf\n"), "pretraining_rate");

  const auto refused = [&](const std::string& part) {
    const Error error = test::error_of([&] { (void)run(); });
    EXPECT_FALSE(fs::exists(out() / "runs"));
    return (error.what() + ("; " + error.hint())).find(part) != std::string::npos;
  };
  part_.epochs = 3;  // enough for the head and two layers, but not the embeddings
  EXPECT_TRUE(refused("'complete' of a model of kind \"decoder\" needs at least 4 to train all of its layers"));
  part_.epochs = 4;
  part_.examples = {60};
  EXPECT_TRUE(refused("of 60 training examples"));
  part_.examples.clear();
  config_.data.block = 0;
  EXPECT_TRUE(refused("has data for language-modeling, not for translation"));
  fs::remove_all(out());
  EXPECT_TRUE(refused("no running text"));
}

TEST(TransferStudies, ThatComeWithPlumbTrainEveryLayer) {
  for (const char* name : {"ulmfit.toml", "finetuning.toml"}) {
    const StudyConfig study = read_study(Config::from_file(test::source_directory() / "studies" / name));
    const TransferStudy* transfer = study.part<TransferStudy>();
    ASSERT_NE(transfer, nullptr) << name;
    for (const TransferModel& model : transfer->models) {
      ModelConfig config = study.model;
      config.kind = model.kind;
      const ModelDepth depth = depth_of(config);
      const int64_t layers = std::max(depth.encoder_layers, depth.decoder_layers);
      EXPECT_EQ(layers, 2) << model.kind;
      // The head, the layers and the embeddings, one per epoch.
      EXPECT_GE(std::min(transfer->epochs, transfer->few_epochs), layers + 2) << model.kind;
      EXPECT_EQ(usual_recipe(model.kind, transfer->arms), model.kind == "awd-lstm" ? "complete" : "all-at-once");
    }
  }
}

}  // namespace
}  // namespace plumb
