// No operation mixes tensors of two devices; names of devices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "devices.h"
#include "plumb/base/error.h"
#include "plumb/ops/attention.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/dropout.h"
#include "plumb/ops/gram_schmidt.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/lstm.h"
#include "plumb/ops/norm.h"
#include "plumb/ops/packed_linear.h"
#include "plumb/ops/precision.h"
#include "plumb/ops/relative_attention.h"
#include "plumb/ops/update.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

class OperationsOnDevices : public test::OnEachDevice {};
INSTANTIATE_ON_DEVICES(OperationsOnDevices);

TEST_P(OperationsOnDevices, NoOperationMixesThem) {
  const at::Device device = GetParam();
  const auto make = [](at::IntArrayRef shape, const at::Device& place) {
    return testing::random_tensor(shape, 1).to(place);
  };
  const at::Device cpu(at::kCPU);
  for (const auto& places : {std::pair{cpu, device}, std::pair{device, cpu}}) {
    const at::Device one = places.first, other = places.second;
    const Tensor x = make({4, 6}, one), w = make({5, 6}, other), row = make({6}, one), foreign = make({6}, other);
    const auto refuses = [&](const std::string& what, const std::function<void()>& work) {
      const Error error = test::error_of([&] { work(); });
      const std::string text = error.what();
      EXPECT_CONTAINS(text, one.str()) << what << ": " << text;
      EXPECT_CONTAINS(text, other.str()) << what << ": " << text;
    };
    const Ragged layout({4});
    const ops::HeadShape shape{1, 1, 2};
    refuses("linear", [&] { ops::linear(x, w, {}); });
    refuses("linear", [&] { ops::linear(x, w.to(x.device()), make({5}, w.device())); });
    refuses("gemm", [&] { ops::gemm(x, w, {.transpose_b = true}); });
    refuses("product", [&] { ops::matrix_product(x, w, false, true); });
    refuses("layer norm", [&] { ops::layer_norm(x, row, foreign, 1e-5); });
    refuses("RMS norm", [&] { ops::rms_norm(x, foreign, 1e-5); });
    refuses("dropout", [&] { ops::add_dropout(make({4, 6}, w.device()), x, 0.5, {}); });
    refuses("attention", [&] {
      ops::cross_attention(make({4, 2}, x.device()), make({4, 4}, w.device()), layout, layout, shape);
    });
    refuses("cross-entropy", [&] { ops::linear_cross_entropy(x, w, {}, {0, 1, 2, 3}, {}, 0, 1); });
    const ops::LstmState zero{make({1, 3}, one), make({1, 3}, one)};
    const ops::LstmWeights gates{make({12, 6}, one), make({12, 3}, other), make({12}, one), make({12}, one)};
    refuses("LSTM", [&] { ops::lstm(x, gates, zero, layout); });
    refuses("relative attention", [&] {
      ops::relative_attention(make({4, 2}, one), make({4, 2}, one), make({4, 4}, other), make({4, 2}, other), layout,
                              shape);
    });
    refuses("sgd", [&] { ops::update(std::vector{ops::SgdUpdate{}}, {foreign}, {{{row.clone()}, {row}}}); });
    refuses("adam", [&] { ops::update(std::vector{ops::AdamUpdate{}}, {row}, {{{row.clone()}, {foreign}, {row}}}); });
    refuses("Gram-Schmidt", [&] {
      Tensor w1 = row.clone();
      ops::gram_schmidt({foreign}, {1.0}, true, w1);
    });
    refuses("packed",
            [&] { (void)ops::PackedLinear(w.to(at::kFloat), ops::Precision::float32)(x.to(at::kFloat), {}, false); });
    ops::CachedKeys keys;
    keys.append(make({4, 4}, w.device()), layout);
    refuses("cached attention", [&] { ops::cached_attention(make({4, 2}, x.device()), layout, keys, shape); });
  }
}

TEST(DeviceNames, AreCheckedAgainstWhatIsThere) {
  EXPECT_EQ(ops::device_named("cpu"), at::Device(at::kCPU));
  for (const char* name : {"tpu", "", "CPU", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cpu:0", "meta"}) {
    EXPECT_EQ(test::error_of([&] { ops::device_named(name); }).hint(), "known: cpu, cuda, cuda:N with N from 0")
        << name;
  }
  const auto gpus = static_cast<int64_t>(ops::available_devices().size()) - 1;
  EXPECT_THROW(ops::device_named(fmt::format("cuda:{}", gpus)), Error);
  EXPECT_THROW(ops::device_named("cuda:99999999999999999999"), Error);
  if (gpus == 0) {
    EXPECT_THROW(ops::device_named("cuda"), Error);
    GTEST_SKIP() << "this machine has no GPU";
  }
  EXPECT_EQ(ops::device_named("cuda"), at::Device(at::kCUDA, 0));
}

}  // namespace
}  // namespace plumb
