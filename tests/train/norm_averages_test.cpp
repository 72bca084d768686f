// The running averages of norms: the same in all processes, and unchanged by validations and interruptions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "copy_run_fixture.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/train/trainer.h"
#include "support/ranks.h"

namespace plumb {
namespace {

/// The norms that keep running averages.
std::vector<std::string> norms_with_averages() {
  std::vector<std::string> names;
  for (const std::string& name : norms().names()) {
    Parameters parameters(at::kDouble);
    static_cast<void>(norms().at(name).make(parameters, "norm", 4, 1e-5));
    if (!parameters.buffers().empty()) names.push_back(name);
  }
  return names;
}

class NormAverages : public test::CopyRun, public ::testing::WithParamInterface<std::tuple<std::string, bool>> {
 protected:
  NormAverages() {
    run_.model.norm = std::get<0>(GetParam());
    run_.train.synchronize_norms = std::get<1>(GetParam());
    run_.train.optimizer = "sgd";
    run_.train.learning_rate = 0.05;
    run_.train.steps = 12;
    run_.train.score_every = -1;
    run_.train.micro_batch_tokens = 24;  // some processes have fewer micro-batches than others
  }

  static Tensor state_of(const Model& model) {
    std::vector<Tensor> all = {model.parameters().flat().detach()};
    for (const Parameter& buffer : model.parameters().buffers()) all.push_back(buffer.value.detach().view({-1}));
    return at::cat(all).clone();
  }

  /// Parameters and averages at the end of a run of `processes` processes, as each process has them, which is
  /// interrupted and resumed after the step `interrupted` unless that is 0.
  [[nodiscard]] std::vector<Tensor> ends(int64_t processes, int64_t validate_every, int64_t interrupted = 0) const {
    TrainConfig config = run_.train;
    config.validate_every = validate_every;
    const auto saved = folder_ / fmt::format("{}-{}-{}", processes, validate_every, interrupted);
    std::filesystem::create_directories(saved);
    std::vector<Tensor> found(static_cast<size_t>(processes));
    for (const bool resumed : {false, true}) {
      if (resumed && interrupted == 0) break;
      test::as_ranks(processes, [&](const Group& group) {
        EncoderDecoder learner = model();
        Trainer trainer(learner, config, *task_);
        if (resumed && group.rank() == 0) trainer.load(saved);
        trainer.join(group);
        test::Moments moments;
        if (!resumed && interrupted > 0) moments.stop = [&] { return trainer.step() == interrupted; };
        EXPECT_EQ(trainer.run(moments).outcome,
                  resumed || interrupted == 0 ? RunOutcome::finished : RunOutcome::stopped);
        if (group.rank() == 0) trainer.save(saved);
        found[static_cast<size_t>(group.rank())] = state_of(learner);
      });
    }
    return found;
  }
};

TEST_P(NormAverages, DependNeitherOnValidationsNorOnInterruptions) {
  ASSERT_FALSE(model().parameters().buffers().empty());
  for (const int64_t processes : {1, 2}) {
    const std::vector<Tensor> plain = ends(processes, 1000);
    for (const Tensor& each : ends(processes, 1, 7))
      EXPECT_TRUE(at::equal(each, plain.front())) << "validated and resumed, " << processes << " processes";
    for (const Tensor& each : plain) EXPECT_TRUE(at::equal(each, plain.front())) << processes << " processes";
  }
}

INSTANTIATE_TEST_SUITE_P(Of, NormAverages,
                         ::testing::Combine(::testing::ValuesIn(norms_with_averages()), ::testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) + (std::get<1>(info.param) ? "Together" : "Apart");
                         });

}  // namespace
}  // namespace plumb
