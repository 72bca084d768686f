#include "plumb/plan/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "plumb/base/error.h"

namespace plumb::plan {
namespace {

/// Per parameter, without the optimizer's state.
struct Bytes {
  double weight, gradient, copy;
};

Bytes bytes_of(Precision precision) {
  switch (precision) {
    case Precision::float32:
      return {4, 4, 0};
    case Precision::mixed:
      return {2, 2, 4};
    case Precision::bfloat16:
      return {2, 2, 0};
  }
  return {};
}

int64_t activation_size(Precision precision) { return precision == Precision::float32 ? 4 : 2; }

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The micro-batches of a step in each replica.
int64_t micro_batches(const TrainingJob& job, const Layout& layout) {
  const int64_t sequences = std::max<int64_t>(job.batch_tokens / job.sequence, 1);
  return divided_up(divided_up(sequences, layout.data), layout.micro_batch);
}

void check(const ModelCost& model, const TrainingJob& job, const Layout& layout) {
  if (layout.data < 1 || layout.tensor < 1 || layout.pipeline < 1 || layout.micro_batch < 1 || layout.zero < 0 ||
      layout.zero > 3)
    throw Error(
        "a layout has at least one device in each dimension, one sequence per micro-batch, and ZeRO stage 0 to 3");
  if (model.heads % layout.tensor != 0 || model.kv_heads % layout.tensor != 0) {
    throw Error(fmt::format("{} heads, {} of keys and values, cannot be divided over {} devices", model.heads,
                            model.kv_heads, layout.tensor));
  }
  if (model.layers % layout.pipeline != 0)
    throw Error(fmt::format("{} layers cannot be divided into {} stages", model.layers, layout.pipeline));
  if (job.batch_tokens < job.sequence * layout.data)
    throw Error(fmt::format("a batch of {} tokens has fewer than {} sequences of {}", job.batch_tokens, layout.data,
                            job.sequence),
                "increase batch_tokens, or divide the model instead of the data");
}

/// The parameters of the device with the most: in the first stage, or in the last, which has a copy of a shared output
/// matrix. Those outside of layers, and those of `layers` layers.
double parameters_of(const ModelCost& model, const Layout& layout, int64_t layers_of_stage) {
  const double layers = model.layer_parameters * static_cast<double>(layers_of_stage);
  double rest = static_cast<double>(model.parameters) - model.layer_parameters * static_cast<double>(model.layers);
  const auto output = static_cast<double>(model.output_matrix);
  if (layout.pipeline > 1 && output > 0) rest = std::max(rest - output, output);
  return (layers + rest) / static_cast<double>(layout.tensor);
}

double parameters_per_device(const ModelCost& model, const Layout& layout) {
  return parameters_of(model, layout, model.layers / layout.pipeline);
}

/// The most micro-batches whose activations a stage holds at once, each counted once for every chunk. With one forward
/// and one backward pass in turn, it is one more than the forward passes that it begins with
/// (divided/pipeline_schedule.h).
int64_t held_at_once(const Layout& layout, int64_t stage, int64_t micro_batches) {
  if (layout.gpipe) return micro_batches;
  const int64_t after = layout.pipeline - 1 - stage;
  const int64_t ahead = layout.chunks == 1 ? after : 2 * after + (layout.chunks - 1) * layout.pipeline;
  return std::min(ahead + 1, layout.chunks * micro_batches);
}

/// Bytes that each of n devices sends to all-reduce a buffer in a ring; an all-gather or reduce-scatter sends half.
double all_reduce_bytes(double bytes, int64_t n) {
  return 2 * bytes * static_cast<double>(n - 1) / static_cast<double>(n);
}

}  // namespace

Precision precision_named(const std::string& name) {
  if (name == "float32") return Precision::float32;
  if (name == "mixed") return Precision::mixed;
  if (name == "bfloat16") return Precision::bfloat16;
  throw Error(fmt::format("unknown precision '{}'", name), "known: float32, mixed, bfloat16");
}

std::string to_string(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::attention:
      return "attention";
    case Recompute::layers:
      return "layers";
  }
  return {};
}

double activation_bytes(const ModelCost& model, int64_t sequence, int64_t micro_batch, int64_t tensor,
                        Recompute recompute, int64_t bytes_per_number) {
  const auto number = static_cast<double>(bytes_per_number);
  const double mask = model.dropout ? 1 : 0;
  const auto s = static_cast<double>(sequence), h = static_cast<double>(model.d_model);
  const double tokens = s * static_cast<double>(micro_batch);
  const auto devices = static_cast<double>(tensor);
  if (recompute == Recompute::layers) return number * tokens * h / devices;
  const auto width = static_cast<double>(model.heads * model.head_size);
  const auto kv_width = static_cast<double>(model.kv_heads * model.head_size);
  const double attentions = static_cast<double>(model.attentions) / static_cast<double>(model.layers);
  // Input of the projections; query, key and value; output of attention; the mask of the dropout after it; and the
  // input of the norm.
  double attention = number * h + number * (width + 2 * kv_width) + number * width + mask * h + number * h;
  // The weights before and after the softmax's dropout, and its mask.
  if (model.quadratic && recompute == Recompute::none)
    attention += static_cast<double>(model.heads) * s * (model.dropout ? 2 * number + mask : number);
  const auto inner = static_cast<double>(model.feed_forward);
  const double feed_forward = number * h + number * inner * (model.gated ? 3 : 2) + mask * h + number * h;
  return tokens * (attentions * attention + feed_forward) / devices;
}

