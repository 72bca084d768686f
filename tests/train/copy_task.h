// A tiny data directory for the copy task, and runs of a tiny model on it.
#pragma once

#include <memory>
#include <string>

#include "plumb/base/random.h"
#include "plumb/data/prepare.h"
#include "plumb/run/config.h"
#include "plumb/train/trainer.h"
#include "support/fast_directory.h"
#include "train/moments.h"

namespace plumb::test {

/// Sentences of one to five words from a vocabulary of six, with equal source and target.
inline ParallelText copy_text(int64_t pairs, uint64_t seed) {
  Random random(seed, "copy");
  ParallelText text;
  for (int64_t i = 0; i < pairs; ++i) {
    std::string sentence;
    for (uint64_t n = 1 + random.below(5); n > 0; --n)
      sentence += std::string(1, static_cast<char>('a' + random.below(6))) + " ";
    text.append(sentence, sentence);
  }
  return text;
}

inline void make_copy_task(const std::filesystem::path& out) {
  PrepareOptions options;
  options.tokenizer.vocabulary = 24;
  prepare_corpora({copy_text(120, 1), copy_text(20, 2), {}}, options, out);
}

inline RunConfig copy_run(const std::filesystem::path& data) {
  RunConfig run;
  run.data = data.string();
  run.model.d_model = 16;
  run.model.feed_forward = 32;
  run.model.heads = 2;
  run.model.encoder_layers = run.model.decoder_layers = 1;
  run.train.batch_tokens = 64;
  run.train.learning_rate = 1e-2;
  run.train.warm_up = 5;
  run.train.steps = 20;
  run.train.log_every = 3;
  run.train.validate_every = 8;
  run.train.checkpoint_every = 7;
  return run;
}

/// What fixtures for such runs have: a folder with `data`, and the configuration of a run on them.
class CopyTaskFolder {
 protected:
  CopyTaskFolder() : run_(copy_run(folder_ / "data")) { make_copy_task(folder_ / "data"); }

  /// The task, which completes the configuration of the model.
  [[nodiscard]] std::unique_ptr<Task> completed_task() {
    std::unique_ptr<Task> task = make_task({}, DataDirectory::open(run_.data), run_.model.kind);
    task->complete(run_.model);
    return task;
  }

  /// Steps of two ragged batches in micro-batches, with dropout and clipping.
  void take_micro_batches() {
    run_.model.dropout = 0.3;
    run_.model.heads = 4;
    run_.train.schedule = "constant";
    run_.train.clip_norm = 0.5;
    run_.train.accumulate = 2;
    run_.train.micro_batch_tokens = 24;
    run_.train.log_every = 1;
    run_.train.score_every = -1;
  }

  FastDirectory folder_;
  RunConfig run_;
};

}  // namespace plumb::test
