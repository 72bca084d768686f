// A study of the smallest size, with every residual scheme in it.
#include "plumb/study/study.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "plumb/base/files.h"
#include "plumb/nn/residual/residual.h"
#include "support/paths.h"

namespace plumb {
namespace {

StudyConfig small() {
  StudyConfig config;
  config.study.schemes = residual_schemes().names();
  config.study.schemes.emplace_back("n/dna");
  config.data.pairs = 2400;
  config.data.vocabulary = 200;
  config.model.d_model = 8;
  config.model.feed_forward = 12;
  config.model.heads = 2;
  config.train.steps = 4;
  config.train.validate_every = 2;
  config.train.batch_tokens = 128;
  config.train.warm_up = 2;
  config.model.dropout = 0;
  return config;
}

TEST(Study, TakesEveryScheme) {
  StudyConfig config = small();
  config.gradients = GradientStudy{2, 2, 5};
  config.depth = DepthStudy{{1, 2, 3}, 1, 5};
  config.spectrum = SpectrumStudy{1, 4, 3, 1, 256, 1.0, 2};
  config.training = TrainingStudy{{0, 2}, {1e-3}, {1, 2}, 0, "test", 1};
  config.collapse = CollapseStudy{2, 2, 5, 3};
  const test::TemporaryDirectory directory;
  const Json results = run_study(config, directory / "out");
  EXPECT_EQ(results["verdicts"], read_json(directory / "out" / "results.json")["verdicts"]);

  std::set<std::string> figures;
  for (const Json& figure : results["figures"]) {
    figures.insert(figure["id"].get<std::string>());
    std::set<std::string> groups;
    for (const Json& series : figure["series"]) groups.insert(series["group"].get<std::string>());
    for (const std::string& scheme : config.study.schemes)
      EXPECT_EQ(groups.count(scheme), 1U) << figure["id"] << scheme;
  }
  for (const char* id :
       {"gradient_by_layer_encoder", "gradient_by_depth", "hessian_density", "hessian_by_layer", "loss_lr0.001_layers1",
        "loss_lr0.001_layers2", "collapse_change_encoder", "collapse_effective_rank_decoder"}) {
    EXPECT_EQ(figures.count(id), 1U) << id;
  }
  for (const Json& verdict : results["verdicts"]) {
    EXPECT_EQ(figures.count(verdict["figure"].get<std::string>()), 1U) << verdict["id"];
  }
}

TEST(Study, LeavesOutEveryTrickAndEveryPair) {
  StudyConfig config = small();
  config.tricks = TricksStudy{1, 0.1};
  const test::TemporaryDirectory directory;
  const Json results = run_study(config, directory / "out");
  EXPECT_EQ(results["verdicts"].size(), 4U);
  EXPECT_EQ(results["tables"][0]["rows"].size(), 11U);  // all four; 4 singly; 6 pairs
  // The study is complete: it says again what it said, from what it has measured.
  const Json again = run_study(config, directory / "out");
  EXPECT_EQ(again["figures"], results["figures"]);
  const std::string run = read_file(directory / "out" / "study.toml");
  EXPECT_NE(run.find("[tricks]"), std::string::npos);
}

TEST(Study, TrainsWithNormsOverBatchesAndProcesses) {
  ::setenv("PLUMB_PROGRAM", PLUMB_BINARY, 1);
  StudyConfig config = small();
  config.study.schemes = {"pre-ln"};
  config.train.log_every = 1;
  config.norms = NormsStudy{{"layernorm", "batchnorm"}, 1, 1024, {128, 512}, 1, 256, {1, 2}};
  const test::TemporaryDirectory directory;
  const Json results = run_study(config, directory / "out");
  ::unsetenv("PLUMB_PROGRAM");
  ASSERT_EQ(results["tables"].size(), 2U);
  EXPECT_EQ(results["tables"][0]["rows"].size(), 4U);
  const Json& rows = results["tables"][1]["rows"];
  ASSERT_EQ(rows.size(), 6U);
  // Norm, processes, outcome, loss and gradient norm at step 1, …: without dropout, step 1 is that of one process for
  // LayerNorm, for BatchNorm if its statistics are exchanged, and is not if they are not.
  const auto gradient = [&](size_t row) { return rows[row][4].get<double>(); };
  EXPECT_EQ(rows[5][0].get<std::string>(), "batchnorm, own statistics");
  EXPECT_NEAR(gradient(1) / gradient(0), 1, 1e-4);
  EXPECT_NEAR(gradient(3) / gradient(2), 1, 1e-4);
  EXPECT_GT(std::abs(gradient(5) / gradient(2) - 1), 1e-3);
}

}  // namespace
}  // namespace plumb
