// A NaN in any parameter shows in the loss of every model.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plumb/base/random.h"
#include "plumb/model/model.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/residual/residual.h"
#include "support/batches.h"
#include "support/small_model.h"

namespace plumb {
namespace {

Batch batch_of(const Model& model) {
  Batch batch;
  for (int32_t i = 0; i < 3; ++i) {
    append(batch, std::vector<int32_t>{4, 5 + i, 6}, std::vector<int32_t>{7, 8 + i, 9, 4}, i);
  }
  if (model.config().kind == "encoder") batch.labels = {0, 2, 1};
  return batch;
}

void expect_seen(const ModelConfig& config, at::ScalarType type) {
  const std::unique_ptr<Model> model = make_model(config, type);
  model->initialize(1);
  const Batch batch = batch_of(*model);
  Random random(3, "nan test");
  for (const Parameter& parameter : model->parameters().all()) {  // no zeros, which would close a branch
    const Tensor value = parameter.value.detach().view({-1});
    for (int64_t i = 0; i < value.size(0); ++i) value[i] = 0.4 * random.normal();
  }
  const auto loss = [&] {
    ForwardContext context;
    return model->loss(batch, {}, context);
  };
  ASSERT_TRUE(std::isfinite(loss().nll));
  for (const Parameter& parameter : model->parameters().all()) {
    SCOPED_TRACE(parameter.name);
    // All of an embedding or position table, because a row that does not occur would do no harm.
    const bool rows = parameter.role == Role::embedding || parameter.role == Role::position;
    const Tensor value = parameter.value.detach().view({-1});
    const Tensor damaged = rows ? value : value.narrow(0, value.size(0) / 2, 1);
    const Tensor before = damaged.clone();
    damaged.fill_(std::numeric_limits<double>::quiet_NaN());
    const Loss broken = loss();
    EXPECT_TRUE(std::isnan(broken.nll));
    EXPECT_TRUE(std::isnan(broken.value.item<double>()));
    damaged.copy_(before);
  }
}

TEST(DamagedParameters, AreSeenInTheLossOfEveryKind) {
  for (const char* kind : {"encoder-decoder", "decoder", "encoder", "awd-lstm"}) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      SCOPED_TRACE(kind);
      expect_seen(test::small_model(kind), type);
    }
  }
}

TEST(DamagedParameters, AreSeenInTheLossOfEveryVariant) {
  const auto each = [](const std::vector<std::string>& names, const auto& set) {
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      ModelConfig config = test::small_model("encoder-decoder");
      set(config, name);
      expect_seen(config, at::kFloat);
    }
  };
  each(norms().names(), [](ModelConfig& config, const std::string& name) { config.norm = name; });
  each(residual_schemes().names(), [](ModelConfig& config, const std::string& name) { config.residual = name; });
  each(attentions().names(), [](ModelConfig& config, const std::string& name) { config.attention = name; });
}

}  // namespace
}  // namespace plumb
