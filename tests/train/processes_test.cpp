// Several processes that train one model. Where nothing of a process is needed but its share, threads stand for them.
#include "plumb/train/processes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <future>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/train/run.h"
#include "plumb/train/trainer.h"
#include "support/gradcheck.h"
#include "support/process.h"

namespace plumb {
namespace {

using testing::random_tensor;

/// Runs `work` as each of `size` members of one group.
void as_processes(int64_t size, const std::function<void(ProcessGroup&)>& work) {
  std::promise<int64_t> port;
  const std::shared_future<int64_t> known = port.get_future().share();
  std::vector<std::future<void>> members;
  for (int64_t rank = 0; rank < size; ++rank) {
    members.push_back(std::async(std::launch::async, [&, rank] {
      Rendezvous meeting{rank, size};
      if (rank > 0) meeting.port = known.get();
      ProcessGroup group(meeting, {[&](int64_t number) { port.set_value(number); }, {}});
      work(group);
    }));
  }
  for (auto& member : members) member.get();
}

TEST(Processes, SumOverAllOfThem) {
  as_processes(3, [](ProcessGroup& group) {
    EXPECT_EQ(group.size(), 3);
    const Tensor x = at::full({5}, 1.0 + static_cast<double>(group.rank()), at::kDouble);
    group.sum(x);
    EXPECT_TRUE(at::equal(x, at::full({5}, 6.0, at::kDouble)));
    EXPECT_EQ(group.cost().calls, 1);
    EXPECT_EQ(group.cost().bytes, 40);
  });
}

TEST(Processes, TakeFromTheFirst) {
  as_processes(3, [](ProcessGroup& group) {
    const Tensor x = random_tensor({7}, 1 + static_cast<uint64_t>(group.rank()));
    group.take_from_first(x);
    EXPECT_TRUE(at::equal(x, random_tensor({7}, 1)));
    EXPECT_EQ(group.take_from_first(fmt::format("I am {}", group.rank())), "I am 0");
  });
}

// With S = Σ over processes of x_r, the loss Σ_r w_r·S³ has the gradient 3·S²·Σw in every process, and with respect to
// that gradient's product with v_r, once more, 6·S·Σw·Σv.
TEST(Processes, DerivativesOfASumAreSums) {
  const double weights[] = {0.5, 2.0}, at[] = {0.3, 0.4}, directions[] = {1.0, -3.0};
  const double sum = 0.7;
  const double weight = 2.5;
  const double direction = -2.0;
  as_processes(2, [&](ProcessGroup& group) {
    const auto rank = static_cast<size_t>(group.rank());
    const Tensor x = at::full({1}, at[rank], at::kDouble).requires_grad_(true);
    const Tensor loss = weights[rank] * group.summed(x).pow(3).sum();
    const Tensor gradient = gradients({loss}, {x}, {}, true)[0];
    EXPECT_NEAR(gradient.item<double>(), 3 * sum * sum * weight, 1e-12);
    const Tensor product = gradients({(gradient * directions[rank]).sum()}, {x}, {})[0];
    EXPECT_NEAR(product.item<double>(), 6 * sum * weight * direction, 1e-12);
  });
}

/// Rows rank, rank + size, … of a matrix.
Tensor rows_of(const Tensor& x, const ProcessGroup& group) {
  return x.slice(0, group.rank(), x.size(0), group.size()).contiguous();
}

TEST(Processes, BatchNormOverAllTokensIsThatOfOneProcess) {
  const Tensor x = random_tensor({11, 4}, 1), weights = random_tensor({11, 4}, 2);
  // The formula, of all tokens.
  const Tensor whole = x.clone().requires_grad_(true);
  const Tensor expected = (whole - whole.mean(0)) / (whole.var(0, false) + 1e-5).sqrt();
  const Tensor expected_gradient = gradients({(expected * weights).sum()}, {whole}, {})[0];
  as_processes(3, [&](ProcessGroup& group) {
    Parameters parameters(at::kDouble);
    const auto norm = norms().at("batchnorm").make(parameters, "norm", 4, 1e-5);
    parameters.finish();
    parameters.at("norm.weight").value.detach().fill_(1);
    ForwardContext context(0.0, 1, 1);
    context.exchange([&](const Tensor& part) { return group.summed(part); });
    const Tensor share = rows_of(x, group).requires_grad_(true);
    const Tensor y = (*norm)(share, context);
    EXPECT_LT((y - rows_of(expected, group)).abs().max().item<double>(), 1e-12);
    const Tensor gradient = gradients({(y * rows_of(weights, group)).sum()}, {share}, {})[0];
    EXPECT_LT((gradient - rows_of(expected_gradient, group)).abs().max().item<double>(), 1e-12);
    const Tensor variance = parameters.buffers()[1].value;
    EXPECT_LT((variance - (0.9 + 0.1 * x.var(0, true))).abs().max().item<double>(), 1e-12);
  });
}

class SharedTraining : public ::testing::TestWithParam<std::tuple<std::string, int64_t>> {
 protected:
  SharedTraining() {
    set_verbosity(Verbosity::quiet);
    test::make_copy_task(folder_ / "data");
    run_ = test::copy_run(folder_ / "data");
    run_.model.dropout = 0;
    run_.model.norm = std::get<0>(GetParam());
    // Adam would make steps out of the rounding of gradients that are 0, such as those of biases before BatchNorm.
    run_.train.optimizer = "sgd";
    run_.train.learning_rate = 0.05;
  }
  void TearDown() override { set_verbosity(Verbosity::normal); }

