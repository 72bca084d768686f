// An optimizer with its state sharded across processes, against the same optimizer in one process.
#include "plumb/divided/sharded_optimizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/gradcheck.h"
#include "support/ranks.h"

namespace plumb {
namespace {

using test::as_ranks;

/// Parameters of different sizes and roles, so that the shares differ.
Parameters several_parameters() {
  Parameters parameters(at::kFloat);
  parameters.add("embedding.weight", {30, 8}, Role::embedding);
  for (int i = 0; i < 3; ++i) {
    parameters.add(fmt::format("layers.{}.linear.weight", i), {8, 12}, Role::weight);
    parameters.add(fmt::format("layers.{}.linear.bias", i), {12}, Role::bias);
  }
  parameters.add("linear.weight", {4, 8}, Role::weight);  // a suffix of other names
  parameters.allocate();
  parameters.flat().copy_(testing::random_tensor({parameters.count()}, 7));
  return parameters;
}

std::vector<Tensor> gradients_at(const Parameters& parameters, uint64_t step) {
  return parameters.split(testing::random_tensor({parameters.count()}, 100 + step).to(at::kFloat));
}

std::vector<ParameterStep> settings_at(const Parameters& parameters, int64_t step) {
  std::vector<ParameterStep> settings(parameters.all().size(), {0.01, 0.1, false});
  settings[2].frozen = step < 2;  // so that parameters have taken different numbers of steps
  return settings;
}

void take_steps(Optimizer& optimizer, const Parameters& parameters, int64_t first, int64_t last) {
  for (int64_t step = first; step < last; ++step)
    optimizer.step(gradients_at(parameters, static_cast<uint64_t>(step)), settings_at(parameters, step), 0.5);
}

/// The number of elements of state that this process keeps.
int64_t state_size(const Optimizer& optimizer) {
  int64_t elements = 0;
  for (const StateTensor& tensor : optimizer.state_tensors())
    elements += tensor.value.is_meta() ? 0 : tensor.value.numel();
  return elements;
}

/// The state of all processes, on rank 0; of no use on the others.
NamedTensors full_state(const Optimizer& optimizer, const Parameters& parameters) {
  NamedTensors all;
  for (const StateTensor& own : optimizer.state_tensors()) {
    const Tensor full = optimizer.full(own);
    all.emplace_back(name_of(own, parameters), full.defined() && !full.is_meta() ? full.clone() : full);
  }
  return all;
}

class Sharded : public ::testing::TestWithParam<std::tuple<std::string, int64_t>> {
 protected:
  static ShardedOptimizer::Factory factory() {
    return [](const Parameters& parameters) { return make_optimizer(std::get<0>(GetParam()), parameters); };
  }
};
INSTANTIATE_TEST_SUITE_P(Of, Sharded,
                         ::testing::Combine(::testing::ValuesIn(optimizers().names()), ::testing::Values(2, 3)),
                         [](const auto& info) {
                           std::string name = fmt::format("{}{}", std::get<0>(info.param), std::get<1>(info.param));
                           std::erase_if(name, [](char c) { return c == '-' || c == '_'; });
                           return name;
                         });

// Also across a change of the number of processes, through the full state.
TEST_P(Sharded, IsThatOfOneProcessBitForBit) {
  const Parameters expected = several_parameters();
  const auto one = factory()(expected);
  take_steps(*one, expected, 0, 6);

  const Parameters begun = several_parameters();
  const auto before = factory()(begun);
  take_steps(*before, begun, 0, 2);

  NamedTensors collected;
  Tensor values;
  as_ranks(std::get<1>(GetParam()), [&](const Group& group) {
    const Parameters parameters = several_parameters();
    parameters.flat().copy_(begun.flat());
    ShardedOptimizer optimizer(parameters, group, factory());
    optimizer.load_state(before->state(), "before");
    const int64_t whole = state_size(*before);
    EXPECT_LE(state_size(optimizer), whole);
    if (std::get<0>(GetParam()) == "adam") {
      EXPECT_LE(state_size(optimizer), whole * 3 / 5);
    }
    take_steps(optimizer, parameters, 2, 4);
    const NamedTensors full = full_state(optimizer, parameters);
    if (group.rank() > 0) return;
    collected = full;
    values = parameters.flat().detach().clone();
  });

  const Parameters resumed = several_parameters();
  resumed.flat().copy_(values);
  const auto after = factory()(resumed);
  after->load_state(collected, "collected");
  take_steps(*after, resumed, 4, 6);
  EXPECT_TRUE(at::equal(resumed.flat(), expected.flat()));
  const NamedTensors ours = after->state(), theirs = one->state();
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].first, theirs[i].first);
    EXPECT_TRUE(at::equal(ours[i].second, theirs[i].second)) << ours[i].first;
  }
}

// Gradients come in shards, too.
TEST_P(Sharded, ByElementIsThatOfOneProcess) {
  const Parameters expected = several_parameters();
  const auto one = factory()(expected);
  if (!one->acts_by_element()) return;
  take_steps(*one, expected, 0, 4);
  as_ranks(std::get<1>(GetParam()), [&](const Group& group) {
    Parameters parameters = several_parameters();
    const ParameterShards shards(parameters, group, /*shards_parameters=*/false);
    ShardedOptimizer optimizer(shards, factory());
    for (int64_t step = 0; step < 4; ++step) {
      std::vector<Tensor> gradients = gradients_at(parameters, static_cast<uint64_t>(step));
      for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = shards.shard(i, gradients[i]);
      optimizer.step(gradients, settings_at(parameters, step), 0.5);
    }
    EXPECT_TRUE(at::allclose(parameters.flat(), expected.flat(), 1e-5, 1e-6));
    const NamedTensors ours = full_state(optimizer, shards.local()), theirs = one->state();
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(ours[i].first, theirs[i].first);
      if (group.rank() > 0) continue;
      ASSERT_EQ(ours[i].second.sizes(), theirs[i].second.sizes()) << ours[i].first;
      EXPECT_TRUE(at::allclose(ours[i].second, theirs[i].second, 1e-5, 1e-6)) << ours[i].first;
    }
  });
}

TEST(Shares, AreWholeParametersOfAboutEqualSize) {
  const Parameters parameters = several_parameters();  // 240, 3 × (96 + 12), 32: 596 elements
  EXPECT_EQ(split_evenly(parameters, 1), (std::vector<size_t>{0, 8}));
  EXPECT_EQ(split_evenly(parameters, 2), (std::vector<size_t>{0, 2, 8}));     // 336, 260: closer to 298 than 240
  EXPECT_EQ(split_evenly(parameters, 3), (std::vector<size_t>{0, 1, 4, 8}));  // 240, 444 for 198.7, 397.3
  EXPECT_EQ(split_evenly(parameters, 20).size(), 21U);  // more ranks than parameters: some have none
}

}  // namespace
}  // namespace plumb
