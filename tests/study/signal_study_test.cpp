// [signal] compared with activations computed directly.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/data/batches.h"
#include "plumb/model/model.h"
#include "plumb/study/study.h"
#include "study/parts.h"
#include "support/contains.h"
#include "support/entries.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

constexpr int64_t kLayers = 2;
constexpr int64_t kSeeds = 3;
constexpr int64_t kPairs = 12;

/// The expected output of the part for one scheme and width, from forward passes over a single batch.
struct Direct {
  std::map<int64_t, double> square;     // by layer from 1: the mean over tokens and seeds of ‖x‖²/d
  std::map<int64_t, double> exceeding;  // by seed: the largest share of a layer's tokens with ‖x‖² > 1.1·mean
};

Direct measured_directly(const DataDirectory& data, const std::string& scheme, int64_t width,
                         const std::string& initialization) {
  ModelConfig config;
  config.residual = scheme;
  config.initialization = initialization;
  config.d_model = config.feed_forward = width;
  config.heads = 1;
  config.positions = "none";
  config.encoder_layers = config.decoder_layers = kLayers;
  config.source_vocabulary = data.source_vocabulary();
  config.target_vocabulary = data.target_vocabulary();
  std::vector<int64_t> first;
  for (int64_t i = 0; i < kPairs; ++i) first.push_back(i);
  const Batch batch = make_task({}, data, "encoder-decoder")->dataset("valid")->batch(first);
  Direct direct;
  for (int64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::unique_ptr<Model> model = make_model(config);
    model->initialize(static_cast<uint64_t>(seed));
    ForwardContext context(Pass::measurement);
    context.watch([&](const ActivationPoint& point, const Tensor& x) {
      for (int64_t layer = 1; layer <= kLayers; ++layer) {
        const std::string name = "encoder.layers." + std::to_string(layer - 1) + ".feed_forward.";
        if (to_string(point) != name + (scheme == "post-ln" ? "sum" : "stream")) continue;
        const Tensor square = x.detach().to(at::kDouble).square().sum(1);
        const double mean = square.mean().item<double>();
        direct.square[layer] += mean / static_cast<double>(width * kSeeds);
        direct.exceeding[seed] =
            std::max(direct.exceeding[seed], square.gt(1.1 * mean).to(at::kDouble).mean().item<double>());
      }
    });
    model->states(batch, context);
  }
  return direct;
}

class SignalStudyTest : public ::testing::Test {
 protected:
  SignalStudyTest() {
    test::make_copy_task(folder_ / "data");
    StudyConfig config;
    config.study.schemes = {"pre-ln", "post-ln", "keel"};  // the theory covers two of them
    config.study.claims = test::claims_of("xiong_figure3");
    config.data.directory = (folder_ / "data").string();
    config.parts = test::parts(
        fmt::format("[signal]\nlayers = {}\nwidths = [16, 32]\nseeds = {}\npairs = {}\n", kLayers, kSeeds, kPairs));
    results_ = run_study(config, folder_ / "out");
  }

  [[nodiscard]] Direct direct(const std::string& scheme, int64_t width, const std::string& initialization) const {
    return measured_directly(DataDirectory::open(folder_ / "data"), scheme, width, initialization);
  }
  [[nodiscard]] const Json& series(const std::string& name) const {
    for (const Json& each : results_["figures"][0]["series"]) {
      if (each["name"] == name) return each;
    }
    throw std::out_of_range(name);
  }
  [[nodiscard]] const Json& verdict(const std::string& claim) const {
    return test::entry(results_["verdicts"], "claim", claim);
  }

  test::TemporaryDirectory folder_;
  Json results_;
};

