// Random models of the families of Hugging Face, in both directions: folders with random settings whose logits
// `transformers` computed, and random models of Plumb's own that are exported and read by `transformers`. A batch of
// both is one case, since starting `transformers` takes seconds; scripts/search/families.py draws and answers. Needs
// PLUMB_PEERS, a virtual environment with torch, transformers and safetensors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "interop/golden_folder.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/interop/export.h"
#include "plumb/interop/import.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/capabilities.h"
#include "plumb/model/model.h"
#include "plumb/nn/position/rotary.h"
#include "plumb/run/directory.h"
#include "search.h"
#include "support/gradcheck.h"
#include "support/process.h"

namespace plumb::families_search {
namespace {

namespace fs = std::filesystem;

using test::IdRows;
using test::matrix_of;
using test::model_in;

constexpr uint64_t kFolders = 24;  // that transformers wrote, in a case
constexpr uint64_t kExports = 8;

template <typename T>
T one_of(Random& random, const std::vector<T>& values) {
  return values[random.below(values.size())];
}

bool chance(Random& random, double probability) { return random.uniform() < probability; }

void append_rows_of(const Json& rows, std::vector<int64_t>& tokens, Ragged* layout) {
  for (const auto& row : rows.get<IdRows>()) {
    tokens.insert(tokens.end(), row.begin(), row.end());
    if (layout != nullptr) layout->append(std::ssize(row));
  }
}

/// What a model computes from the inputs in values.json: the states of an encoder without labels, and logits.
struct Computed {
  Tensor hidden, logits;
};

Computed computed(Model& model, const Json& inputs) {
  const at::NoGradGuard no_graph;
  ForwardContext context;
  Batch batch;
  const ModelConfig& config = model.config();
  if (config.kind == "encoder-decoder") {
    append_rows_of(inputs["sources"], batch.source, &batch.source_layout);
    append_rows_of(inputs["tokens"], batch.target_input, &batch.target_layout);
    return {{}, model.logits(model.states(batch, context))};
  }
  append_rows_of(inputs["tokens"], batch.source, &batch.source_layout);
  if (config.kind == "decoder")
    return {{}, model.logits(model.embeds()->hidden(batch.source, {}, batch.source_layout, context))};
  if (config.segments > 0) append_rows_of(inputs["segments"], batch.segments, nullptr);
  if (config.labels > 0) {
    batch.labels.assign(inputs["tokens"].size(), 0);
    return {{}, model.classifies()->class_logits(batch)};
  }
  return {model.embeds()->hidden(batch.source, batch.segments, batch.source_layout, context),
          model.logits(model.states(batch, context))};
}

/// How closely values agree with those that `transformers` computes in float64. T5's factors 1/√d_model and √d_kv,
/// which become part of weights, are rounded to float32 with them.
double closeness(const Json& config) { return config.value("model_type", "") == "t5" ? 1e-6 : 1e-10; }

/// Whether `found` is what `transformers` computed: within the tolerance, of values of size 1 or more.
void expect_equal(const Tensor& found, const Tensor& expected, double tolerance) {
  ASSERT_TRUE(found.defined());
  ASSERT_EQ(found.sizes(), expected.sizes());
  const double scale = std::max(1.0, expected.abs().max().item<double>());
  EXPECT_LT((found.to(at::kDouble) - expected).abs().max().item<double>(), tolerance * scale);
}

void expect_values(Model& model, const Json& values, double tolerance) {
  const Computed found = computed(model, values);
  if (values.contains("hidden")) expect_equal(found.hidden, matrix_of(values["hidden"]), tolerance);
  if (values.contains("logits")) expect_equal(found.logits, matrix_of(values["logits"]), tolerance);
}

void expect_hint(const Error& error) { EXPECT_NE(error.hint(), "") << error.what(); }

class FamiliesSearch : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* peers = std::getenv("PLUMB_PEERS");
    python_ = fs::path(peers == nullptr ? "" : peers) / "bin" / "python";
    if (peers == nullptr || *peers == '\0' || !fs::exists(python_))
      GTEST_SKIP() << "PLUMB_PEERS names no virtual environment with torch, transformers and safetensors";
  }
  void run_script(uint64_t batch) const {
    const fs::path script = test::source_directory() / "scripts" / "search" / "families.py";
    test::Process process(python_.string(), {script.string(), "--seed", std::to_string(test::search_seed()), "--first",
                                             std::to_string(batch * kFolders), "--cases", std::to_string(kFolders),
                                             "--directory", scratch_->path().string()});
    const test::Finished finished = process.wait();
    ASSERT_EQ(finished.status, 0) << finished.errors;
  }

