// Names of layers and activations, and the layers that parameters belong to.
#include "plumb/nn/layer_id.h"

#include <gtest/gtest.h>

#include <vector>

#include "plumb/nn/context.h"

namespace plumb {
namespace {

TEST(LayerId, HasOneName) {
  EXPECT_EQ(to_string(LayerId{StackKind::decoder}), "decoder");
  EXPECT_EQ(to_string(LayerId{StackKind::encoder, 12}), "encoder.layers.12");
  EXPECT_EQ(to_string(LayerId{StackKind::decoder, 0, SubLayerKind::cross_attention}),
            "decoder.layers.0.cross_attention");
  EXPECT_EQ(to_string(ActivationPoint{{StackKind::encoder, 3, SubLayerKind::feed_forward}, Point::sum}),
            "encoder.layers.3.feed_forward.sum");
  EXPECT_EQ(to_string(ActivationPoint{{StackKind::encoder}, Point::result}), "encoder.result");
}

TEST(LayerId, IsReadFromItsName) {
  std::vector<LayerId> ids;
  for (const StackKind stack : {StackKind::encoder, StackKind::decoder}) {
    ids.push_back({stack});
    ids.push_back({stack, 10});
    for (const SubLayerKind kind : {SubLayerKind::self_attention, SubLayerKind::cross_attention,
                                    SubLayerKind::feed_forward, SubLayerKind::parallel}) {
      ids.push_back({stack, 0, kind});
    }
  }
  for (const LayerId& id : ids) EXPECT_EQ(LayerId::parse(to_string(id)), id) << to_string(id);
  for (const char* name : {"", "middle", "encoder.", "encoder.layers.1.", "encoder.layers.01", "encoder.feed_forward",
                           "encoder.layers", "encoder.layers.x", "encoder.layers.-1", "encoder.layers.1x",
                           "encoder.layers.1.feed", "encoder.layers.1.norm1", "encoder.layers.1.feed_forward.sum"}) {
    EXPECT_EQ(LayerId::parse(name), std::nullopt) << name;
  }
}

TEST(LayerId, OfAParameter) {
  const auto expect = [](const char* name, const LayerId& id) { EXPECT_EQ(LayerId::of_parameter(name), id) << name; };
  expect("encoder.layers.3.linear1.weight", {StackKind::encoder, 3, SubLayerKind::feed_forward});
  expect("encoder.layers.3.linear2.bias", {StackKind::encoder, 3, SubLayerKind::feed_forward});
  expect("decoder.layers.10.self_attn.in_proj_weight", {StackKind::decoder, 10, SubLayerKind::self_attention});
  expect("decoder.layers.0.multihead_attn.out_proj.bias", {StackKind::decoder, 0, SubLayerKind::cross_attention});
  expect("decoder.layers.2.norm3.weight", {StackKind::decoder, 2});
  expect("decoder.norm.weight", {StackKind::decoder});
  expect("src_embed.weight", {StackKind::encoder});
  expect("tgt_position.weight", {StackKind::decoder});
  expect("lstm.2.weight_hh_l0", {StackKind::decoder, 2});
  expect("embedding.weight", {StackKind::decoder});
  EXPECT_EQ(LayerId::of_parameter("lstm.two.weight_hh_l0"), std::nullopt);
  EXPECT_EQ(LayerId::of_parameter("output.weight"), std::nullopt);
  EXPECT_EQ(LayerId::of_parameter("encoder.layers.one.norm1.weight"), std::nullopt);
}

TEST(LayerId, ObserversAreShownThePoint) {
  ForwardContext context;
  const ActivationPoint point{{StackKind::decoder, 1, SubLayerKind::self_attention}, Point::stream};
  context.show(point, at::ones({2, 3}));  // no observers
  std::vector<ActivationPoint> seen;
  context.watch([&](const ActivationPoint& shown, const Tensor& x) {
    seen.push_back(shown);
    EXPECT_EQ(x.size(1), 3);
  });
  context.show(point, at::ones({2, 3}));
  EXPECT_EQ(seen, std::vector<ActivationPoint>{point});
}

}  // namespace
}  // namespace plumb