Memory state_bytes(double parameters, Precision precision, int zero, int64_t data, double moments) {
  const Bytes bytes = bytes_of(precision);
  const auto share = [&](int from) { return zero >= from ? 1.0 / static_cast<double>(data) : 1.0; };
  return {parameters * bytes.weight * share(3), parameters * bytes.gradient * share(2),
          parameters * (moments + bytes.copy) * share(1), 0};
}

Memory stage_memory(const ModelCost& model, const TrainingJob& job, const Layout& layout, const StageShare& share) {
  Memory memory = state_bytes(share.parameters, job.precision, layout.zero, layout.data, job.moments);
  const Bytes bytes = bytes_of(job.precision);
  memory.optimizer += share.parameters * job.averages;
  // What is whole at once beside the parts that are kept: parameters outside of layers; gradients of the layer that is
  // computed, of the one that is exchanged, and what is received of it; weights of a layer, and what is received of it.
  if (layout.data > 1) {
    const double layers = share.largest_layer * static_cast<double>(1 + std::min<int64_t>(share.layers, 2));
    const double at_once = std::max(layers, share.largest_layer + share.outside);
    if (layout.zero >= 2) memory.gradients += bytes.gradient * (share.outside + at_once);
    if (layout.zero == 3) memory.weights += bytes.weight * (share.outside + 2 * share.largest_layer);
  }

  const int64_t number = activation_size(job.precision);
  const double tokens = static_cast<double>(layout.micro_batch * job.sequence);
  const auto layer = [&](Recompute recompute) {
    return activation_bytes(model, job.sequence, layout.micro_batch, layout.tensor, recompute, number);
  };
  const double held = static_cast<double>(held_at_once(layout, share.stage, micro_batches(job, layout)));
  memory.activations =
      held * static_cast<double>(share.layers) / static_cast<double>(layout.chunks) * layer(layout.recompute);
  // Layers are recomputed one at a time; the current one holds all of its activations.
  if (layout.recompute == Recompute::layers) memory.activations += layer(Recompute::none);
  // The inputs of the final norm and of the output matrix, and the float32 logits.
  if (share.stage == layout.pipeline - 1) {
    const auto width = static_cast<double>(model.d_model), outputs = static_cast<double>(model.outputs);
    memory.activations +=
        tokens * (2 * static_cast<double>(number) * width + 4 * outputs) / static_cast<double>(layout.tensor);
  }
  return memory;
}

StageMessages stage_messages(const ModelCost& model, const TrainingJob& job, const Layout& layout,
                             const StageShare& share) {
  StageMessages messages;
  messages.micro_batches = micro_batches(job, layout);
  const auto count = static_cast<double>(messages.micro_batches);
  const double activation = static_cast<double>(layout.micro_batch * job.sequence) *
                            static_cast<double>(model.d_model) * static_cast<double>(activation_size(job.precision));
  if (layout.tensor > 1) {
    // One for every sub-layer and pass, and backward one for what cross-attention reads; one forward for every
    // embedding, and one backward for the output matrix.
    const int64_t passes = layout.recompute == Recompute::layers ? 3 : 2;
    const int64_t crosses = share.layers * (model.attentions - model.layers) / model.layers;
    const int64_t embeddings = share.stage > 0 ? 0 : model.attentions > model.layers ? 2 : 1;
    const int64_t outputs = share.stage == layout.pipeline - 1 ? 1 : 0;
    messages.tensor = messages.micro_batches * (passes * (2 * share.layers + crosses) + crosses + embeddings + outputs);
    messages.tensor_bytes = static_cast<double>(messages.tensor) * all_reduce_bytes(activation, layout.tensor);
  }
  // From every chunk forward and backward, but for the ends of the model.
  const int64_t ends = (share.stage == 0 ? 1 : 0) + (share.stage + 1 == layout.pipeline ? 1 : 0);
  messages.pipeline = (2 * layout.chunks - ends) * messages.micro_batches;
  messages.pipeline_bytes = static_cast<double>(messages.pipeline) * activation / static_cast<double>(layout.tensor);
  if (layout.data > 1) {
    const Bytes bytes = bytes_of(job.precision);
    const double gradients = all_reduce_bytes(share.parameters * bytes.gradient, layout.data);
    const double weights = all_reduce_bytes(share.parameters * bytes.weight, layout.data);
    // ZeRO stages 2 and 3 keep only a part of the gradients, so they reduce-scatter those of every micro-batch. Stage 2
    // gathers the weights after the step, stage 3 in every forward and every backward pass.
    messages.data_bytes = layout.zero == 0   ? gradients
                          : layout.zero == 1 ? gradients / 2 + weights / 2
                          : layout.zero == 2 ? count * gradients / 2 + weights / 2
                                             : count * (gradients / 2 + weights);
  }
  return messages;
}

