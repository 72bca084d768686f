// Spectra and probes of models whose layers processes compute together, compared with those of one process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plumb/analysis/backward_gain.h"
#include "plumb/analysis/curvature/kept_graphs.h"
#include "plumb/analysis/curvature/spectrum.h"
#include "plumb/analysis/probe.h"
#include "plumb/base/error.h"
#include "plumb/divided/mesh.h"
#include "support/architectures.h"
#include "support/batches.h"
#include "support/contains.h"
#include "support/paths.h"
#include "support/ranks.h"
#include "tiny_translator.h"

namespace plumb {
namespace {

using test::Architecture;

const std::vector<Architecture> kArchitectures = {
    test::kPostLn,
    test::kLlama,
    test::kGopher,
    test::kGated,
    {"TwoStreams", [](RunConfig& run) { run.model.residual = "residual-dual"; }},
    {"HyperConnections", [](RunConfig& run) { run.model.residual = "hyper-connections"; }},
    {"WholeTables", [](RunConfig& run) { run.model.source_vocabulary = run.model.target_vocabulary = 9; }},
};

/// Three micro-batches of different sizes.
std::vector<Batch> micro_batches() {
  using Words = std::vector<int32_t>;
  std::vector<Batch> batches(3);
  append(batches[0], Words{4, 5, 6}, Words{6}, 0);
  append(batches[0], Words{7}, Words{5, 4}, 1);
  append(batches[1], Words{5}, Words{4, 4, 5, 7, 6}, 2);
  append(batches[2], Words{4, 7}, Words{7, 7}, 3);
  append(batches[2], Words{5, 5}, Words{6, 4, 5}, 4);
  return batches;
}

class DividedMeasurements : public ::testing::TestWithParam<Architecture> {
 protected:
  DividedMeasurements() {
    run_.model = test::tiny_translator();
    run_.model.d_model = 12;
    run_.model.heads = 4;
    run_.model.feed_forward = 20;
    GetParam().set(run_);
    options_.steps = 12;
    options_.probes = options_.at_once = 2;
    options_.hessian.label_smoothing = 0.1;
  }

  [[nodiscard]] SpectrumReport of_one() const {
    return measure_spectrum(*test::initialized(run_.model), micro_batches(), options_);
  }

  /// In `processes` of which each `tensor` compute the model together; rank 0's report.
  [[nodiscard]] SpectrumReport divided(int64_t processes, int64_t tensor) const {
    SpectrumReport report;
    test::as_ranks(processes, [&](const Group& group) {
      const std::unique_ptr<Model> model = test::initialized(run_.model);
      const Mesh mesh(group, tensor);
      const LayerDivision division = model->divide(mesh.tensor);
      SpectrumOptions own = options_;
      own.hessian.group = mesh.data;
      own.hessian.division = &division;
      SpectrumReport found = measure_spectrum(*model, micro_batches(), own);
      EXPECT_EQ(found.whole || !found.blocks.empty(), mesh.data.rank() == 0);
      if (group.rank() == 0) report = std::move(found);
    });
    return report;
  }

