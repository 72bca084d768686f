// train.parameters: runs with bfloat16 parameters.
#include <gtest/gtest.h>

#include "copy_run_fixture.h"
#include "plumb/base/error.h"
#include "plumb/train/run_training.h"
#include "support/errors.h"

namespace plumb {
namespace {

class Bfloat16Run : public test::CopyRun {
 protected:
  Bfloat16Run() { run_.model.dropout = 0; }

  [[nodiscard]] TrainResult trained(const std::string& parameters, EncoderDecoder& learner) {
    run_.train.parameters = parameters;
    learner.initialize(1);
    return train(learner, run_.train, *task_);
  }
};

bool is_rounded(const Tensor& x) { return at::equal(x, x.to(at::kBFloat16).to(at::kFloat)); }

TEST_F(Bfloat16Run, LearnsNearlyAsWellAsInFloat32) {
  run_.train.steps = 200;
  run_.train.validate_every = 200;
  run_.train.schedule = "constant * linear_warmup";
  EncoderDecoder learner(run_.model, at::kFloat);
  const double plain = *trained("float32", learner).valid_nll();
  EXPECT_FALSE(is_rounded(learner.parameters().flat()));
  EXPECT_LT(plain, 0.7);  // from 2.5 at the beginning
  for (const char* parameters : {"bf16", "bf16-copy"}) {
    EXPECT_LT(*trained(parameters, learner).valid_nll(), plain + 0.3) << parameters;
    EXPECT_TRUE(is_rounded(learner.parameters().flat())) << parameters;
  }
}

TEST_F(Bfloat16Run, RefusesWhatItCannotRound) {
  const auto refusal = [&](at::ScalarType type) -> std::string {
    return test::message_of([&] {
      EncoderDecoder refused(run_.model, type);
      refused.initialize(1);
      train(refused, run_.train, *task_);
    });
  };
  run_.train.parameters = "bf16";
  EXPECT_EQ(refusal(at::kDouble), "train.parameters rounds float32 to bfloat16, and the model is not in float32");
  run_.model.residual = "ngpt";
  run_.model.share_embeddings = "none";
  EXPECT_EQ(refusal(at::kFloat),
            "model.residual = \"ngpt\" changes the weights after every step, which cannot be combined with "
            "train.parameters = \"bf16\"");
  run_.train.parameters = "int8";
  EXPECT_THROW(validate(run_.train), Error);
}

}  // namespace
}  // namespace plumb
