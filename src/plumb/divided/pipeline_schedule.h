// The order in which the stages of a pipeline compute the micro-batches of a step, as a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb {

/// The forward or the backward pass of one micro-batch through one part of a stage's layers.
struct StageTask {
  enum class Pass { forward, backward };
  Pass pass = Pass::forward;
  int64_t micro_batch = 0;
  int64_t chunk = 0;

  bool operator==(const StageTask&) const = default;
};

/// A model is cut into stages·chunks parts of consecutive layers, and part p belongs to stage p % stages as its chunk
/// p / stages: with one chunk per stage, each stage has one run of layers; with several, a micro-batch passes all
/// stages several times. A stage computes its tasks in their order. Before a task it waits for what the part before
/// (forward) or after (backward) has sent, and what it sends waits in line while the stage computes on.
struct PipelineSchedule {
  int64_t stages = 1;
  int64_t chunks = 1;
  int64_t micro_batches = 1;
  std::vector<std::vector<StageTask>> tasks;  // [stage]

  [[nodiscard]] int64_t parts() const { return stages * chunks; }
  [[nodiscard]] int64_t part(int64_t stage, int64_t chunk) const { return chunk * stages + stage; }
};

/// The schedule of this name. Throws Error on another name, or if gpipe is to have several chunks.
/// gpipe: all forward passes, then all backward passes, in the same order of micro-batches: every stage holds the
/// activations of all of them. Huang et al. 2018, "GPipe", arXiv 1811.06965.
/// 1f1b: stage s of p, from 0, begins with p − 1 − s forward passes and then does one forward and one backward pass in
/// turn: it never holds the activations of more than p − s micro-batches. With several chunks per stage, micro-batches
/// go in groups of p through one chunk after another, and the bubble is divided by the number of chunks. Narayanan et
/// al. 2021, arXiv 2104.04473, sections 2.2.1 and 2.2.2.
PipelineSchedule make_pipeline_schedule(const std::string& name, int64_t stages, int64_t chunks, int64_t micro_batches);

/// The bubble: the fraction of a step's time that a stage idles, (p − 1)/(v·m + p − 1) for p stages, v chunks of each,
/// and m micro-batches that all take the same time; with several chunks, if m is a multiple of p.
double pipeline_bubble(int64_t stages, int64_t chunks, int64_t micro_batches);

}  // namespace plumb
