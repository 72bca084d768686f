#include "plumb/analysis/retrieval.h"

#include <numeric>

#include "plumb/base/random.h"
#include "plumb/nn/init/init.h"
#include "plumb/ops/index.h"
#include "plumb/optim/optimizer.h"

namespace plumb {
namespace {

struct Written {
  std::vector<int64_t> keys;    // in writing order, for all sequences
  std::vector<int64_t> values;  // the corresponding values
  std::vector<int64_t> asked;   // values to retrieve for the keys 0, 1, … of each sequence
};

std::vector<int64_t> permutation(int64_t n, Random& random) {
  std::vector<int64_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), int64_t{0});
  random.shuffle(all);
  return all;
}

Written draw(const RetrievalTask& task, Random& random) {
  Written written;
  for (int64_t s = 0; s < task.sequences; ++s) {
    std::vector<int64_t> last(static_cast<size_t>(task.keys));
    for (int pass = 0; pass < (task.update ? 2 : 1); ++pass) {
      const std::vector<int64_t> values = permutation(task.keys, random);
      for (const int64_t key : permutation(task.keys, random)) {
        last[static_cast<size_t>(key)] = values[static_cast<size_t>(key)];
        written.keys.push_back(key);
        written.values.push_back(values[static_cast<size_t>(key)]);
      }
    }
    written.asked.insert(written.asked.end(), last.begin(), last.end());
  }
  return written;
}

}  // namespace

Retrieval measure_retrieval(const std::string& kind, const VariantOptions& options, const RetrievalTask& task,
                            uint64_t seed) {
  Parameters parameters(at::kFloat);
  const auto attention =
      make_attention(kind, parameters, {"attention", task.size, {1, 1, task.size}, options, nullptr});
  const Tensor keys = parameters.add("keys", {task.keys, task.size}, Role::weight);
  // A learned scale for queries: softmax can sharpen, and outer products do not need queries of norm 1.
  const Tensor scale = parameters.add("scale", {1}, Role::gain);
  parameters.allocate();
  initialize(parameters, {"xavier-normal"}, {}, seed);
  Random random(seed, "retrieval");
  fill_normal(keys.detach(), 1, random);
  const Tensor values = at::empty({task.keys, task.size}, parameters.options());
  fill_normal(values, 1, random);

  const int64_t writes = task.keys * (task.update ? 2 : 1);
  const Ragged written_layout(std::vector<int64_t>(static_cast<size_t>(task.sequences), writes));
  const Ragged asked_layout(std::vector<int64_t>(static_cast<size_t>(task.sequences), task.keys));
  const Tensor x =
      at::ones({writes * task.sequences, task.size}, parameters.options()) / static_cast<double>(task.size);
  const ForwardContext context;
  const auto answer = [&](const Written& written) {
    const Tensor key_value = at::cat({keys.index_select(0, ops::index_beside(keys, written.keys)),
                                      values.index_select(0, ops::index_beside(values, written.values))},
                                     1);
    const AttentionMemory memory = attention->remember(key_value, x, written_layout, context);
    return attention->cross((scale * keys).repeat({task.sequences, 1}), asked_layout, memory, context);
  };
  const auto error_of = [&](const Tensor& found, const Written& written) {
    const Tensor wanted = values.index_select(0, ops::index_beside(values, written.asked));
    return ((found - wanted).pow(2).sum(1) / wanted.pow(2).sum(1)).mean();
  };

  const std::vector<Tensor> trained = parameters.values();
  const auto adam = make_optimizer("adam", parameters);
  for (int64_t step = 0; step < task.steps; ++step) {
    const Written written = draw(task, random);
    const double rate = 0.05 * (1 - static_cast<double>(step) / static_cast<double>(task.steps));
    adam->step(gradients({error_of(answer(written), written)}, trained, {}), rate, 1.0);
  }
  const at::NoGradGuard no_graph;
  Retrieval result;
  constexpr int kFresh = 4;
  for (int i = 0; i < kFresh; ++i) {
    const Written written = draw(task, random);
    const Tensor found = answer(written);
    result.error += error_of(found, written).item<double>() / kFresh;
    const Tensor nearest = at::cdist(found, values).argmin(1);
    result.accuracy +=
        nearest.eq(ops::index_beside(values, written.asked)).to(at::kDouble).mean().item<double>() / kFresh;
  }
  return result;
}

}  // namespace plumb
