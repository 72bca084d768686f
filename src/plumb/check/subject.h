// What `plumb check` asks about: a training run that has not been started, or is to be continued.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "plumb/model/model.h"
#include "plumb/run/config.h"
#include "plumb/task/task.h"

namespace plumb::check {

/// A planned run and everything that it reads.
struct Subject {
  RunConfig config;  // completed from the data: vocabularies, classes, task
  std::unique_ptr<Task> task;
  std::filesystem::path checkpoint;  // of a run to continue; empty: it begins with config.initial_weights or at random
  int64_t first_step = 0;            // of the checkpoint
};

/// Opens the data and completes the configuration. Throws Error if the run could not begin: data missing or empty, a
/// model that cannot learn them, settings that do not go together; or not be continued: weights without a training
/// state.
Subject open_subject(RunConfig config, std::filesystem::path checkpoint = {});

/// Whether the run begins at random weights, rather than with given ones.
bool begins_at_random(const Subject& subject);

/// Sets the weights with which the run begins: those of the checkpoint, those given, or random ones from `seed`.
void set_first_weights(const Subject& subject, Model& model, uint64_t seed);

}  // namespace plumb::check