  /// A folder that transformers wrote is refused, or computes the same; so do its exports.
  void check_folder(const fs::path& folder) {
    const Json values = read_json(folder / "values.json");
    SCOPED_TRACE(fmt::format("{}: {}", folder.filename().string(), read_json(folder / "config.json").dump()));
    ImportedModel imported;
    try {
      imported = read_model_folder(folder);
    } catch (const Error& error) {
      expect_hint(error);
      ++refused_;
      return;
    }
    if (values.contains("refused")) return;  // Plumb may accept more
    ++compared_;
    expect_values(*model_in(folder, at::kDouble), values, closeness(read_json(folder / "config.json")));
    expect_values(*model_in(folder, at::kFloat), values, 2e-5);
    if (values.contains("labels")) {
      EXPECT_EQ(Json(stated_labels(folder)), values["labels"]);
    }
    const fs::path run = *scratch_ / "run", again = *scratch_ / "again";
    import_model(folder, run);
    for (const bool as_trained : {false, true}) {
      if (as_trained) fs::remove(run / "config.json");
      try {
        export_model(run.string(), again);
      } catch (const Error& error) {
        expect_hint(error);
        EXPECT_TRUE(as_trained) << error.what();
        continue;
      }
      expect_values(*model_in(again, at::kDouble), values, 1e-5);
    }
  }

  /// Writes a run of Plumb's own with random weights, and its export unless it is refused. Returns whether it was not.
  static bool write_export(Random& random, const fs::path& place);
  void check_export(const fs::path& place);

  fs::path python_;
  std::unique_ptr<test::TemporaryDirectory> scratch_;
  uint64_t compared_ = 0, refused_ = 0, exported_ = 0;
};

/// A model that a family nearly or quite has.
ModelConfig drawn_model(Random& random) {
  ModelConfig config;
  const auto family = one_of<std::string>(random, {"llama", "stablelm", "gpt2", "neox", "bert", "marian", "t5"});
  const int64_t size = one_of<int64_t>(random, {2, 4, 6, 8});
  config.heads = one_of<int64_t>(random, {1, 2, 4});
  config.d_model = config.heads * size;
  config.feed_forward = 3 + static_cast<int64_t>(random.below(14));
  config.encoder_layers = 1 + static_cast<int64_t>(random.below(2));
  config.decoder_layers = 1 + static_cast<int64_t>(random.below(2));
  config.source_vocabulary = config.target_vocabulary = 11 + static_cast<int64_t>(random.below(10));
  config.max_positions = 12;
  config.embedding_factor = 1;
  config.norm_eps = one_of<double>(random, {1e-5, 1e-2});
  config.share_embeddings = one_of<std::string>(random, {"none", "target"});
  RotaryOptions rotary;
  rotary.interleaved = false;
  rotary.theta = one_of<double>(random, {20, 1e4});
  rotary.scaling = one_of<std::string>(random, {"none", "none", "linear", "llama3"});
  rotary.factor = 2;
  rotary.original_length = 16;
  const auto pairs = static_cast<uint64_t>(size) / 2;
  if (chance(random, 0.5)) rotary.features = 2 + 2 * static_cast<int64_t>(random.below(pairs));
  if (family == "llama" || family == "stablelm") {
    config.kind = "decoder";
    config.norm = family == "llama" ? "rmsnorm" : "layernorm";
    config.positions = "rotary";
    config.activation = one_of<std::string>(random, {"swiglu", "geglu"});
    config.attention_bias = one_of<std::string>(random, {"none", "qkv", "all"});
    config.qk_norm = one_of<std::string>(random, {"none", "none", "rmsnorm"});
    config.feed_forward_bias = chance(random, 0.2);
    config.kv_heads = chance(random, 0.5) ? 1 : 0;
    config.parallel = chance(random, 0.3);
    if (chance(random, 0.3)) config.head_size = one_of<int64_t>(random, {2, 4, 6});
  } else if (family == "gpt2" || family == "neox") {
    config.kind = "decoder";
    config.residual = one_of<std::string>(random, {"pre-ln", "pre-ln", "parallel-ln"});
    config.positions = family == "neox" ? "rotary" : "learned";
    config.activation = one_of<std::string>(random, {"gelu", "gelu-tanh", "relu"});
    config.attention_bias = chance(random, 0.8) ? "all" : "none";
    if (family == "neox" && chance(random, 0.8)) rotary.scaling = "none";
  } else if (family == "bert") {
    config.kind = "encoder";
    config.residual = "post-ln";
    config.positions = "learned";
    config.embedding_norm = true;
    config.segments = static_cast<int64_t>(random.below(4));
    config.activation = one_of<std::string>(random, {"gelu", "gelu", "gelu-tanh", "relu"});
    config.pooling = one_of<std::string>(random, {"first", "none", "none", "mean"});
    const bool classifies = config.pooling != "none";
    config.pooler = classifies && chance(random, 0.8);
    config.labels = classifies ? 2 + static_cast<int64_t>(random.below(3)) : 0;
    config.output_transform = config.output_bias = !classifies && chance(random, 0.6);
  } else {
    config.feed_forward_bias = config.residual != "pre-ln";
    config.share_embeddings = one_of<std::string>(random, {"all", "all", "target"});
    if (family == "marian") {
      config.residual = "post-ln";
      config.positions = "sinusoidal-halves";
      config.output_bias = config.feed_forward_bias = true;
      config.activation = one_of<std::string>(random, {"relu", "silu", "gelu", "gelu-tanh"});
      config.embedding_factor = one_of<double>(random, {0, 1});
    } else {
      config.norm = "rmsnorm";
      config.positions = "t5";
      config.attention_bias = "none";
      config.activation = one_of<std::string>(random, {"relu", "geglu-tanh", "swiglu"});
    }
  }
  if (config.positions == "rotary") config.options["rotary"] = Options(rotary);
  return config;
}

