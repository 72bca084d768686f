// Measurements on another device: curvature, the probe, and the memory that they hold there.
#include <gtest/gtest.h>

#include <filesystem>

#include "devices.h"
#include "plumb/analysis/curvature/spectrum.h"
#include "plumb/analysis/probe.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

using test::batch_for;
using test::on;
using test::small_model;

class MeasurementsOnDevices : public test::OnEachDevice {};
INSTANTIATE_ON_DEVICES(MeasurementsOnDevices);

TEST_P(MeasurementsOnDevices, CurvatureAndProbe) {
  const ModelConfig config = small_model("encoder-decoder", 1);
  const std::vector<Batch> batches = {batch_for(config.kind)};
  SpectrumOptions options;
  options.steps = 6;
  const auto spectrum = [&] {
    const std::unique_ptr<Model> model = make_model(config, at::kDouble);
    model->initialize(5);
    return measure_spectrum(*model, batches, options);
  };
  for (const bool by_layer : {false, true}) {
    options.by_layer = by_layer;
    const SpectrumReport found = on(GetParam(), spectrum), expected = spectrum();
    EXPECT_NEAR(found.gradient_norm, expected.gradient_norm, 1e-9 * expected.gradient_norm);
    const auto largest = [&](const SpectrumReport& report) {
      return by_layer ? report.blocks.front().spectrum.max.value : report.whole->max.value;
    };
    EXPECT_NEAR(largest(found), largest(expected), 1e-8 * largest(expected));
  }
  options.by_layer = false;
  options.basis_directory = std::filesystem::temp_directory_path();
  EXPECT_THROW(on(GetParam(), spectrum), Error);

  ProbeOptions probing;
  probing.type = at::kDouble;
  probing.seeds = {1, 2};
  const auto probed = [&] { return probe(config, std::nullopt, batches, probing); };
  const ProbeReport found = on(GetParam(), probed), expected = probed();
  EXPECT_NEAR(found.loss.mean, expected.loss.mean, 1e-10);
  EXPECT_NEAR(found.gradient_norm_total.mean, expected.gradient_norm_total.mean, 1e-9);
}

TEST_P(MeasurementsOnDevices, GraphsAreKeptWithinTheirBudgetOfTheDevicesMemory) {
  const ops::DefaultDevice guard(GetParam());
  const std::unique_ptr<Model> model = make_model(small_model("encoder-decoder", 1), at::kDouble);
  model->initialize(5);
  const auto kept = [&](int64_t budget) {
    HessianOptions options;
    options.graph_memory = budget;
    return HessianOperator(*model, {batch_for("encoder-decoder"), batch_for("encoder-decoder")}, options).kept();
  };
  EXPECT_EQ(kept(0), 0U);
  EXPECT_EQ(kept(1000), 0U);  // too little for one
  EXPECT_EQ(kept(int64_t{1} << 30), 2U);
}

}  // namespace
}  // namespace plumb