TEST_F(SignalStudyTest, ActivationsAreThoseOfTheWidestModel) {
  ASSERT_EQ(results_["figures"].size(), 1U);
  EXPECT_EQ(results_["figures"][0]["id"], "activations");
  EXPECT_EQ(results_["figures"][0]["series"].size(), 7U);  // two schemes, each twice, and three lines of theory
  for (const auto& [scheme, name] : {std::pair{"post-ln", "Post-LN"}, {"pre-ln", "Pre-LN"}}) {
    for (const std::string initialization : {"theory", "xavier-normal"}) {
      const Json& found = series(name + (initialization == "theory" ? "" : ", " + initialization));
      const Direct expected = direct(scheme, 32, initialization);
      ASSERT_EQ(found["y"].size(), expected.square.size());
      for (int64_t layer = 1; layer <= kLayers; ++layer) {
        const auto at = static_cast<size_t>(layer - 1);
        EXPECT_EQ(found["x"][at], layer);
        EXPECT_NEAR(found["y"][at].get<double>(), expected.square.at(layer), 1e-5) << scheme << initialization;
        EXPECT_LT(found["low"][at].get<double>(), found["y"][at].get<double>());
      }
    }
  }
  EXPECT_EQ(series("Lemma 2, Post-LN: 3/2")["y"], Json::array({1.5, 1.5}));
  EXPECT_EQ(series("Lemma 2, Pre-LN: 1 + l/2")["y"], Json::array({1.5, 2.0}));
  EXPECT_EQ(series("Lemma 2, Pre-LN: 1 + 3l/2")["y"], Json::array({2.5, 4.0}));
}

TEST_F(SignalStudyTest, VerdictsFollowFromTheActivations) {
  const Direct post = direct("post-ln", 32, "theory");
  const Direct pre = direct("pre-ln", 32, "theory");
  // The effect is that of the layer furthest from 3/2.
  double furthest = 1.5;
  for (const auto& [layer, square] : post.square) {
    if (std::abs(square - 1.5) > std::abs(furthest - 1.5)) furthest = square;
  }
  const Json& lemma = verdict("Post-LN: E‖x‖² before the second norm is 3d/2 in every layer");
  EXPECT_NEAR(lemma["effect"]["mean"].get<double>(), furthest, 1e-5);
  EXPECT_EQ(lemma["effect"]["seeds"], kSeeds);
  // The place of one of the layers between 1 + l/2 and 1 + 3l/2.
  const Json& bounds = verdict("Pre-LN: (1 + l/2)·d ≤ E‖x‖² ≤ (1 + 3l/2)·d after layer l");
  double distance = 1;
  for (const auto& [layer, square] : pre.square) {
    const double place = (square - 1) / static_cast<double>(layer) - 0.5;
    distance = std::min(distance, std::abs(place - bounds["effect"]["mean"].get<double>()));
  }
  EXPECT_LT(distance, 1e-5);
  EXPECT_CONTAINS(bounds["evidence"].get<std::string>(), fmt::format("is {:.2f}.", pre.square.at(2)));
  for (const auto& [id, one] : {std::pair{"Post-LN: the squared norms are (0.1, 0.125)-bounded", post},
                                {"Pre-LN: the squared norms are (0.1, 0.125)-bounded", pre}}) {
    double mean = 0;
    for (const auto& [seed, share] : one.exceeding) mean += share / kSeeds;
    EXPECT_NEAR(verdict(id)["effect"]["mean"].get<double>(), mean, 1e-6) << id;
    EXPECT_EQ(verdict(id)["verdict"], "this setting cannot test it") << id;  // the claim is about d = 512
  }
  EXPECT_EQ(results_["verdicts"].size(), 4U);
}

TEST_F(SignalStudyTest, TheTheorysSettingIsTheTheorys) {
  // Without positions, inputs have squared norm d, as the lemmas assume.
  ModelConfig config;
  config.positions = "none";
  config.initialization = "theory";
  config.d_model = config.feed_forward = 64;
  config.heads = 1;
  config.encoder_layers = config.decoder_layers = 1;
  const DataDirectory data = DataDirectory::open(folder_ / "data");
  config.source_vocabulary = data.source_vocabulary();
  config.target_vocabulary = data.target_vocabulary();
  const std::vector<int64_t> first = {0, 1, 2, 3, 4, 5, 6, 7};
  const Batch batch = make_task({}, data, "encoder-decoder")->dataset("valid")->batch(first);
  double square = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const std::unique_ptr<Model> model = make_model(config);
    model->initialize(seed);
    ForwardContext context(Pass::measurement);
    context.watch([&](const ActivationPoint& point, const Tensor& x) {
      if (to_string(point) == "encoder.input") square += x.square().sum(1).mean().item<double>() / 64 / 50;
    });
    model->states(batch, context);
  }
  EXPECT_NEAR(square, 1, 0.05);
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "out" / "measurements")) {
    if (!file.path().filename().string().starts_with("signal-")) continue;
    const std::string model = read_json(file.path())["settings"]["model"];
    EXPECT_CONTAINS(model, "positions = \"none\"") << file.path();
  }
}

}  // namespace
}  // namespace plumb
