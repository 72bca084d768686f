#include "plumb/plan/local_memory.h"

#include <algorithm>
#include <fstream>

#include "plumb/model/model.h"
#include "plumb/ops/device.h"
#include "plumb/optim/optimizer.h"

namespace plumb::plan {
namespace {

/// The value of a line such as "VmRSS:   1234 kB", in bytes; 0 without such a line.
double status_bytes(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return 1024 * std::stod(line.substr(name.size() + 1));
  }
  return 0;
}

}  // namespace

double LocalMemory::peak() const {
  const double forward = activations.total() + (adds_gradients ? gradients : 0);
  const double backward = gradients + beside + (adds_gradients ? table : 0);
  const double update = gradients + (copies_in_step ? weights : 0);
  return constant() + std::max({forward, backward, update});
}

double optimizer_bytes(const ModelConfig& config, const std::string& optimizer, const VariantOptions& options) {
  const ops::DefaultDevice nowhere{at::Device(at::kMeta)};
  const std::unique_ptr<Model> model = make_model(config);
  double bytes = 0;
  for (const auto& [name, tensor] : make_optimizer(optimizer, model->parameters(), options)->state())
    bytes += static_cast<double>(tensor.numel()) * static_cast<double>(tensor.element_size());
  return bytes;
}

LocalMemory local_memory(const ModelConfig& config, const LocalBatch& batch, const LocalRun& run, double library) {
  LocalMemory memory;
  memory.activations = kept_activations(config, batch);
  {
    const ops::DefaultDevice nowhere{at::Device(at::kMeta)};
    memory.weights = 4 * static_cast<double>(make_model(config)->parameters().count());
  }
  memory.gradients = memory.weights;
  memory.optimizer = optimizer_bytes(config, run.optimizer, run.options);
  memory.copies = static_cast<double>(run.copies) * memory.weights;
  if (run.writes_checkpoints) memory.checkpoint = memory.weights + memory.optimizer + memory.copies;
  // The cross-entropy's gradients are held to the end. An unshared output matrix uses its gradient directly; if the
  // embeddings share the matrix, the gradient is added to theirs in a third table.
  memory.table = 4 * static_cast<double>(config.target_vocabulary * config.d_model);
  memory.beside = memory.activations.output + (config.share_embeddings == "none" ? -memory.table : memory.table);
  memory.libraries = library;
  memory.adds_gradients = run.adds_gradients;
  memory.copies_in_step = run.copies_in_step;
  return memory;
}

double resident_memory() { return status_bytes("VmRSS"); }
double peak_resident_memory() { return status_bytes("VmHWM"); }

}  // namespace plumb::plan