Estimate estimate(const ModelCost& model, const TrainingJob& job, const Hardware& hardware, const Layout& layout) {
  check(model, job, layout);
  Estimate result;
  result.layout = layout;
  // The device with the most of everything: the first stage has the most micro-batches, the last one the output.
  const double outside = parameters_of(model, layout, 0);
  const StageShare first{parameters_per_device(model, layout), outside, parameters_of(model, layout, 1) - outside,
                         model.layers / layout.pipeline, 0};
  StageShare last = first;
  last.stage = layout.pipeline - 1;
  result.memory = stage_memory(model, job, layout, first);
  result.memory.activations = std::max(result.memory.activations, stage_memory(model, job, layout, last).activations);

  const int64_t count = micro_batches(job, layout);
  const double tokens = static_cast<double>(layout.micro_batch * job.sequence);
  const auto tensor = static_cast<double>(layout.tensor);
  const double forward = model.layers_flops(job.sequence) + model.output_flops;
  double operations = 3 * forward;
  if (layout.recompute == Recompute::layers) operations += model.layers_flops(job.sequence);
  if (layout.recompute == Recompute::attention && model.quadratic)
    operations += static_cast<double>(model.attentions) * model.attention_flops(job.sequence);
  const double rate = hardware.flops * hardware.efficiency;
  const double micro = operations * tokens / static_cast<double>(layout.pipeline) / tensor / rate;  // of one stage
  result.time.compute = static_cast<double>(count) * micro;
  result.time.bubble = static_cast<double>(layout.pipeline - 1) * micro;

  const StageMessages messages = stage_messages(model, job, layout, first);
  const auto rate_among = [&](int64_t devices) {
    return devices <= hardware.devices_per_node ? hardware.node_bandwidth : hardware.network;
  };
  // Tensor parallelism uses devices of the same node first.
  result.tensor_bytes = messages.tensor_bytes;
  result.time.tensor = messages.tensor_bytes / rate_among(layout.tensor);
  const double there_and_back = messages.pipeline_bytes + stage_messages(model, job, layout, last).pipeline_bytes;
  result.time.pipeline = there_and_back / rate_among(layout.tensor * layout.pipeline);
  result.data_bytes = messages.data_bytes;
  result.time.data = messages.data_bytes / rate_among(layout.devices());
  const double useful = 3 * forward * static_cast<double>(job.batch_tokens);
  result.utilization = useful / (result.time.total() * hardware.flops * static_cast<double>(layout.devices()));
  result.fits = result.memory.total() <= hardware.memory;
  return result;
}

std::vector<Estimate> search(const ModelCost& model, const TrainingJob& job, const Hardware& hardware) {
  std::vector<Estimate> found;
  const int64_t sequences = job.batch_tokens / job.sequence;
  for (int64_t tensor = 1; tensor <= std::min(hardware.devices, model.heads); ++tensor) {
    if (hardware.devices % tensor != 0 || model.heads % tensor != 0 || model.kv_heads % tensor != 0) continue;
    for (int64_t pipeline = 1; pipeline <= std::min(hardware.devices / tensor, model.layers); ++pipeline) {
      if (hardware.devices / tensor % pipeline != 0 || model.layers % pipeline != 0) continue;
      const int64_t data = hardware.devices / tensor / pipeline;
      if (sequences < data) continue;
      for (const int zero : {0, 1, 2, 3}) {
        if (zero > 0 && data == 1) break;
        if (zero > 1 && pipeline > 1) break;  // gradients would be exchanged for every micro-batch
        for (int64_t micro_batch = 1; micro_batch <= divided_up(sequences, data); micro_batch *= 2) {
          for (const Recompute recompute : {Recompute::none, Recompute::attention, Recompute::layers}) {
            if (recompute == Recompute::attention && !model.quadratic) continue;
            found.push_back(estimate(model, job, hardware, {data, tensor, pipeline, zero, micro_batch, recompute}));
          }
        }
      }
    }
  }
  if (found.empty()) {
    throw Error(
        fmt::format("there is no way to divide {} layers with {} heads and {} sequences per batch over {} devices",
                    model.layers, model.heads, sequences, hardware.devices),
        "try another number of devices, or a larger batch");
  }
  std::stable_sort(found.begin(), found.end(), [](const Estimate& a, const Estimate& b) {
    if (a.fits != b.fits) return a.fits;
    if (!a.fits) return a.memory.total() < b.memory.total();
    return std::tuple(a.time.total(), a.memory.total()) < std::tuple(b.time.total(), b.memory.total());
  });
  return found;
}

}  // namespace plumb::plan
