// Training in a run directory: starting, resuming and finishing a run; see docs/formats/run.md.
#pragma once

#include <filesystem>

#include "plumb/train/trainer.h"

namespace plumb {

/// Trains in the run directory `out`: starts a run, resumes it from its latest checkpoint, or returns the result of a
/// run that has ended. Vocabulary sizes of 0 are taken from the data. Throws Error if `out` contains anything else, or
/// a run with a different configuration, naming the first key that differs. These may differ: the location of the data,
/// or of initial weights that have moved; [watch]; train.processes, train.micro_batch_tokens and train.timeout; and
/// larger steps or epochs, with which a finished run continues. If train.processes is greater than 1, this process
/// starts the others, and they share its threads; if the environment specifies a rendezvous
/// (rendezvous_of_environment), that determines the processes instead. Only process 0 writes. If the directory is moved
/// meanwhile, the run goes on where it is (TrainObserver::on_place); if it is removed, this throws Error at the next
/// step. Points and records are in the run's files before the observers are told of them.
TrainResult run_training(const RunConfig& config, const std::filesystem::path& out,
                         const TrainObservers& observers = {}, const TrainOptions& options = {});

}  // namespace plumb
