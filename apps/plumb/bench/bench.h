// What the measurements of `plumb bench` share: sizes, random models and batches, rates and documents.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/base/json.h"
#include "plumb/base/random.h"
#include "plumb/model/model.h"

#include "../verb.h"

namespace plumb::app::bench {

struct Sizes {
  int64_t d_model, feed_forward, heads, layers, vocabulary, sentences, length, runs = 5;
  std::string residual = "pre-ln";
  std::string precision = "float32";
};

/// Token ids without specials.
std::vector<int32_t> random_ids(Random& random, int64_t count, int64_t vocabulary);

/// Pairs of `length` tokens on either side, specials included.
Batch random_batch(const Sizes& sizes, uint64_t seed);

/// An encoder-decoder, initialized.
std::unique_ptr<Model> random_model(const Sizes& sizes, uint64_t seed);

/// The rate of matrix products, the ceiling of everything else: GFLOP/s, the best over typical shapes of a model and
/// several runs.
double ceiling_gflops();

/// Multiplications and additions of a forward pass in matrix products, attention's among them; a gradient takes three
/// times as many.
double forward_flops(const Sizes& sizes, const Batch& batch);

/// The largest that this process has been.
int64_t peak_memory_bytes();

/// What every document begins with.
Json result_document(const std::string& what, const Sizes& sizes);

/// Adds `plumb bench NAME`, which measures and prints, with --json and --seed.
CLI::App* add_measurement(CLI::App& bench, Globals& globals, const std::string& name, const std::string& description,
                          const std::function<Json()>& measure);

/// Adds --d-model and so on.
void add_sizes(CLI::App& verb, Sizes& sizes);

/// The measurements, each in a file of its own.
void add_train(CLI::App& bench, Globals& globals);
void add_hvp(CLI::App& bench, Globals& globals);
void add_decode(CLI::App& bench, Globals& globals);
void add_attention(CLI::App& bench, Globals& globals);

}  // namespace plumb::app::bench
