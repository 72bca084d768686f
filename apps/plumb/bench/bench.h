// Common parts of the `plumb bench` measurements: sizes, random models and batches, throughput and documents.
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

/// Token ids without special tokens.
std::vector<int32_t> random_ids(Random& random, int64_t count, int64_t vocabulary);

/// Pairs of `length` tokens on each side, including special tokens.
Batch random_batch(const Sizes& sizes, uint64_t seed);

/// An initialized encoder-decoder.
std::unique_ptr<Model> random_model(const Sizes& sizes, uint64_t seed);

/// Throughput of matrix products in GFLOP/s, the ceiling of everything else: the best of several runs over shapes
/// typical of a model.
double ceiling_gflops();

/// Multiplications and additions in the matrix products of a forward pass, including attention's; a gradient takes
/// three times as many.
double forward_flops(const Sizes& sizes, const Batch& batch);

/// The peak memory of this process.
int64_t peak_memory_bytes();

/// The first keys of every document.
Json result_document(const std::string& what, const Sizes& sizes);

/// Adds `plumb bench NAME` with --json and --seed, which measures and prints.
CLI::App* add_measurement(CLI::App& bench, Globals& globals, const std::string& name, const std::string& description,
                          const std::function<Json()>& measure);

/// Adds --d-model and the other size options.
void add_sizes(CLI::App& verb, Sizes& sizes);

/// The measurements, one file each.
void add_train(CLI::App& bench, Globals& globals);
void add_hvp(CLI::App& bench, Globals& globals);
void add_decode(CLI::App& bench, Globals& globals);
void add_attention(CLI::App& bench, Globals& globals);

}  // namespace plumb::app::bench