bool FamiliesSearch::write_export(Random& random, const fs::path& place) {
  RunConfig config;
  config.model = drawn_model(random);
  SCOPED_TRACE(to_toml(config));
  std::unique_ptr<Model> model;
  try {
    validate(config.model);
    model = make_model(config.model);
  } catch (const Error&) {
    return false;  // no model
  }
  config.task.name = config.model.kind == "encoder-decoder" ? "translation"
                     : config.model.kind == "decoder"       ? "language-modeling"
                     : config.model.labels > 0              ? "classification"
                                                            : "masked-language-modeling";
  const fs::path run = place / "run";
  fs::create_directories(place);
  claim_output_directory(run, "run");
  write_file_atomic(run / "config.toml", to_toml(config));
  model->initialize(random.next());
  NamedTensors tensors = named_values(model->parameters());
  for (auto& [name, tensor] : tensors)
    tensor = (tensor + 0.3 * testing::random_tensor(tensor.sizes(), random.next())).to(at::kFloat);
  save_safetensors(run / "model.safetensors", tensors);
  try {
    export_model(run.string(), place / "folder");
  } catch (const Error& error) {
    expect_hint(error);
    fs::remove_all(place);
    return false;
  }
  Json asked = {{"tokens", {{4, 9, 5, 6, 10, 7, 8}, {7, 4, 5}}}};
  if (config.model.kind == "encoder-decoder") asked["sources"] = {{5, 8, 4}, {9, 4, 10, 10, 6, 8, 7}};
  if (config.model.kind == "encoder") {
    const int64_t second = config.model.segments > 1 ? 1 : 0;
    asked["segments"] = {{0, 0, 0, second, second, second, second}, {0, second, second}};
  }
  const Computed own = computed(*load_model(run), asked);
  // Heads of classes that read labels or predict tokens; the others are compared by their states.
  if (!own.hidden.defined() || config.model.output_transform) {
    const Tensor row = own.logits.select(0, 0).to(at::kDouble).contiguous();
    asked["logits"] = Json::array({std::vector<double>(row.data_ptr<double>(), row.data_ptr<double>() + row.numel())});
  }
  write_json(place / "asked.json", asked);
  return true;
}

void FamiliesSearch::check_export(const fs::path& place) {
  const Json asked = read_json(place / "asked.json"), answer = read_json(place / "answer.json");
  SCOPED_TRACE(read_file(place / "run" / "config.toml") + read_json(place / "folder" / "config.json").dump());
  ASSERT_FALSE(answer.contains("refused")) << answer["refused"];
  ++exported_;
  const Tensor expected = matrix_of(answer["values"]);
  const auto values_of = [&](Model& model) {
    const Computed found = computed(model, asked);
    return asked.contains("logits") ? found.logits : found.hidden;
  };
  expect_equal(values_of(*model_in(place / "folder", at::kDouble)), expected,
               closeness(read_json(place / "folder" / "config.json")));
  expect_equal(values_of(*load_model(place / "run")), expected, 2e-5);
  if (answer.contains("labels")) {
    EXPECT_EQ(Json(stated_labels(place / "folder")), answer["labels"]);
  }
}

TEST_F(FamiliesSearch, AgreesWithTransformers) {
  test::search("families", 2, [&](Random& random, uint64_t batch) {
    scratch_ = std::make_unique<test::TemporaryDirectory>();
    std::vector<fs::path> exports;
    for (uint64_t i = 0; i < kExports; ++i) {
      const fs::path place = *scratch_ / "exports" / std::to_string(i);
      if (write_export(random, place)) exports.push_back(place);
    }
    run_script(batch);
    if (HasFatalFailure()) return;
    for (uint64_t i = 0; i < kFolders; ++i) check_folder(*scratch_ / std::to_string(batch * kFolders + i));
    for (const fs::path& place : exports) check_export(place);
  });
  std::printf("%llu folders compared, %llu refused; %llu exports compared\n",
              static_cast<unsigned long long>(compared_), static_cast<unsigned long long>(refused_),
              static_cast<unsigned long long>(exported_));
  EXPECT_GT(compared_, 0U);
}

}  // namespace
}  // namespace plumb::families_search
