// Shared by tests on every device: the devices, and a batch for small_model.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plumb/model/model.h"
#include "plumb/ops/device.h"
#include "simulated_device.h"
#include "support/batches.h"
#include "support/small_model.h"

namespace plumb::test {

/// The device to compare with the CPU: a GPU if the machine has one, else the simulated one. LibTorch cannot drive both
/// in one process.
inline std::vector<at::Device> other_devices() {
  const std::vector<at::Device> devices = ops::available_devices();
  return {devices.size() > 1 ? devices[1] : simulated_device()};
}

/// A test that runs on each of these devices; to be instantiated by INSTANTIATE_ON_DEVICES.
class OnEachDevice : public ::testing::TestWithParam<at::Device> {};

#define INSTANTIATE_ON_DEVICES(suite)                                                       \
  INSTANTIATE_TEST_SUITE_P(All, suite, ::testing::ValuesIn(::plumb::test::other_devices()), \
                           [](const auto& info) { return info.param.is_cuda() ? "cuda" : "simulated"; })

/// The result of work() with models created on this device.
template <typename Work>
auto on(const at::Device& device, const Work& work) {
  const ops::DefaultDevice guard(device);
  return work();
}

inline void expect_close(const Tensor& found, const Tensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  EXPECT_TRUE(at::allclose(found, expected, tolerance, tolerance)) << what << ": by " << (found - expected).abs().max();
}

inline Batch batch_for(const std::string& kind) {
  Batch batch;
  append(batch, std::vector<int32_t>{4, 5, 6, 7}, std::vector<int32_t>{8, 9, 4}, 0);
  append(batch, std::vector<int32_t>{9, 4}, std::vector<int32_t>{5, 5, 6, 11, 7}, 1);
  if (kind != "encoder") return batch;
  batch.target_input.clear();
  batch.target_layout = Ragged();
  batch.labels = {2, 0};
  return batch;
}

}  // namespace plumb::test
