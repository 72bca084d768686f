// What every process of a mesh holds and sends: the shapes are those that `plumb train` would have, memory and messages
// are those of the plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/plan/training.h"

namespace plumb::plan {

/// Parameters of one shape in layers of the same kind.
struct HeldParameter {
  std::string name;  // with * in place of the layer's number
  std::vector<int64_t> shape;
  int64_t count = 0;  // layers that have it

  bool operator==(const HeldParameter&) const = default;
};

/// Processes that hold parameters of the same shapes: those of consecutive stages of a pipeline.
struct RankKind {
  int64_t first_stage = 0, last_stage = 0;
  int64_t ranks = 0;
  int64_t layers = 0;  // of each stage
  std::vector<HeldParameter> held;
  int64_t parameters = 0;  // of each process, before ZeRO cuts them
  Memory memory;           // of the first stage among them, which has the most micro-batches at once
  StageMessages messages;  // that a process sends in a step
};

/// Without tensors: model and division consist of shapes alone. Throws Error if
/// the model cannot be divided so.
std::vector<RankKind> rank_kinds(const ModelConfig& config, const TrainingJob& job, const Layout& layout);

}  // namespace plumb::plan
