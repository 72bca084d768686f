// Common parts of the `plumb bench` measurements: sizes, random models and batches, throughput and documents.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/base/json.h"
#include "plumb/base/random.h"
#include "plumb/base/timing.h"
#include "plumb/model/model.h"
#include "plumb/ops/device.h"
#include "verb.h"

namespace plumb::app::bench {

/// Of the steps that are timed: it has to change the weights, and no more.
inline constexpr double kLearningRate = 1e-4;

struct Sizes {
  int64_t d_model, feed_forward, heads, layers, vocabulary, sentences, length, runs = 5;
  std::string residual = "pre-ln";
  std::string precision = "float32";
};

/// The sizes of a language model.
struct DecoderSizes {
  int64_t d_model, feed_forward, heads, layers, vocabulary;
};

/// Random token ids, none of them a special token.
std::vector<int32_t> random_ids(Random& random, int64_t count, int64_t vocabulary);

/// Random sentence pairs of `length` tokens on each side, including special tokens.
Batch random_batch(const Sizes& sizes, uint64_t seed);

/// An initialized encoder-decoder; `share_embeddings` is the key model.share_embeddings.
std::unique_ptr<Model> random_model(const Sizes& sizes, uint64_t seed, const std::string& share_embeddings = "target");

/// A language model with GPT-2's architecture: Pre-LN, GELU, learned positions, tied output matrix; no dropout.
ModelConfig decoder_config(const DecoderSizes& sizes, int64_t positions);

/// Throughput of matrix products in GFLOP/s, the upper bound for everything else: the best over shapes typical of a
/// model, each the median of several runs.
double ceiling_gflops();

/// median_seconds of work that may still be running on a device when it returns.
template <typename Work>
double device_seconds(int64_t runs, const at::Device& device, const Work& work) {
  return median_seconds(runs, [&] {
    work();
    ops::synchronize(device);
  });
}

/// The first keys of every document, including the compiler, the LibTorch version, the threads and the device.
Json result_document(const std::string& what, const Json& sizes);

/// Adds the throughput of training steps with these batches, which took `seconds` in all, and the fraction of the
/// ceiling.
void add_step_figures(Json& json, const Model& model, const std::vector<Batch>& batches, double seconds);

Json sizes_json(const Sizes& sizes);
Json sizes_json(const DecoderSizes& sizes);

/// The sequences of a batch: source, target_input and labels, each an array of arrays of ids.
Json batch_json(const Batch& batch);

/// Writes what another program needs to do the same work and check its results: DIRECTORY/work.json with the sizes and
/// the keys of `work`, and DIRECTORY/model.safetensors with the weights if a model is given. Throws Error if the
/// directory cannot be created.
void export_work(const std::string& directory, const std::string& what, const Json& sizes, const Json& work,
                 const Model* model = nullptr);

/// Adds --export.
void add_export_option(CLI::App& verb, std::string& directory);

/// The seconds of a step by operation.
struct StepPart {
  std::string name;
  double seconds = 0;
};
using StepProfile = std::vector<StepPart>;

/// A document, and beside it the time by operation.
struct Measured {
  Json document;
  std::optional<StepProfile> profile;

  Measured(Json json) : document(std::move(json)) {}  // NOLINT(google-explicit-constructor): most have no profile
};

/// Throws Error if the device's operations cannot be timed one by one.
void require_profilable();

/// The seconds of a step by operation (ops/path.h), of the nodes of the graph that autograd computes, and of everything
/// else, as LibTorch's recorder tells them; the longest first, the mean over `runs` steps.
StepProfile profile_of(int64_t runs, const std::function<void()>& step);

/// Adds --profile.
void add_profile_option(CLI::App& verb, bool& profile);

/// Adds `plumb bench NAME` with --json and --seed, which measures and prints.
CLI::App* add_measurement(CLI::App& bench, Globals& globals, const std::string& name, const std::string& description,
                          const std::function<Measured()>& measure);

/// Adds an option for a positive number.
CLI::Option* add_size(CLI::App& verb, const char* name, int64_t& value, const char* description);

/// Adds --precision, for training.
void add_precision_option(CLI::App& verb, std::string& precision);

/// Adds --d-model and the other size options.
void add_sizes(CLI::App& verb, Sizes& sizes);
void add_sizes(CLI::App& verb, DecoderSizes& sizes);

}  // namespace plumb::app::bench
