// [theorem1]: gradients of single tokens by width and depth, and the prediction that they are compared with.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "plumb/analysis/statistics.h"
#include "plumb/analysis/token_gradient.h"
#include "plumb/data/batches.h"
#include "plumb/study/study.h"
#include "support/entries.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

constexpr int64_t kModels = 3;
constexpr int64_t kTheorem1Pairs = 12;

/// [seed]
std::vector<double> token_gradients_of(const DataDirectory& data, const std::string& scheme, int64_t width,
                                       int64_t layers) {
  ModelConfig config;
  config.residual = scheme;
  config.initialization = "theory";
  config.share_embeddings = "none";
  config.d_model = config.feed_forward = width;
  config.heads = 1;
  config.positions = "none";
  config.encoder_layers = config.decoder_layers = layers;
  config.source_vocabulary = data.source_vocabulary();
  config.target_vocabulary = data.target_vocabulary();
  const std::vector<Batch> batches =
      evaluation_batches(*make_task({}, data, "encoder-decoder")->dataset("valid"), 1, kTheorem1Pairs);
  EXPECT_EQ(batches.size(), static_cast<size_t>(kTheorem1Pairs));
  std::vector<double> norms;
  for (uint64_t seed = 1; seed <= kModels; ++seed) {
    const std::unique_ptr<Model> model = make_model(config);
    model->initialize(seed);
    norms.push_back(
        mean_of(measure_token_gradients(*model, batches, fmt::format("decoder.layers.{}.linear2.weight", layers - 1))));
  }
  return norms;
}

TEST(Theorem1Study, GradientsOfTokensBySizeBesideBoundAndPrediction) {
  const test::TemporaryDirectory folder;
  test::make_copy_task(folder / "data");
  StudyConfig config = read_study(Config::from_string(
      fmt::format("[theorem1]\nwidths = [64, 128]\nlayers = [2, 4]\nseeds = {}\npairs = {}\n", kModels, kTheorem1Pairs) +
          "[[study.claim]]\ntext = 'It does not grow with depth'\nquantity = 'token_gradient_depth_exponent'\n"
          "of = ['model.residual=post-ln']\nabove = -0.5\nbelow = 0.5\n"
          "[[study.claim]]\ntext = 'It is as predicted'\nquantity = 'token_gradient_over_prediction'\n"
          "of = ['model.residual=post-ln']\nabove = 0.8\nbelow = 1.25\n",
      "study.toml"));
  config.study.schemes = {"pre-ln", "post-ln", "keel"};  // the theory covers two of them
  config.data.directory = (folder / "data").string();
  const Json results = run_study(config, folder / "out");
  const DataDirectory data = DataDirectory::open(folder / "data");
  const Json& rows = test::with_id(results["tables"], "theorem1")["rows"];
  ASSERT_EQ(rows.size(), 6U);  // two schemes, two widths, and another depth
  std::map<std::string, std::vector<std::vector<double>>> norms;
  for (const Json& row : rows) {
    const std::string scheme = row[0];
    const auto d = row[1].get<double>();
    const auto layers = row[2].get<double>();
    norms[scheme].push_back(token_gradients_of(data, scheme, row[1], row[2]));
    const double norm = geometric_interval(norms[scheme].back()).mean;
    const double bound = d * std::sqrt(std::log(d) / (scheme == "post-ln" ? 1.0 : layers));
    EXPECT_NEAR(row[3].get<double>(), norm, 1e-5 * norm) << row;
    // √(d/3) for Post-LN, whose last norm reads 3d/2; Pre-LN's stream only grows.
    if (scheme == "post-ln") {
      EXPECT_NEAR(row[6].get<double>(), std::sqrt(d / 3), 0.05 * std::sqrt(d / 3)) << row;
      EXPECT_NEAR(row[3].get<double>(), std::sqrt(d / 3), 0.1 * std::sqrt(d / 3)) << row;
    }
    EXPECT_NEAR(row[7].get<double>(), bound, 1e-9) << row;
    EXPECT_NEAR(row[8].get<double>(), norm / bound, 1e-5 * norm / bound) << row;
  }
  EXPECT_EQ(test::with_id(results["figures"], "token_gradient_width")["series"].size(), 4U);
  double exponent = 0;  // from 2 to 4 layers: the first and the last row
  for (size_t seed = 0; seed < kModels; ++seed)
    exponent += std::log2(norms["post-ln"][2][seed] / norms["post-ln"][0][seed]) / kModels;
  EXPECT_NEAR(results["verdicts"][0]["effect"]["mean"].get<double>(), exponent, 1e-4);
  EXPECT_NEAR(results["verdicts"][1]["effect"]["mean"].get<double>(), 1, 0.1);
}

}  // namespace
}  // namespace plumb
