#include "plumb/divided/pipeline_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plumb/base/error.h"
#include "plumb/model/kind.h"

namespace plumb {
namespace {

int64_t layers_of(const ModelConfig& config) {
  const ModelDepth depth = depth_of(config);
  return depth.encoder_layers + depth.decoder_layers;
}

/// One sequence of a few tokens.
Batch few_tokens(const ModelConfig& config) {
  const ModelKind& kind = kind_of(config);
  Batch batch;
  const int64_t length = std::min<int64_t>(2, config.max_positions);
  if (kind.reads_source) {
    batch.source.assign(static_cast<size_t>(length), 0);
    batch.source_layout.append(length);
  }
  if (kind.reads_target) {
    batch.target_input.assign(static_cast<size_t>(length), 0);
    batch.target_layout.append(length);
  }
  return batch;
}

/// The defined tensors that have a graph.
std::vector<Tensor> differentiable(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.requires_grad()) result.push_back(tensor);
  }
  return result;
}

}  // namespace

void require_stages(const ModelConfig& config, int64_t stages, int64_t chunks) {
  if (kind_of(config).recurrent) {
    throw Error(fmt::format("model.kind = \"{}\" cannot be combined with train.pipeline_parallel", config.kind),
                "choose a Transformer, or set train.pipeline_parallel to 1");
  }
  const int64_t layers = layers_of(config);
  if (stages * chunks <= layers) return;
  throw Error(
      fmt::format("a model of {} layers cannot be cut into {} parts: train.pipeline_parallel = {}{}", layers,
                  stages * chunks, stages, chunks > 1 ? fmt::format(", train.pipeline_chunks = {}", chunks) : ""),
      fmt::format("the nearest train.pipeline_parallel that fits this model is {}",
                  std::clamp<int64_t>(layers / chunks, 1, stages)));
}

PipelineSplit::PipelineSplit(Model& model, int64_t stages, int64_t chunks)
    : stages_(stages),
      chunks_(chunks),
      layers_(layers_of(model.config())),
      encoder_layers_(depth_of(model.config()).encoder_layers) {
  require_stages(model.config(), stages, chunks);
  const Batch batch = few_tokens(model.config());
  const std::vector<Tensor> values = model.parameters().values();
  // Values do not matter here. Memory that is only read, and was never written, takes no pages.
  const bool present = model.parameters().has_flat();
  for (const Tensor& value : values) {
    if (!present) set_memory(value, true);
  }
  std::vector<std::set<int64_t>> users(values.size());
  LayerInput input;
  int64_t part = 0;
  for (int64_t layer = 0; layer < layers_; ++layer) {
    inputs_.push_back(input);
    while (part + 1 < parts() && static_cast<int64_t>(first(part + 1)) <= layer) ++part;
    LayerRange range = input.sample;
    range.first = layer;
    range.last = layer + 1;
    ForwardContext context(Pass::measurement);
    context.run_layers(range, input.sites);
    const Tensor states = model.states(batch, context);
    std::vector<Tensor> results;
    if (states.defined()) results.push_back(model.logits(states));
    for (Tensor* tensor : range.tensors()) results.push_back(*tensor);
    results = differentiable(results);
    std::vector<Tensor> weights;
    for (const Tensor& result : results) weights.push_back(at::ones_like(result));
    const auto derivatives =
        torch::autograd::grad(results, values, weights, /*retain_graph=*/false, /*create_graph=*/false,
                              /*allow_unused=*/true);
    for (size_t i = 0; i < values.size(); ++i) {
      if (derivatives[i].defined()) users[i].insert(part % stages_);
    }
    for (Tensor* tensor : range.tensors()) *tensor = tensor->detach();
    input = {range, context.sites()};
  }
  for (const Tensor& value : values) {
    if (!present) set_memory(value, false);
  }
  for (const std::set<int64_t>& each : users) {
    users_.emplace_back(each.begin(), each.end());
    if (each.empty()) users_.back().push_back(0);
  }
}

size_t PipelineSplit::first(int64_t part) const {
  return static_cast<size_t>((part * layers_ + parts() - 1) / parts());
}

LayerRange PipelineSplit::layer_range(int64_t part) const {
  LayerRange range;
  range.first = static_cast<int64_t>(first(part));
  range.last = static_cast<int64_t>(first(part + 1));
  return range;
}

std::vector<std::vector<int64_t>> PipelineSplit::sizes_of(int64_t part, const Batch& batch) const {
  const bool encodes = static_cast<int64_t>(first(part)) < encoder_layers_;
  LayerRange range = inputs_[first(part)].sample;
  std::vector<std::vector<int64_t>> all;
  for (const Tensor* tensor : range.tensors()) {
    all.push_back(tensor->sizes().vec());
    all.back().front() =
        encodes || tensor == &range.memory ? batch.source_layout.tokens() : batch.target_layout.tokens();
  }
  return all;
}

int64_t PipelineSplit::count(int64_t part, const Batch& batch) const {
  int64_t elements = 0;
  for (const std::vector<int64_t>& sizes : sizes_of(part, batch)) elements += c10::multiply_integers(sizes);
  return elements;
}

LayerRange PipelineSplit::input_of(int64_t part, const Batch& batch, const Tensor& flat) const {
  LayerRange range = inputs_[first(part)].sample;
  const std::vector<std::vector<int64_t>> all = sizes_of(part, batch);
  int64_t begin = 0;
  for (size_t i = 0; Tensor * tensor : range.tensors()) {
    const std::vector<int64_t>& sizes = all[i++];
    const int64_t elements = c10::multiply_integers(sizes);
    *tensor = flat.narrow(0, begin, elements).view(sizes).detach().requires_grad_(at::GradMode::is_enabled());
    begin += elements;
  }
  range.first = layer_range(part).first;
  range.last = layer_range(part).last;
  return range;
}

}  // namespace plumb
