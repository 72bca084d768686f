#include "plumb/plan/kept_activations.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/model/kind.h"
#include "plumb/model/model.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/device.h"
#include "plumb/ops/memory.h"
#include "plumb/ops/precision.h"
#include "plumb/plan/model_cost.h"

namespace plumb::plan {
namespace {

constexpr double kFloat = 4, kHalf = 2;  // bytes

/// The gradients that the cross-entropy computes for the states and for its matrix.
double output_gradients(const ModelConfig& config, int64_t tokens) {
  return kFloat * static_cast<double>(config.d_model) * static_cast<double>(tokens + config.target_vocabulary);
}

Batch any_text(int64_t sequences, int64_t length, int64_t vocabulary) {
  Batch batch;
  batch.target_layout = Ragged(std::vector<int64_t>(static_cast<size_t>(sequences), length));
  for (int64_t i = 0; i < sequences * length; ++i) {
    batch.target_input.push_back(i % vocabulary);
    batch.labels.push_back((i + 1) % vocabulary);
  }
  return batch;
}

/// Bytes held by the layers of a smaller model between the forward and the backward pass, for one sequence and for two.
struct Held {
  Held(ModelConfig config, int64_t layers, const LocalBatch& size) {
    config.decoder_layers = layers;
    config.target_vocabulary = std::min<int64_t>(config.target_vocabulary, 64);
    const std::unique_ptr<Model> model = make_model(config);
    model->initialize(1);
    ops::MatrixPrecision precision(size.rounded ? ops::Precision::bfloat16 : ops::Precision::float32);
    const ops::PrecisionGuard guard(precision);
    const auto bytes = [&](int64_t sequences) {
      const Batch batch = any_text(sequences, size.length, config.target_vocabulary);
      const auto forward = [&] {
        ForwardContext context(config.dropout, 1, 1);
        if (size.recomputed) context.recompute();
        return model->loss(batch, {}, context);
      };
      static_cast<void>(forward());  // allocates what is kept for good
      const ops::HeldMemory held{ops::default_device()};
      const Loss loss = forward();
      return static_cast<double>(held.bytes()) - output_gradients(config, batch.target_layout.tokens());
    };
    one = bytes(1);
    two = bytes(2);
  }

  double one = 0;
  double two = 0;
};

/// Temporary memory: the logits of a chunk and the states that they are computed from, or the gradients within the
/// feed-forward sub-layer of the last layer, whichever is more. A gated sub-layer has a third matrix.
double working(const ModelConfig& config, const LocalBatch& batch) {
  const auto tokens = static_cast<double>(batch.tokens()), d = static_cast<double>(config.d_model);
  const auto vocabulary = static_cast<double>(config.target_vocabulary);
  const double number = batch.rounded ? kFloat + kHalf : kFloat;  // with its rounded copy
  const double rows = std::min(tokens, static_cast<double>(ops::chunk_rows(config.target_vocabulary)));
  const double output = number * (rows * vocabulary + tokens * d) + (batch.rounded ? kHalf * vocabulary * d : 0);
  const double feed_forward =
      kFloat * tokens * (2 * d + (cost_of(config).gated ? 4 : 2) * static_cast<double>(config.feed_forward));
  return std::max(output, feed_forward);
}

}  // namespace

KeptActivations kept_activations(const ModelConfig& config, const LocalBatch& batch) {
  if (!kind_of(config).models_language() || kind_of(config).recurrent || config.labels > 0)
    throw Error(fmt::format("what a model of kind \"{}\"{} keeps in memory is not measured here", config.kind,
                            config.labels > 0 ? " with labels" : ""),
                "plan a decoder that is a language model");
  if (config.attention != "softmax")
    throw Error(fmt::format("what \"{}\" attention keeps is not in proportion to the sequences", config.attention),
                "plan a model with softmax attention");
  const Held single(config, 1, batch), pair(config, 2, batch);
  const double by_layer = pair.one - single.one, by_layer_of_two = pair.two - single.two;
  const double by_sequence = by_layer_of_two - by_layer;                    // k
  const double beside_of_sequence = single.two - single.one - by_sequence;  // e
  const double beside = single.one - by_layer - beside_of_sequence;         // c
  const auto layers = static_cast<double>(config.decoder_layers), sequences = static_cast<double>(batch.sequences);
  KeptActivations kept;
  kept.layers = beside + sequences * (beside_of_sequence + layers * by_sequence);
  kept.weights = layers * std::max(by_layer - by_sequence, 0.0);
  kept.output = output_gradients(config, batch.tokens());
  kept.working = working(config, batch);
  if (!batch.recomputed) return kept;
  LocalBatch whole = batch;
  whole.recomputed = false;
  const Held all_of_one(config, 1, whole), all_of_two(config, 2, whole);
  kept.again = sequences * (all_of_two.two - all_of_one.two) / 2 + kept.working;
  return kept;
}

}  // namespace plumb::plan
