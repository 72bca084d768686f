// Studies of minimal size.
#include "plumb/study/study.h"
#include "plumb/base/input.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

#include "plumb/base/files.h"
#include "plumb/base/text.h"
#include "plumb/data/batches.h"
#include "plumb/io/safetensors.h"
#include "plumb/ops/threads.h"
#include "plumb/report/tensorboard.h"
#include "study/parts.h"
#include "study/small_study.h"
#include "support/contains.h"
#include "support/entries.h"
#include "support/paths.h"

namespace plumb {
namespace {

using test::entry;

constexpr const char* kGradientsAndSpectrum = R"(
[gradients]
layers = 2
seeds = 2
pairs = 5
[spectrum]
layers = 1
pairs = 4
steps = 3
batch_tokens = 256
layer_steps = 2
seeds = 2
seed_steps = 3
)";

TEST(Study, TakesEveryScheme) {
  StudyConfig config = test::small_study();
  config.parts = test::parts(std::string(kGradientsAndSpectrum) + R"(
[depth]
layers = [1, 2, 3]
seeds = 1
pairs = 5
[training]
warm_ups = [0, 2]
learning_rates = [1e-3]
layers = [1, 2]
[collapse]
layers = 2
seeds = 2
pairs = 5
steps = 3
)");
  config.study.claims = test::claims_of("residual_schemes");
  for (StudyClaim& claim : config.study.claims) {  // of the depths and the warm-up that are trained here
    replace_all(claim.quantity, "_layers6", "_layers1");
    replace_all(claim.quantity, "_layers12", "_layers2");
    for (std::string& setting : claim.against) replace_all(setting, "warm_up=100", "warm_up=2");
  }
  for (const StudyClaim& claim : test::claims_of("collapse")) config.study.claims.push_back(claim);
  const test::TemporaryDirectory directory;
  const Json results = run_study(config, directory / "out");
  const std::set<std::string> judgments = {"supported", "contradicted", "no effect of that size", "undecided",
                                           "this setting cannot test it"};
  for (const Json& verdict : results["verdicts"]) {
    EXPECT_EQ(judgments.count(verdict["verdict"].get<std::string>()), 1U) << verdict;
    for (const char* key : {"claim", "source", "setting", "quantity", "rule"})
      EXPECT_NE(verdict[key].get<std::string>(), "") << key << verdict;
    // A generated corpus cannot support a claim about training.
    if (verdict["claim"].get<std::string>().find("without warm-up") != std::string::npos) {
      EXPECT_EQ(verdict["verdict"], "this setting cannot test it");
    }
  }
  for (const StudyClaim& claim : config.study.claims)
    EXPECT_EQ(entry(results["verdicts"], "claim", claim.text)["source"], claim.source);
  EXPECT_EQ(results["verdicts"].size(), config.study.claims.size());
  EXPECT_TRUE(results.dump() == read_json(directory / "out" / "results.json").dump());
  // A claim about one layer's gradient does not hang on the layer that it is divided by.
  const Json& early =
      entry(results["verdicts"], "claim", "ResiDual: the gradient of early layers vanishes no more than in Pre-LN");
  EXPECT_CONTAINS(early["reason"].get<std::string>(), "relative to that in the last, decoder: ") << early;
  // Four steps teach nothing: these runs did not diverge, but failed.
  for (const Json& row : entry(results["tables"], "id", "sweeps")["rows"]) {
    EXPECT_EQ(row[8], "0 of 1") << row;
    EXPECT_EQ(row[9], "1 of 1") << row;
    EXPECT_TRUE(row[10].is_null()) << row;  // no sensitivity over one rate
  }

  std::set<std::string> figures;
  std::map<std::string, std::set<std::string>> shown;  // groups by figure, its parts together
  for (const Json& figure : results["figures"]) {
    const auto id = figure["id"].get<std::string>();
    figures.insert(id);
    std::set<std::string> groups;
    for (const Json& series : figure["series"]) groups.insert(series["group"].get<std::string>());
    EXPECT_LE(groups.size(), 9U) << id;  // seven schemes and theory
    EXPECT_TRUE(groups.count("post-ln") == 1 && groups.count("pre-ln") == 1) << id;
    shown[id.substr(0, id.find("_part"))].merge(groups);
  }
  for (const auto& [id, groups] : shown) {
    for (const std::string& scheme : config.study.schemes) EXPECT_EQ(groups.count(scheme), 1U) << id << scheme;
  }
  for (const char* id : {"gradient_by_layer_encoder", "gradient_by_depth", "hessian_density", "hessian_by_layer",
                         "loss_adam_layers1", "collapse_change_encoder", "collapse_effective_rank_decoder"}) {
    EXPECT_EQ(figures.count(id), 1U) << id;
    EXPECT_EQ(figures.count(std::string(id) + "_part2"), 1U) << id;
  }
  // What answers first comes first, with all of its parts: of the decoder, though the encoder is measured before it.
  EXPECT_EQ(results["verdicts"][0]["claim"], "Post-LN: at initialization the gradient grows toward the output");
  EXPECT_EQ(results["figures"][0]["id"], "gradient_by_layer_decoder");
  EXPECT_EQ(results["figures"][1]["id"], "gradient_by_layer_decoder_part2");
  EXPECT_EQ(results["figures"][1]["part_of"], "gradient_by_layer_decoder");
  const auto next = std::find_if(results["figures"].begin(), results["figures"].end(), [](const Json& figure) {
    return figure.value("part_of", "") != "gradient_by_layer_decoder";
  });
  EXPECT_EQ((*next)["id"], "gradient_by_layer_encoder");
  EXPECT_FALSE(results["summary"].empty());
  EXPECT_EQ(figures.count("sweep_adam_layers2"), 0U);  // a single learning rate
  // A verdict refers to the part that shows its scheme.
  for (const Json& verdict : results["verdicts"]) {
    if (!verdict["claim"].get<std::string>().starts_with("ReZero: trains without warm-up")) continue;
    std::set<std::string> groups;
    for (const Json& series : entry(results["figures"], "id", verdict["figure"].get<std::string>())["series"])
      groups.insert(series["group"].get<std::string>());
    EXPECT_EQ(groups.count("rezero"), 1U) << verdict["figure"];
  }
  for (const Json& verdict : results["verdicts"]) {
    EXPECT_EQ(figures.count(verdict["figure"].get<std::string>()), 1U) << verdict["id"];
  }
}

TEST(Study, ReportsWhatIsMeasuredDirectly) {
  const test::TemporaryDirectory directory;
  StudyConfig config = test::small_on_copy_task(directory);
  config.study.claims = test::claims_of("layernorm");
  config.parts = test::parts(std::string(test::kTrainingPart) + R"(
[gradients]
layers = 3
seeds = 2
pairs = 10
[spectrum]
layers = 1
pairs = 10
steps = 3
batch_tokens = 256
seeds = 1
)");
  const Json results = run_study(config, directory / "out");

  // Gradient norms of the mean loss over the first ten pairs in one batch, by autograd; geometric means over two seeds.
  const DataDirectory data = DataDirectory::open(directory / "data");
  const std::vector<int64_t> first = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Batch batch = make_task({}, data, "encoder-decoder")->dataset("valid")->batch(first);
  ModelConfig model = config.model;
  model.encoder_layers = model.decoder_layers = 3;
  model.source_vocabulary = data.source_vocabulary();
  model.target_vocabulary = data.target_vocabulary();
  std::map<std::string, std::vector<double>> norms;  // of W₂ in the decoder, by scheme and layer
  std::map<std::string, double> ratios;              // last layer / first, the geometric mean over seeds
  for (const std::string& scheme : config.study.schemes) {
    model.residual = scheme;
    norms[scheme].assign(3, 1);
    ratios[scheme] = 1;
    for (const uint64_t seed : {5, 6}) {
      const std::unique_ptr<Model> built = make_model(model);
      built->initialize(seed);
      ForwardContext context(Pass::measurement);
      const Tensor loss = built->loss(batch, {}, context).value;
      std::vector<Tensor> matrices;
      for (const char* layer : {"0", "1", "2"})
        matrices.push_back(built->parameters().at(fmt::format("decoder.layers.{}.linear2.weight", layer)).value);
      const std::vector<Tensor> gradient = gradients({loss}, matrices, {});
      for (size_t i = 0; i < 3; ++i) norms[scheme][i] *= std::sqrt(gradient[i].norm().item<double>());
      ratios[scheme] *= std::sqrt(gradient[2].norm().item<double>() / gradient[0].norm().item<double>());
    }
  }
  const Json& figure = entry(results["figures"], "id", "gradient_by_layer_decoder");
  for (const auto& [scheme, name] : {std::pair{"post-ln", "Post-LN"}, {"pre-ln", "Pre-LN"}}) {
    const Json& series = entry(figure["series"], "name", name);
    EXPECT_EQ(series["group"], scheme);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(series["y"][i].get<double>(), norms[scheme][i], 1e-4 * norms[scheme][i]) << name << i;
  }
  const Json& grows =
      entry(results["verdicts"], "claim", "Post-LN: at initialization the gradient grows toward the output");
  EXPECT_EQ(grows["effect"]["seeds"], 2);
  EXPECT_NEAR(grows["effect"]["mean"].get<double>(), ratios["post-ln"], 1e-4 * ratios["post-ln"]);

  // Each arm has its sentence.
  const std::string summary = results["summary"].dump();
  for (const char* sentence :
       {"Post-LN's gradient at initialization ", " over the decoder; Pre-LN's ",
        "Largest eigenvalue of the Hessian at initialization: Post-LN ",
        "Final validation loss at the best learning rate (nats per token): ", " for Post-LN, no warm-up; "})
    EXPECT_CONTAINS(summary, sentence);

  // The spectrum's loss is that of the same batch.
  model.residual = "pre-ln";
  model.encoder_layers = model.decoder_layers = 1;
  const std::unique_ptr<Model> shallow = make_model(model);
  shallow->initialize(5);
  ForwardContext context(Pass::measurement);
  const double nll = shallow->loss(batch, {}, context).nll / static_cast<double>(batch.labels.size());
  const Json& curvature = entry(results["tables"], "id", "hessian");
  EXPECT_EQ(curvature["rows"][1][0], "pre-ln");
  EXPECT_NEAR(curvature["rows"][1][7].get<double>(), nll, 1e-5);
  EXPECT_EQ(curvature["rows"][1][8], shallow->parameters().count());

  // The loss of a run is that of its last checkpoint on the validation split.
  const Json& runs = entry(results["tables"], "id", "runs");
  ASSERT_EQ(runs["rows"].size(), 4U);
  for (const Json& row : runs["rows"]) {
    const std::string name =
        fmt::format("train-{}-layers1-adam-warmup{}-", row[0].get<std::string>(), row[3].get<int>());
    for (const auto& run : std::filesystem::directory_iterator(directory / "out" / "runs")) {
      if (!run.path().filename().string().starts_with(name)) continue;
      model.residual = row[0];
      const std::unique_ptr<Model> trained = make_model(model);
      const std::filesystem::path file = run.path() / "checkpoints" / "step-000004" / "model.safetensors";
      load_parameters(trained->parameters(), load_safetensors(file), file.string());
      std::vector<int64_t> all(static_cast<size_t>(data.split("valid").size()));
      std::iota(all.begin(), all.end(), int64_t{0});
      const Batch valid = make_task({}, data, "encoder-decoder")->dataset("valid")->batch(all);
      ForwardContext evaluation;
      const double loss = trained->loss(valid, {}, evaluation).nll / static_cast<double>(valid.labels.size());
      EXPECT_NEAR(row[8].get<double>(), loss, 1e-5) << row;
      EXPECT_NEAR(row[9].get<double>(), std::exp(loss), 1e-4) << row;
    }
  }
}

TEST(Study, MeasuresTheSameSideBySide) {
  StudyConfig config = test::small_study();
  config.study.schemes = {"post-ln", "pre-ln"};
  config.parts = test::parts(std::string(kGradientsAndSpectrum) + R"(
[training]
warm_ups = [0, 2]
learning_rates = [1e-3, 2e-3]
layers = [1]
seeds = 2
)");
  const test::TemporaryDirectory directory;
  ops::set_threads(1);  // the number of threads per measurement decides how sums are split
  Json one = run_study(config, directory / "one", {}, 1);
  ops::set_threads(3);
  std::vector<size_t> figures;  // whenever a part but the last is measured
  const auto on_part = [&](const Json& so_far) { figures.push_back(so_far["figures"].size()); };
  Json three = run_study(config, directory / "three", {}, 3, on_part);
  ops::set_threads(0);
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_GT(figures[0], 0U);
  EXPECT_GT(figures[1], figures[0]);
  EXPECT_GT(three["figures"].size(), figures[1]);
  for (Json* each : {&one, &three}) {
    for (const char* key : {"created", "settings"}) each->erase(key);
    for (Json& row : entry((*each)["tables"], "id", "runs")["rows"]) row.erase(row.size() - 1);  // seconds
  }
  EXPECT_EQ(one.dump(1), three.dump(1));
  const Json& sweep = entry(one["figures"], "id", "sweep_adam_layers1");
  EXPECT_EQ(sweep["series"].size(), 8U);  // two schemes and warm-ups, means and runs
}

TEST(Study, ChangedTextFilesAreOtherData) {
  const test::TemporaryDirectory directory;
  const auto write_text = [&](const std::string& last) {
    for (const char* side : {"train.de", "train.en", "valid.de", "valid.en"}) {
      std::string text;
      for (int i = 0; i < 60; ++i) text += fmt::format("{} {} word {}\n", side, i, i == 59 ? last : "same");
      write_file_atomic(directory / side, text);
    }
  };
  StudyConfig config = test::small_study();
  config.study.schemes = {"post-ln"};
  config.data.train = {directory / "train.de", directory / "train.en"};
  config.data.valid = {directory / "valid.de", directory / "valid.en"};
  config.data.vocabulary = 60;
  config.parts = test::parts("[gradients]\nlayers = 2\nseeds = 1\npairs = 5\n");
  write_text("first");
  const Json first = run_study(config, directory / "out");
  write_text("other");
  const Json other = run_study(config, directory / "out");
  EXPECT_NE(first["measurements"], other["measurements"]);
}

TEST(Study, HoldsNoFileOpenForEachRun) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const test::TemporaryDirectory directory;
  std::vector<std::unique_ptr<EventWriter>> writers;
  const auto before = open_files();
  for (int i = 0; i < 20; ++i) {
    writers.push_back(std::make_unique<EventWriter>(directory / std::to_string(i)));
    writers.back()->scalar("loss", 1, 2.5, 0);
    writers.back()->flush();
  }
  EXPECT_EQ(open_files(), before);
}

