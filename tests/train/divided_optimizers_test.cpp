// Optimizers that update each matrix as a whole, in processes that divide the model: everything is that of one process.
#include <gtest/gtest.h>

#include "divided_training.h"
#include "optim/options.h"

namespace plumb {
namespace {

using test::Architecture;
using test::from_pieces;
using test::Shape;

Architecture with_optimizer(const std::string& name, const std::function<void(TrainConfig&)>& set) {
  return {name, [set](RunConfig& run) {
            test::kLlama.set(run);
            run.model.decoder_layers = 4;
            run.train.learning_rate = 0.01;
            run.train.groups.push_back({.pattern = {"*norm*", "decoder.layers.1.*"}, .frozen_until = 3});
            set(run.train);
          }};
}

Architecture with_optimizer(const std::string& name) {
  return with_optimizer(name, [name](TrainConfig& train) { train.optimizer = name; });
}

/// Where a gradient has fewer rows than columns, some eigenvectors of GᵀG are arbitrary, and so are SOAP's steps:
/// square ones have none of these.
Architecture soap_of_square_matrices() {
  return {"soap", [](RunConfig& run) {
            with_optimizer("soap").set(run);
            run.model.kv_heads = 0;
            run.model.feed_forward = run.model.d_model;
            run.train.options = test::options(fmt::format("[train.soap]\nlongest_side = {}", run.model.d_model));
          }};
}

/// Some parameters are frozen at first, so that the steps of each are counted apart. After 11 steps of each, SOAP's
/// first QR decomposition has made the signs of its eigenvectors the same.
class DividedOptimizer : public test::DividedTraining {
 protected:
  DividedOptimizer() { run_.train.steps = 14; }
};

TEST_P(DividedOptimizer, IsThatOfOneProcess) {
  const Trained one = trained({});
  for (const Shape& shape : {Shape{2, 2}, {4, 1, 2, "1f1b", 2}, from_pieces({4, 2, 2})})
    expect_same(trained(shape), one, to_string(shape));
}

TEST_P(DividedOptimizer, ACheckpointDoesNotKnowTheMesh) {
  const Trained one = trained({});
  for (const auto& [first, second] :
       {std::pair<Shape, Shape>{{2, 2}, {1}}, {{1}, from_pieces({4, 2, 2})}, {{4, 2, 2}, from_pieces({2, 1, 2})}})
    expect_goes_on(first, second, one);
}

TEST_P(DividedOptimizer, WithAStateThatIsSharedOut) {
  const Trained one = trained({});
  run_.train.shard = "optimizer";
  for (const Shape& shape : {Shape{4, 2}, from_pieces({8, 2, 2})}) expect_same(trained(shape), one, to_string(shape));
}

INSTANTIATE_TEST_SUITE_P(Of, DividedOptimizer,
                         ::testing::Values(with_optimizer("adafactor"), with_optimizer("lamb"), with_optimizer("muon"),
                                           soap_of_square_matrices(),
                                           with_optimizer("cautious",
                                                          [](TrainConfig& train) { train.cautious = true; })),
                         [](const auto& info) { return info.param.name; });

/// Of optimizers that act on each element by itself; other tests have SGD and AdamW.
class DividedElements : public test::DividedTraining {};

TEST_P(DividedElements, AreThoseOfOneProcess) {
  const Shape shape{4, 2, 2};
  expect_same(trained(shape), trained({}), to_string(shape));
}

INSTANTIATE_TEST_SUITE_P(Of, DividedElements,
                         ::testing::Values(with_optimizer("adam"), with_optimizer("radam"), with_optimizer("lion"),
                                           with_optimizer("nt-asgd"), with_optimizer("schedule-free-adamw")),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace plumb
