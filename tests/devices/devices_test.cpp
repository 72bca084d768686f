// Models on another device than the CPU do what they do on the CPU: on a GPU where there is one, and everywhere on a
// device that is simulated, which refuses operations between devices and counts what crosses over.
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "optim/options.h"
#include "plumb/analysis/collapse.h"
#include "plumb/analysis/curvature/spectrum.h"
#include "plumb/analysis/probe.h"
#include "plumb/analysis/retrieval.h"
#include "plumb/base/error.h"
#include "plumb/data/directory.h"
#include "plumb/decode/beam_search.h"
#include "plumb/decode/classify.h"
#include "plumb/decode/generate.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/capabilities.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/nn/init/init.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/pooling.h"
#include "plumb/nn/position/growing_table.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/ops/attention.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/device.h"
#include "plumb/ops/dropout.h"
#include "plumb/ops/gram_schmidt.h"
#include "plumb/ops/index.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/norm.h"
#include "plumb/ops/packed_linear.h"
#include "plumb/ops/precision.h"
#include "plumb/ops/update.h"
#include "plumb/optim/clipping.h"
#include "plumb/optim/optimizer.h"
#include "plumb/train/trainer.h"
#include "simulated_device.h"
#include "support/batches.h"
#include "support/gradcheck.h"
#include "support/paths.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

/// The devices to hold against the CPU.
std::vector<at::Device> other_devices() {
  std::vector<at::Device> devices{test::simulated_device()};
  for (const at::Device& device : ops::available_devices()) {
    if (device.is_cuda()) devices.push_back(device);
  }
  return devices;
}

class Devices : public ::testing::TestWithParam<at::Device> {};
INSTANTIATE_TEST_SUITE_P(All, Devices, ::testing::ValuesIn(other_devices()),
                         [](const auto& info) { return info.param.is_cuda() ? "cuda" : "simulated"; });

/// What work() gives when models are made on this device, in the host's memory.
template <typename Work>
auto on(const at::Device& device, const Work& work) {
  const ops::DefaultDevice guard(device);
  return work();
}

void expect_close(const Tensor& found, const Tensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  EXPECT_TRUE(at::allclose(found, expected, tolerance, tolerance)) << what << ": by " << (found - expected).abs().max();
}

ModelConfig tiny(const std::string& kind = "encoder-decoder") {
  ModelConfig config;
  config.kind = kind;
  config.d_model = 8;
  config.feed_forward = 12;
  config.heads = 2;
  config.encoder_layers = config.decoder_layers = 1;
  config.source_vocabulary = config.target_vocabulary = 12;
  config.max_positions = 16;
  if (kind == "encoder") config.labels = 3;
  config.embedding_size = 8;
  config.hidden_size = 12;
  config.layers = 2;
  return config;
}

Batch batch_for(const std::string& kind) {
  Batch batch;
  append(batch, std::vector<int32_t>{4, 5, 6, 7}, std::vector<int32_t>{8, 9, 4}, 0);
  append(batch, std::vector<int32_t>{9, 4}, std::vector<int32_t>{5, 5, 6, 11, 7}, 1);
  if (kind != "encoder") return batch;
  batch.target_input.clear();
  batch.target_layout = Ragged();
  batch.labels = {2, 0};
  return batch;
}

/// Loss, gradient and parameters behind a step of training with dropout.
struct Step {
  double loss = 0;
  Tensor gradient, after;
};

Step one_step(const ModelConfig& config, const std::string& optimizer_name) {
  const std::unique_ptr<Model> model = make_model(config, at::kDouble);
  model->initialize(3);
  const Parameters& parameters = model->parameters();
  // Where a gradient is nothing but rounding, Lion's and Adafactor's steps are as long as elsewhere, and SOAP's
  // rotations are arbitrary: Lion and SOAP take a single step, and Adafactor adds to its squares what is more than
  // rounding.
  const auto optimizer = make_optimizer(optimizer_name, parameters, test::options("[train.adafactor]\neps = 1e-12\n"));
  const bool one = optimizer_name == "lion" || optimizer_name == "soap";
  Step step;
  for (int64_t number = 1; number <= (one ? 1 : 2); ++number) {
    ForwardContext context(0.2, 7, number);
    const Loss loss = model->loss(batch_for(config.kind), {.label_smoothing = 0.1}, context);
    const std::vector<Tensor> gradient = gradients({loss.value}, parameters.values(), {});
    optimizer->step(gradient, 1e-3, clip_scale(global_norm(gradient), 0.5));
    step.loss = loss.value.item<double>();
    step.gradient = joined(gradient).cpu();
  }
  step.after = parameters.flat().cpu().clone();
  return step;
}

