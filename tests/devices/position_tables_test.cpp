// Position tables are computed only a few times, and kept for each type and device.
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "devices.h"
#include "plumb/model/capabilities.h"
#include "plumb/nn/position/growing_table.h"

namespace plumb {
namespace {

using test::small_model;

/// Counts LibTorch's calls of cos, which position tables are computed with.
class CosineCounter {
 public:
  CosineCounter()
      : handle_(at::addGlobalCallback(at::RecordFunctionCallback(&seen).scopes({at::RecordScope::FUNCTION}))) {
    count() = 0;
  }
  ~CosineCounter() { at::removeCallback(handle_); }
  static std::atomic<int64_t>& count() {
    static std::atomic<int64_t> number = 0;
    return number;
  }

 private:
  static std::unique_ptr<at::ObserverContext> seen(const at::RecordFunction& function) {
    if (std::string(function.name()) == "aten::cos") ++count();
    return nullptr;
  }
  at::CallbackHandle handle_;
};

TEST(PositionTables, AreMadeAFewTimesHoweverLongOneDecodes) {
  for (const std::string position : {"sinusoidal", "rotary"}) {
    ModelConfig config = small_model("decoder", 3);
    config.positions = position;
    const std::unique_ptr<Model> model = make_model(config);
    model->initialize(1);
    const CosineCounter counter;
    Generates& generator = *model->generates();
    DecoderState state = generator.start(1);
    for (int64_t step = 0; step < 979; ++step) (void)generator.step(state, {5});
    EXPECT_GE(CosineCounter::count(), 1) << position;
    EXPECT_LE(CosineCounter::count(), 3) << position;  // 256, 512 and 1,024 rows, for all layers
  }
}

TEST(PositionTables, AreOneForEachTypeAndDevice) {
  std::vector<int64_t> lengths;
  const GrowingTable table([&](int64_t length) {
    lengths.push_back(length);
    return at::arange(length, at::TensorOptions(at::kDouble)).unsqueeze(1);
  });
  const at::TensorOptions single(at::kFloat), exact(at::kDouble), there = exact.device(test::simulated_device());
  const Tensor first = table.rows(10, single);
  EXPECT_TRUE(table.rows(20, exact).is_same(table.rows(30, exact)));
  EXPECT_TRUE(table.rows(10, single).is_same(first));  // others do not evict it
  EXPECT_EQ(table.rows(256, there).device(), test::simulated_device());
  EXPECT_EQ(lengths, std::vector<int64_t>{256});
  for (int64_t length = 257; length <= 979; ++length) {
    for (const at::TensorOptions& options : {single, exact, there}) {
      const Tensor rows = table.rows(length, options);
      ASSERT_GE(rows.size(0), length);
      ASSERT_EQ(rows[length - 1].item<double>(), length - 1);
    }
  }
  EXPECT_EQ(lengths, (std::vector<int64_t>{256, 512, 1024}));
}

}  // namespace
}  // namespace plumb
