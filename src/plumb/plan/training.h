// Memory and time of training a model on many devices: data, tensor and pipeline parallelism, sharded states (ZeRO) and
// recomputation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/plan/model_cost.h"

namespace plumb::plan {

/// How numbers are stored in training. The optimizer's state has float32 in each.
enum class Precision {
  float32,   // weights and gradients of 4 bytes
  mixed,     // weights and gradients of 2 bytes, and a copy of the weights in 4 (Micikevicius et al. 2018)
  bfloat16,  // weights and gradients of 2 bytes, without a copy (stochastic rounding)
};

/// Throws Error on an unknown name.
Precision precision_named(const std::string& name);

/// What is recomputed in the backward pass instead of being stored: nothing, attention weights (as fused attention
/// does), or whole layers from their inputs. Korthikanti et al. 2022, arXiv 2205.05198.
enum class Recompute { none, attention, layers };
std::string to_string(Recompute recompute);

constexpr double kAdamMoments = 8;  // bytes per parameter: two moments

struct TrainingJob {
  int64_t sequence = 2048;   // tokens
  int64_t batch_tokens = 0;  // of a step
  double tokens = 0;         // of the whole run; 0: unknown
  Precision precision = Precision::mixed;
  double moments = kAdamMoments;  // bytes of the optimizer's state per parameter
  double averages = 0;            // the same of averages of the weights, which ZeRO does not divide
};

/// The machine; the defaults describe NVIDIA A100s with 80 GB, in nodes of eight.
struct Hardware {
  int64_t devices = 1;
  double memory = 80.0 * (1 << 30);  // bytes per device
  double flops = 312e12;             // peak per device and second, in the precision of matrix products
  double efficiency = 0.5;           // fraction of the peak that matrix products reach
  int64_t devices_per_node = 8;
  double node_bandwidth = 300e9;  // bytes per second that a device sends to others of its node
  double network = 25e9;          // the same to other nodes
  double price = 0;               // per device and hour
};

/// How a training step is divided. data·tensor·pipeline devices; the batch is processed in micro-batches.
struct Layout {
  int64_t data = 1;
  int64_t tensor = 1;       // matrices cut by heads and inner width, norms and residuals by sequence
  int64_t pipeline = 1;     // stages
  int zero = 0;             // ZeRO stage over data: 1 shards optimizer state, 2 also gradients, 3 also weights
  int64_t micro_batch = 1;  // sequences
  Recompute recompute = Recompute::none;
  int64_t chunks = 1;  // runs of consecutive layers of each stage
  bool gpipe = false;  // all forward passes of a step before the first backward pass, instead of one of each in turn

  [[nodiscard]] int64_t devices() const { return data * tensor * pipeline; }
  bool operator==(const Layout&) const = default;
};

/// Bytes on the device with the largest share.
struct Memory {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;
  [[nodiscard]] double states() const { return weights + gradients + optimizer; }
  [[nodiscard]] double total() const { return states() + activations; }
};

/// Seconds of a step, by use. Nothing is assumed to overlap.
struct StepTime {
  double compute = 0;   // including recomputation
  double bubble = 0;    // idle time of stages at the beginning and the end of a step
  double tensor = 0;    // exchange of activations between devices that share matrices
  double pipeline = 0;  // and between stages
  double data = 0;      // exchange of gradients, and of weights with ZeRO
  [[nodiscard]] double total() const { return compute + bubble + tensor + pipeline + data; }
};

struct Estimate {
  Layout layout;
  Memory memory;
  StepTime time;
  double data_bytes = 0;    // that a device sends per step to exchange gradients and weights
  double tensor_bytes = 0;  // the same for activations, between devices that share matrices
  double utilization = 0;   // floating-point operations of the model over those of the machine at its peak
  bool fits = false;
};

/// Bytes that a layer stores for the backward pass of `micro_batch` sequences on each of `tensor` devices, in 2 or 4
/// bytes per number: with 2, plain feed-forward of width 4·d and dropout, the s·b·h·(34 + 5·a·s/h)/t of Korthikanti et
/// al., equation 2 with sequence parallelism.
double activation_bytes(const ModelCost& model, int64_t sequence, int64_t micro_batch, int64_t tensor,
                        Recompute recompute, int64_t bytes_per_number);

/// Bytes of the states of `parameters` parameters on one of `data` devices. Rajbhandari et al. 2020, arXiv 1910.02054,
/// figure 1.
Memory state_bytes(double parameters, Precision precision, int zero, int64_t data, double moments = kAdamMoments);

/// What each device of one stage of a pipeline has.
struct StageShare {
  double parameters = 0;
  double outside = 0;        // of these, outside of layers
  double largest_layer = 0;  // and in the largest of its layers
  int64_t layers = 0;
  int64_t stage = 0;
};

/// What such a device sends in a step.
struct StageMessages {
  int64_t micro_batches = 0;
  int64_t tensor =
      0;  // sums of activations among the devices that share matrices (those of numbers per token are not counted)
  double tensor_bytes = 0;  // of all of these
  int64_t pipeline = 0;     // to the next stage and, of gradients, to the one before
  double pipeline_bytes = 0;
  double data_bytes = 0;  // gradients and weights, to devices that have other examples
};

/// Bytes on each device of a stage.
Memory stage_memory(const ModelCost& model, const TrainingJob& job, const Layout& layout, const StageShare& share);
StageMessages stage_messages(const ModelCost& model, const TrainingJob& job, const Layout& layout,
                             const StageShare& share);

/// Throws Error if the model or the batch cannot be divided this way.
Estimate estimate(const ModelCost& model, const TrainingJob& job, const Hardware& hardware, const Layout& layout);

/// Ways to divide the step over all devices, with micro-batches of 1, 2, 4, … sequences: first those that fit, by time,
/// then the others, by memory. Throws Error if there are none.
std::vector<Estimate> search(const ModelCost& model, const TrainingJob& job, const Hardware& hardware);

}  // namespace plumb::plan