void expect_same_step(const at::Device& device, const ModelConfig& config, const std::string& optimizer) {
  const std::string what = fmt::format("{}, {}, {}, {}, {}, {}, {}", config.kind, config.residual, config.norm,
                                       config.attention, config.positions, config.activation, optimizer);
  SCOPED_TRACE(what);
  Step found;
  try {
    found = on(device, [&] { return one_step(config, optimizer); });
  } catch (const c10::Error& error) {
    FAIL() << what << ": " << error.what_without_backtrace();
  }
  const Step expected = one_step(config, optimizer);
  EXPECT_NEAR(found.loss, expected.loss, 1e-10 * std::abs(expected.loss));
  const double scale = expected.gradient.abs().max().item<double>();
  expect_close(found.gradient / scale, expected.gradient / scale, 1e-8, "gradient");
  // Where a gradient is nothing but rounding, Lion's step is its sign; so its second step is another.
  const Tensor moved = expected.gradient.abs() > 1e-9 * scale;
  expect_close(found.after.masked_select(moved), expected.after.masked_select(moved), 1e-7, "parameters");
}

template <typename Names>
const std::string& nth(const Names& names, size_t i) {
  return names[i % names.size()];
}

TEST_P(Devices, SoapRotatesWhatHasNoNullSpace) {
  const auto trained = [] {
    Parameters parameters(at::kDouble);
    parameters.add("w", {5, 5}, Role::weight);
    parameters.finish();
    const auto optimizer = make_optimizer("soap", parameters, test::options("[train.soap]\nevery = 3\n"));
    for (uint64_t t = 1; t <= 8; ++t) optimizer->step({testing::random_tensor({5, 5}, t).to(parameters.device())}, 0.1);
    return parameters.flat().cpu();
  };
  expect_close(on(GetParam(), trained), trained(), 1e-9, "parameters");
}

TEST_P(Devices, EveryAttentionTrainsWithEveryPositionEncoding) {
  const auto optimizer_names = optimizers().names();
  const auto activations = feed_forwards().names();
  const std::vector<std::string> kinds = {"encoder-decoder", "decoder", "encoder"};
  size_t i = 0;
  for (const std::string& attention : attentions().names()) {
    for (const std::string& position : positions().names()) {
      ModelConfig config = tiny(nth(kinds, i));
      config.attention = attention;
      config.positions = position;
      config.activation = nth(activations, i);
      const bool biases = position == "alibi" || position == "t5" || position == "transformer-xl";
      if (biases && attention != "softmax") continue;
      expect_same_step(GetParam(), config, nth(optimizer_names, i++));
    }
  }
}

TEST_P(Devices, EveryResidualSchemeTrainsWithEveryNorm) {
  const auto optimizer_names = optimizers().names();
  const auto initializations_known = initializations().names();
  size_t i = 0;
  for (const std::string& residual : residual_schemes().names()) {
    for (const std::string& norm : norms().names()) {
      ModelConfig config = tiny(i % 2 == 0 ? "encoder-decoder" : "decoder");
      config.residual = residual;
      config.norm = norm;
      config.initialization = nth(initializations_known, i);
      if (config.initialization == "theory") config.heads = 1;
      expect_same_step(GetParam(), config, nth(optimizer_names, i++));
    }
  }
}

TEST_P(Devices, TheRecurrentModelTrains) { expect_same_step(GetParam(), tiny("awd-lstm"), "adam"); }

TEST_P(Devices, WhatElseABlockMayHave) {
  ModelConfig config = tiny();
  config.kv_heads = 1;
  config.qk_norm = "rmsnorm";
  config.value_residual = config.attention_gate = config.parallel = config.embedding_norm = config.output_bias = true;
  config.segments = 2;
  config.share_embeddings = "all";
  expect_same_step(GetParam(), config, "adam");
  for (const std::string& pooling : poolings().names()) {
    config = tiny("encoder");
    config.pooling = pooling;
    if (pooling == "none") continue;
    config.pooler = true;
    expect_same_step(GetParam(), config, "sgd");
  }
}