  RunConfig run_;
  SpectrumOptions options_;
};

/// 1e-10 of the largest magnitude: Lanczos amplifies the rounding of another order of sums a little.
void expect_same(const Spectrum& found, const Spectrum& one) {
  const double rounding = 1e-10 * std::max(std::abs(one.max.value), std::abs(one.min.value));
  ASSERT_EQ(found.probes.size(), one.probes.size());
  for (size_t i = 0; i < one.probes.size(); ++i) {
    ASSERT_EQ(found.probes[i].steps, one.probes[i].steps);
    for (size_t k : {size_t{0}, one.probes[i].ritz.values.size() - 1}) {
      EXPECT_NEAR(found.probes[i].ritz.values[k], one.probes[i].ritz.values[k], rounding);
      EXPECT_NEAR(found.probes[i].ritz.weights[k], one.probes[i].ritz.weights[k], 1e-8);
    }
  }
  EXPECT_NEAR(found.trace.mean, one.trace.mean, 1e-10 * one.frobenius.mean);
  EXPECT_NEAR(found.frobenius.mean, one.frobenius.mean, 1e-10 * one.frobenius.mean);
}

void expect_same(const SpectrumReport& found, const SpectrumReport& one) {
  EXPECT_EQ(found.parameters, one.parameters);
  EXPECT_EQ(found.tokens, one.tokens);
  EXPECT_NEAR(found.loss, one.loss, 1e-12 * one.loss);
  EXPECT_NEAR(found.gradient_norm, one.gradient_norm, 1e-12 * one.gradient_norm);
  EXPECT_EQ(found.whole.has_value(), one.whole.has_value());
  if (one.whole && found.whole) expect_same(*found.whole, *one.whole);
  ASSERT_EQ(found.blocks.size(), one.blocks.size());
  for (size_t i = 0; i < one.blocks.size(); ++i) {
    SCOPED_TRACE(to_string(one.blocks[i].id));
    EXPECT_EQ(found.blocks[i].id, one.blocks[i].id);
    EXPECT_EQ(found.blocks[i].parameters, one.blocks[i].parameters);
    expect_same(found.blocks[i].spectrum, one.blocks[i].spectrum);
  }
}

TEST_P(DividedMeasurements, ASpectrumIsThatOfOneProcess) {
  const SpectrumReport found = divided(4, 2);
  EXPECT_EQ(found.processes, 4);
  expect_same(found, of_one());
}

/// What is made of the same products, of which DividedMeasurements has every architecture.
class DividedSpectrum : public DividedMeasurements {};

TEST_P(DividedSpectrum, GraphsAreRebuiltByAllOfThem) {
  options_.probes = options_.at_once = 1;
  options_.steps = 8;
  const SpectrumReport one = of_one();
  options_.hessian.graph_memory = 0;
  const SpectrumReport found = divided(2, 2);
  EXPECT_EQ(found.processes, 2);
  EXPECT_EQ(found.graphs_kept, 0);
  expect_same(found, one);
}

TEST_P(DividedSpectrum, SpectraOfLayersAreThoseOfOneProcess) {
  options_.by_layer = true;
  options_.probes = options_.at_once = 1;
  expect_same(divided(4, 2), of_one());
}

INSTANTIATE_TEST_SUITE_P(Of, DividedMeasurements, ::testing::ValuesIn(kArchitectures),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Of, DividedSpectrum, ::testing::Values(test::kPostLn, test::kLlama, test::kGated),
                         [](const auto& info) { return info.param.name; });

// Each process decides when Lanczos ends, by the same numbers.
TEST_P(DividedSpectrum, ASpectrumEndsAtAToleranceAsInOneProcess) {
  const int64_t parts = run_.model.kv_heads > 0 ? run_.model.kv_heads : 4;
  options_.probes = options_.at_once = 1;
  options_.steps = 100;
  options_.tolerance = 0.05;
  const SpectrumReport one = of_one();
  const test::TemporaryDirectory scratch;
  options_.basis_directory = scratch.path();
  const SpectrumReport found = divided(parts, parts);
  EXPECT_LT(found.whole.value().probes[0].steps, 100);
  expect_same(found, one);
}

TEST_P(DividedMeasurements, AProbeIsThatOfOneProcess) {
  ProbeOptions options;
  options.seeds = {1, 2};
  options.label_smoothing = 0.1;
  options.type = at::kDouble;
  const ProbeReport one = probe(run_.model, {}, micro_batches(), options);
  for (const int64_t processes : {2, 4}) {
    SCOPED_TRACE(processes);
    test::as_ranks(processes, [&](const Group& group) {
      const Mesh mesh(group, 2);
      ProbeOptions own = options;
      own.group = mesh.data;
      own.layers = mesh.tensor;
      const ProbeReport found = probe(run_.model, {}, micro_batches(), own);  // all get it
      const auto expect_near = [](double value, double expected, const std::string& what) {
        EXPECT_NEAR(value, expected, 1e-10 * std::abs(expected)) << what;
      };
      expect_near(found.loss.mean, one.loss.mean, "loss");
      expect_near(found.loss_label_smoothing.mean, one.loss_label_smoothing.mean, "loss with label smoothing");
      expect_near(found.gradient_norm_total.mean, one.gradient_norm_total.mean, "gradient");
      expect_near(found.gradient_norm_total.low, one.gradient_norm_total.low, "its interval");
      ASSERT_EQ(found.gradient_norm.size(), one.gradient_norm.size());
      for (size_t i = 0; i < one.gradient_norm.size(); ++i) {
        const auto& [name, norm] = one.gradient_norm[i];
        EXPECT_EQ(found.gradient_norm[i].first, name);
        // Biases of keys have no gradient but for rounding.
        EXPECT_NEAR(found.gradient_norm[i].second, norm, 1e-10 * std::max(norm, 1e-5)) << name;
      }
      ASSERT_EQ(found.signal.size(), one.signal.size());
      for (size_t i = 0; i < one.signal.size(); ++i) {
        EXPECT_EQ(found.signal[i].point, one.signal[i].point);
        expect_near(found.signal[i].mean_square.mean, one.signal[i].mean_square.mean, to_string(one.signal[i].point));
      }
      for (size_t i = 0; i < one.feed_forward.size(); ++i) {
        expect_near(found.feed_forward[i].batch_mean_gradient_norm.mean,
                    one.feed_forward[i].batch_mean_gradient_norm.mean, one.feed_forward[i].parameter);
      }
    });
  }
}

TEST_P(DividedMeasurements, GainsAreThoseOfOneProcess) {
  const BackwardGains one = measure_backward_gains(*test::initialized(run_.model), micro_batches());
  test::as_ranks(4, [&](const Group& group) {
    const std::unique_ptr<Model> model = test::initialized(run_.model);
    const Mesh mesh(group, 2);
    const LayerDivision division = model->divide(mesh.tensor);
    const BackwardGains found = measure_backward_gains(*model, micro_batches(), 0, model_loss, mesh.data);
    ASSERT_EQ(found.stacks.size(), one.stacks.size());
    for (size_t s = 0; s < one.stacks.size(); ++s) {
      const StackGains &stack = found.stacks[s], &wanted = one.stacks[s];
      EXPECT_NEAR(stack.input_gradient, wanted.input_gradient, 1e-10 * wanted.input_gradient);
      ASSERT_EQ(stack.parts.size(), wanted.parts.size());
      for (size_t i = 0; i < wanted.parts.size(); ++i) {
        EXPECT_NEAR(stack.parts[i].gradient, wanted.parts[i].gradient, 1e-10 * wanted.parts[i].gradient);
        EXPECT_NEAR(stack.parts[i].gain, wanted.parts[i].gain, 1e-10 * wanted.parts[i].gain);
        const std::optional<double> memory = wanted.parts[i].memory_gain;
        ASSERT_EQ(stack.parts[i].memory_gain.has_value(), memory.has_value());
        EXPECT_NEAR(stack.parts[i].memory_gain.value_or(0), memory.value_or(0), 1e-10 * memory.value_or(0));
      }
    }
  });
}

// A process alone would keep all of them.
TEST(KeptGraphs, AreThoseThatFitIntoEveryProcess) {
  for (const auto& [exceeded_at, expected] : {std::pair{3, 1}, {4, 1}, {5, 2}, {100, 5}}) {
    std::vector<size_t> kept;
    int calls = 0;
    keep_graphs(
        kept, 5, int64_t{1} << 40, at::kCPU, [](size_t i) { return i; },
        [&, at = exceeded_at](bool own) { return own || ++calls == at; });
    EXPECT_EQ(std::ssize(kept), expected) << exceeded_at;
  }
}

// A budget beyond the machine's memory. Nothing is written to the tensors, so that they take none. A graph that is the
// only one would be no smaller if it were computed again.
TEST(KeptGraphs, LeaveRoomForTwoMoreInTheMachinesMemory) {
  ops::return_tensor_memory();
  for (const auto& [share, count, expected] : {std::tuple{0.6, 3, 0}, {0.4, 3, 1}, {0.3, 3, 3}, {0.6, 1, 1}}) {
    const auto size = static_cast<int64_t>(share * static_cast<double>(ops::available_memory()));
    std::vector<Tensor> kept;
    keep_graphs(kept, static_cast<size_t>(count), std::numeric_limits<int64_t>::max(), at::kCPU,
                [size](size_t) { return at::empty({size}, at::kByte); });
    EXPECT_EQ(std::ssize(kept), expected) << share << " of " << count;
    kept.clear();
    keep_graphs(
        kept, static_cast<size_t>(count), std::numeric_limits<int64_t>::max(), at::kCPU,
        [size](size_t) { return at::empty({size}, at::kByte); }, {}, ops::available_memory());
    EXPECT_EQ(std::ssize(kept), count == 1 ? 1 : 0) << "with nothing left";
  }
}

TEST(DividedSpectra, NeedLanczos) {
  test::as_ranks(2, [](const Group& group) {
    const std::unique_ptr<Model> model = test::initialized([] {
      ModelConfig config = test::tiny_translator();
      config.feed_forward = 6;
      return config;
    }());
    const LayerDivision division = model->divide(group);
    SpectrumOptions options;
    options.dense = true;
    options.hessian.division = &division;
    try {
      static_cast<void>(measure_spectrum(*model, micro_batches(), options));
      ADD_FAILURE() << "all eigenvalues of a divided matrix";
    } catch (const Error& error) {
      EXPECT_CONTAINS(error.what(), "the whole matrix in one process");
    }
  });
}

}  // namespace
}  // namespace plumb