TEST(Study, TrainsArmsInSeveralProcesses) {
  ::setenv("PLUMB_PROGRAM", test::plumb_program().c_str(), 1);
  StudyConfig config = test::small_study();
  config.study.schemes = {"pre-ln"};
  const std::string layer = "model.norm=layernorm", batch = "model.norm=batchnorm";
  const std::string one = "train.processes=1", two = "train.processes=2";
  config.study.arms = {{"layer-one", {layer, one}},
                       {"layer-two", {layer, two}},
                       {"batch-one", {batch, one}},
                       {"batch-two", {batch, two}},
                       {"batch-own", {batch, two, "train.synchronize_norms=false"}}};
  config.train.log_every = 1;
  config.train.batch_tokens = 256;
  config.parts = test::parts("[training]\nlearning_rates = [1e-3]\nlayers = [1]\n");
  const test::TemporaryDirectory directory;
  run_study(config, directory / "out");
  ::unsetenv("PLUMB_PROGRAM");
  // Without dropout, step 1 equals that of one process for LayerNorm, and for BatchNorm if and only if its statistics
  // are exchanged.
  const auto gradient = [&](const std::string& arm) {
    for (const auto& file : std::filesystem::directory_iterator(directory / "out" / "measurements")) {
      if (file.path().filename().string().starts_with("train-" + arm))
        return read_json(file.path())["result"]["history"][0]["gradient_norm"].get<double>();
    }
    return std::nan("");
  };
  EXPECT_NEAR(gradient("layer-two") / gradient("layer-one"), 1, 1e-4);
  EXPECT_NEAR(gradient("batch-two") / gradient("batch-one"), 1, 1e-4);
  EXPECT_GT(std::abs(gradient("batch-own") / gradient("batch-one") - 1), 1e-3);
}

}  // namespace
}  // namespace plumb
