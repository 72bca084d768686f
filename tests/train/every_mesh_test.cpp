// Every mesh of up to eight processes, of one model: everything is that of one process. The other tests of divided
// training have a few meshes each, and more models.
#include <gtest/gtest.h>

#include "divided_training.h"

namespace plumb {
namespace {

using test::Shape;

class EveryMesh : public test::DividedTraining {};

TEST_P(EveryMesh, IsThatOfOneProcess) {
  const Trained one = trained({});
  int meshes = 0;
  for (const int64_t processes : {2, 4, 8}) {
    for (int64_t tensor = 1; tensor <= processes; tensor *= 2) {
      for (int64_t pipeline = 1; tensor * pipeline <= processes; pipeline *= 2, ++meshes) {
        const Shape shape{processes, tensor, pipeline};
        expect_same(trained(tensor * pipeline > 1 ? from_pieces(shape) : shape), one, to_string(shape));
      }
    }
  }
  EXPECT_EQ(meshes, 3 + 6 + 10);
}

INSTANTIATE_TEST_SUITE_P(Of, EveryMesh,
                         ::testing::Values(test::Architecture{"PostLn",
                                                              [](RunConfig& run) {
                                                                test::kPostLn.set(run);
                                                                run.model.encoder_layers = run.model.decoder_layers = 4;
                                                                run.model.d_model = 16;
                                                                run.model.heads = 8;
                                                                run.model.feed_forward = 24;
                                                                run.train.micro_batch_tokens = 0;
                                                              }}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace plumb