  struct Trained {
    Tensor parameters;
    TrainResult result;
  };
  Trained trained(ProcessGroup* group, uint64_t seed = 1) const {
    const DataDirectory data = DataDirectory::open(run_.data);
    ModelConfig config = run_.model;
    config.source_vocabulary = data.source_vocabulary();
    config.target_vocabulary = data.target_vocabulary();
    EncoderDecoder model(config, at::kDouble);
    model.initialize(seed);
    Trainer trainer(model, run_.train, data);
    if (group != nullptr) trainer.join(*group);
    TrainResult result = trainer.run();
    return {model.parameters().flat().detach().clone(), std::move(result)};
  }

  test::TemporaryDirectory folder_;
  RunConfig run_;
};

TEST_P(SharedTraining, IsThatOfOneProcess) {
  const Trained one = trained(nullptr);
  as_processes(std::get<1>(GetParam()), [&](ProcessGroup& group) {
    // All but the first begin with parameters of their own, and take the first's.
    const Trained several = trained(&group, 1 + static_cast<uint64_t>(group.rank()));
    EXPECT_LT((several.parameters - one.parameters).abs().max().item<double>(), 1e-10);
    ASSERT_EQ(several.result.history.size(), one.result.history.size());
    for (size_t i = 0; i < one.result.history.size(); ++i) {
      const TrainPoint& expected = one.result.history[i];
      const TrainPoint& found = several.result.history[i];
      EXPECT_NEAR(found.nll, expected.nll, 1e-10);
      EXPECT_NEAR(found.gradient_norm, expected.gradient_norm, 1e-10);
      ASSERT_EQ(found.valid_nll.has_value(), expected.valid_nll.has_value());
      if (expected.valid_nll) {
        EXPECT_NEAR(*found.valid_nll, *expected.valid_nll, 1e-10);
      }
      ASSERT_TRUE(found.exchange_bytes.has_value());
      EXPECT_GE(*found.exchange_bytes, 8.0 * static_cast<double>(one.parameters.numel()));
    }
  });
}

TEST_P(SharedTraining, TakesBatchesOfFewerPairsThanProcesses) {
  run_.train.batch_tokens = 8;
  run_.train.steps = 6;
  const Trained one = trained(nullptr);
  as_processes(std::get<1>(GetParam()), [&](ProcessGroup& group) {
    const Tensor difference = trained(&group).parameters - one.parameters;
    EXPECT_TRUE(difference.isfinite().all().item<bool>());
    if (run_.model.norm != "batchnorm") {  // whose statistics a pair enters that is repeated without weight
      EXPECT_LT(difference.abs().max().item<double>(), 1e-10);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Of, SharedTraining,
                         ::testing::Combine(::testing::Values("layernorm", "batchnorm"), ::testing::Values(2, 3)),
                         [](const auto& info) {
                           return fmt::format("{}{}", std::get<0>(info.param), std::get<1>(info.param));
                         });

class SeveralProcesses : public ::testing::Test {
 protected:
  SeveralProcesses() {
    set_verbosity(Verbosity::quiet);
    ::setenv("PLUMB_PROGRAM", PLUMB_BINARY, 1);
    test::make_copy_task(folder_ / "data");
    run_ = test::copy_run(folder_ / "data");
    run_.model.dropout = 0;
    run_.train.optimizer = "sgd";
    run_.train.learning_rate = 0.05;
    run_.train.bleu_beam = 0;
  }
  void TearDown() override {
    ::unsetenv("PLUMB_PROGRAM");
    set_verbosity(Verbosity::normal);
  }

  test::TemporaryDirectory folder_;
  RunConfig run_;
};

TEST_F(SeveralProcesses, TrainAsOneAlsoAfterAnInterruption) {
  const TrainResult one = run_training(run_, folder_ / "one");
  run_.train.processes = 2;
  TrainHooks hooks;
  hooks.stop = [left = 9]() mutable { return --left == 0; };
  EXPECT_EQ(run_training(run_, folder_ / "two", hooks).outcome, "stopped");
  const TrainResult two = run_training(run_, folder_ / "two");
  EXPECT_EQ(two.outcome, "finished");
  ASSERT_EQ(two.history.size(), one.history.size());
  for (size_t i = 0; i < one.history.size(); ++i) EXPECT_NEAR(two.history[i].nll, one.history[i].nll, 1e-4);
}

TEST_F(SeveralProcesses, AProcessThatCannotStartIsAnError) {
  ::setenv("PLUMB_PROGRAM", "/bin/false", 1);
  run_.train.processes = 2;
  try {
    run_training(run_, folder_ / "run");
    FAIL() << "trained without the other process";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a process that was to train along has ended");
  }
}

TEST(Rendezvous, ComesFromTheEnvironment) {
  EXPECT_FALSE(rendezvous_of_environment());
  ::setenv("WORLD_SIZE", "4", 1);
  EXPECT_THROW(rendezvous_of_environment(), Error);
  ::setenv("RANK", "3", 1);
  ::setenv("MASTER_ADDR", "node0", 1);
  ::setenv("MASTER_PORT", "29500", 1);
  const auto meeting = rendezvous_of_environment();
  ASSERT_TRUE(meeting);
  EXPECT_EQ(meeting->rank, 3);
  EXPECT_EQ(meeting->size, 4);
  EXPECT_EQ(meeting->host, "node0");
  EXPECT_EQ(meeting->port, 29500);
  ::setenv("RANK", "4", 1);
  EXPECT_THROW(rendezvous_of_environment(), Error);
  for (const char* name : {"WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
}

}  // namespace
}  // namespace plumb