TEST_P(Devices, CurvatureAndProbe) {
  const ModelConfig config = tiny();
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

TEST_P(Devices, GraphsAreKeptWithinTheirBudgetOfTheDevicesMemory) {
  const ops::DefaultDevice guard(GetParam());
  const std::unique_ptr<Model> model = make_model(tiny(), at::kDouble);
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

TEST_P(Devices, DecodesTheSame) {
  for (const std::string attention : {"softmax", "linear", "delta"}) {
    for (const std::string position : {"sinusoidal", "rotary"}) {
      ModelConfig config = tiny();
      config.attention = attention;
      config.positions = position;
      const auto translated = [&] {
        const std::unique_ptr<Model> model = make_model(config, at::kDouble);
        model->initialize(3);
        DecodeOptions options;
        options.beam = 3;
        return beam_search(*model->translates(), {{4, 5, 6}, {9}, {4, 4, 7, 8}}, options);
      };
      EXPECT_EQ(on(GetParam(), translated), translated()) << attention << ", " << position;
      config = tiny("decoder");
      config.attention = attention;
      config.positions = position;
      const auto generated = [&] {
        const std::unique_ptr<Model> model = make_model(config, at::kDouble);
        model->initialize(3);
        GenerateOptions options;
        options.samples = 2;
        options.max_tokens = 6;
        std::vector<std::vector<int32_t>> ids;
        for (const Generated& each : generate(*model->generates(), {{4, 5, 6}, {9}}, options)) ids.push_back(each.ids);
        return ids;
      };
      EXPECT_EQ(on(GetParam(), generated), generated()) << attention << ", " << position;
    }
  }
}

TEST_P(Devices, DecodesInEveryPrecision) {
  ModelConfig config = tiny();
  for (const std::string precision : {"float32", "bf16", "int8"}) {
    const auto translated = [&] {
      const std::unique_ptr<Model> model = make_model(config);
      model->initialize(3);
      DecodeOptions options;
      options.beam = 2;
      options.precision = precision;
      return beam_search(*model->translates(), {{4, 5, 6}, {9}}, options);
    };
    EXPECT_EQ(on(GetParam(), translated).size(), 2U) << precision;
  }
}

TEST_P(Devices, WhatOneSavesTheOtherLoads) {
  const test::TemporaryDirectory directory;
  const auto made = [&](const at::Device& device, uint64_t seed) {
    const ops::DefaultDevice guard(device);
    std::unique_ptr<Model> model = make_model(tiny(), at::kDouble);
    model->initialize(seed);
    return model;
  };
  const auto there = made(GetParam(), 1), here = made(at::kCPU, 2);
  const auto file = directory / "model.safetensors";
  save_safetensors(file, named_values(there->parameters()));
  load_parameters(here->parameters(), load_safetensors(file), "file");
  EXPECT_TRUE(here->parameters().flat().equal(there->parameters().flat().cpu()));
  const auto again = made(GetParam(), 3);
  load_parameters(again->parameters(), load_safetensors(file), "file");
  EXPECT_EQ(again->parameters().flat().device(), GetParam());
  EXPECT_TRUE(here->parameters().flat().equal(again->parameters().flat().cpu()));
}

TEST_P(Devices, TrainsARunTheSame) {
  const test::TemporaryDirectory directory;
  test::make_copy_task(directory / "data");
  RunConfig run = test::copy_run(directory / "data");
  run.model.dropout = 0.1;
  run.train.clip_norm = 1;
  run.train.steps = 10;
  const auto trained = [&](const std::string& name, bool resumed) {
    const std::unique_ptr<Task> task = make_task({}, DataDirectory::open(run.data), run.model.kind);
    ModelConfig config = run.model;
    task->complete(config);
    const std::unique_ptr<Model> model = make_model(config, at::kDouble);
    model->initialize(1);
    Trainer trainer(*model, run.train, *task);
    const auto checkpoint = directory / name;
    if (resumed) trainer.load(checkpoint);
    TrainHooks hooks;
    std::filesystem::create_directories(checkpoint);
    if (!resumed) {
      hooks.checkpoint = [&](const Trainer& at) {
        if (at.step() == 7) at.save(checkpoint);
      };
    }
    return trainer.run(hooks);
  };
  const TrainResult expected = trained("here", false);
  const TrainResult found = on(GetParam(), [&] { return trained("there", false); });
  ASSERT_EQ(found.history.size(), expected.history.size());
  for (size_t i = 0; i < expected.history.size(); ++i) {
    EXPECT_NEAR(found.history[i].loss, expected.history[i].loss, 1e-7) << i;
    EXPECT_NEAR(*found.history[i].gradient_norm, *expected.history[i].gradient_norm, 1e-6) << i;
  }
  EXPECT_NEAR(*found.valid_nll(), *expected.valid_nll(), 1e-7);
  // A run that was begun on one device ends on another.
  const TrainResult moved = on(GetParam(), [&] { return trained("here", true); });
  EXPECT_NEAR(*moved.valid_nll(), *expected.valid_nll(), 1e-7);
}

TEST(SimulatedDevice, AStepOfTrainingReadsItOnceAndABatchCrossesOnce) {
  const at::Device device = test::simulated_device();
  const ops::DefaultDevice guard(device);
  const test::TemporaryDirectory directory;
  test::make_copy_task(directory / "data");
  RunConfig run = test::copy_run(directory / "data");
  run.model.dropout = 0.1;
  run.train.clip_norm = 1;
  run.train.validate_every = 1000;
  run.train.steps = 8;
  const auto uploads_with = [&](int64_t layers) {
    const std::unique_ptr<Task> task = make_task({}, DataDirectory::open(run.data), run.model.kind);
    ModelConfig config = run.model;
    config.encoder_layers = config.decoder_layers = layers;
    task->complete(config);
    const std::unique_ptr<Model> model = make_model(config);
    model->initialize(1);
    Trainer trainer(*model, run.train, *task);
    int64_t uploads = 0;
    // What was uploaded before is forgotten for the sake of other ids.
    for (int64_t i = 0; i < 300; ++i) (void)ops::index_beside(model->parameters().flat(), {i, layers});
    test::traffic().reads = 0;
    TrainHooks hooks;
    hooks.stop = [&] {
      uploads = test::traffic().uploads;
      if (trainer.step() < run.train.steps.in_steps()) {
        EXPECT_EQ(test::traffic().reads, trainer.step());
      }
      return trainer.step() == run.train.steps.in_steps() - 1;
    };
    test::traffic().uploads = 0;
    trainer.run(hooks);
    return uploads;
  };
  const int64_t shallow = uploads_with(1);
  EXPECT_GT(shallow, 0);
  EXPECT_EQ(uploads_with(3), shallow);  // layers share what the batch brought along
}

TEST_P(Devices, NoOperationMixesThem) {
  const at::Device device = GetParam();
  const auto make = [](at::IntArrayRef shape, const at::Device& place) {
    return testing::random_tensor(shape, 1).to(place);
  };
  const at::Device cpu(at::kCPU);
  for (const auto& [one, other] : {std::pair{cpu, device}, std::pair{device, cpu}}) {
    const Tensor x = make({4, 6}, one), w = make({5, 6}, other), row = make({6}, one), foreign = make({6}, other);
    const auto refuses = [&, from = one, to = other](const std::string& what, const std::function<void()>& work) {
      try {
        work();
        ADD_FAILURE() << what << " mixes " << from << " and " << to;
      } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find(from.str()), std::string::npos) << what << ": " << text;
        EXPECT_NE(text.find(to.str()), std::string::npos) << what << ": " << text;
      }
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
    refuses("sgd", [&] { ops::sgd_update({ops::SgdUpdate{}}, {foreign}, {row.clone()}, {row}); });
    refuses("adam", [&] { ops::adam_update({ops::AdamUpdate{}}, {row}, {row.clone()}, {foreign}, {row}); });
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
    try {
      ops::device_named(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.hint(), "known: cpu, cuda, cuda:N with N from 0") << name;
    }
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

/// How often LibTorch takes cosines while this exists: that is how tables of positions are made.
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
    ModelConfig config = tiny("decoder");
    config.decoder_layers = 3;
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
  EXPECT_TRUE(table.rows(10, single).is_same(first));  // others do not drive it out
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
