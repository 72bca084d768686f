// Updates and norms of layers along a training run compared with the parameters before and after each step.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "along_training.h"
#include "plumb/analysis/watch/updates.h"

namespace plumb {
namespace {

using UpdatesAlongTraining = test::AlongTraining;

TEST_F(UpdatesAlongTraining, UpdateRatiosAreThoseOfTheSteps) {
  read_watch("what = \"updates\"\n");
  const auto trained = model(), again = model();
  const TrainResult result = train(*trained, run_.train, *task_, {}, run_.watch);
  ASSERT_EQ(result.watched.size(), 3U);
  EXPECT_TRUE(result.watched[0].watches.empty());
  // The same run again, inspected after every step.
  std::vector<std::map<std::string, Tensor>> values(1);
  const auto look = [&] {
    for (const Parameter& parameter : again->parameters().all())
      values.back()[parameter.name] = parameter.value.detach().clone();
  };
  look();
  test::Moments moments;
  moments.stop = [&] {
    values.emplace_back();
    look();
    return false;
  };
  train(*again, run_.train, *task_, moments);
  ASSERT_GE(values.size(), 5U);
  for (const auto& [record, step] : {std::pair{1, 1}, std::pair{2, 4}}) {
    std::map<std::string, std::pair<double, double>> squares;
    for (const auto& [name, before] : values[static_cast<size_t>(step - 1)]) {
      const Tensor& after = values[static_cast<size_t>(step)][name];
      std::string group = name;
      for (const char* layer : {"encoder.layers.0", "decoder.layers.0"}) {
        if (name.starts_with(std::string(layer) + ".")) group = layer;
      }
      for (const std::string& key : {group, std::string("total")}) {
        squares[key].first += (after - before).square().sum().item<double>();
        squares[key].second += before.square().sum().item<double>();
      }
    }
    const auto found = result.watched[static_cast<size_t>(record)].find<UpdateMeasurement>();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->ratio.size(), squares.size() - 1);
    std::map<std::string, double> ratios(found->ratio.begin(), found->ratio.end());
    ratios["total"] = found->total;
    for (const auto& [name, square] : squares) {
      const double ratio = ratios.at(name);
      EXPECT_GT(ratio, 0) << name;
      EXPECT_NEAR(ratio, std::sqrt(square.first / square.second), 1e-12) << name;
    }
  }
}

// Gradient descent without momentum moves by learning rate × gradient, here clipped to a norm of 0.1, so the gradients
// follow from the weights before and after each step.
TEST_F(UpdatesAlongTraining, LayersHaveTheNormsOfTheirGradientsWeightsAndUpdates) {
  read_watch("what = \"layers\"\n");
  Config::from_string(
      "[train]\noptimizer = \"sgd\"\nschedule = \"constant\"\nlearning_rate = 0.5\nclip_norm = 0.1\n"
      "[train.sgd]\nmomentum = 0.0\n",
      "test")
      .read("train", run_.train);
  const auto trained = model(), again = model();
  const TrainResult result = train(*trained, run_.train, *task_, {}, run_.watch);
  EXPECT_TRUE(result.watched[0].watches.empty());
  const auto look = [&] {
    std::map<std::string, Tensor> values;
    for (const Parameter& parameter : again->parameters().all())
      values[parameter.name] = parameter.value.detach().clone();
    return values;
  };
  const std::map<std::string, Tensor> before = look();
  run_.train.steps = 1;
  const TrainResult first = train(*again, run_.train, *task_);
  const double norm = *first.history.front().gradient_norm;
  ASSERT_GT(norm, 0.1);
  std::map<std::string, std::map<std::string, double>> squares;
  for (const auto& [name, after] : look()) {
    std::string group = name;
    for (const char* layer : {"encoder.layers.0", "decoder.layers.0"}) {
      if (name.starts_with(std::string(layer) + ".")) group = layer;
    }
    const Tensor update = after - before.at(name);
    for (const std::string& key : {group, std::string("total")}) {
      squares["update"][key] += update.square().sum().item<double>();
      squares["gradient"][key] += (update * (norm / 0.1 / 0.5)).square().sum().item<double>();
      squares["weight"][key] += before.at(name).square().sum().item<double>();
    }
  }
  const auto found = result.watched[1].find<LayerMeasurement>();
  ASSERT_TRUE(found);
  const auto compare = [&](const std::string& what, const NamedNumbers& by_layer, double total) {
    std::map<std::string, double> norms(by_layer.begin(), by_layer.end());
    norms["total"] = total;
    EXPECT_EQ(norms.size(), squares[what].size()) << what;
    for (const auto& [name, square] : squares[what])
      EXPECT_NEAR(norms.at(name), std::sqrt(square), 1e-11 * norm) << what << " of " << name;
  };
  compare("gradient", found->gradient, found->total.gradient);
  compare("weight", found->weight, found->total.weight);
  compare("update", found->update, found->total.update);
  EXPECT_NEAR(found->total.gradient, norm, 1e-12 * norm);
}

}  // namespace
}  // namespace plumb
