#include <algorithm>
#include <limits>

#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/kernels/top_values.h"

namespace plumb::ops::fused {

TopScores top_scores(const Tensor& logits_in, int64_t k, int64_t first_id, bool normalize) {
  const Tensor logits = as_contiguous(logits_in, "top scores");
  const int64_t rows = logits.size(0);
  const int64_t vocabulary = logits.size(1);
  TopScores top;
  top.k = std::min(k, vocabulary - first_id);
  top.ids.assign(static_cast<size_t>(rows * top.k), -1);
  top.scores.resize(static_cast<size_t>(rows * top.k));
  if (normalize) top.log_partition.resize(static_cast<size_t>(rows));
  dispatch(logits, [&]<typename T>() {
    const kernels::TopValueKernels<T>& kernel = kernels::top_values<T>();
    const T* in = logits.data_ptr<T>();
    parallel_ranges(rows, 4, [&](int64_t begin, int64_t end) {
      std::vector<T> values(static_cast<size_t>(top.k));
      for (int64_t row = begin; row < end; ++row) {
        const T* x = in + row * vocabulary;
        int32_t* ids = top.ids.data() + row * top.k;
        const int64_t count = kernel.find(x + first_id, vocabulary - first_id, top.k, values.data(), ids);
        for (int64_t i = 0; i < count; ++i) {
          ids[i] += static_cast<int32_t>(first_id);
          top.scores[static_cast<size_t>(row * top.k + i)] = static_cast<double>(values[static_cast<size_t>(i)]);
        }
        std::fill(ids + count, ids + top.k, -1);
        if (!normalize) continue;
        T largest = count > 0 ? values[0] : -std::numeric_limits<T>::infinity();
        for (int64_t id = 0; id < first_id; ++id) largest = std::max(largest, x[id]);
        // −∞ if all logits are −∞: the kernel would compute NaN from ∞ − ∞.
        top.log_partition[static_cast<size_t>(row)] = static_cast<double>(
            largest == -std::numeric_limits<T>::infinity() ? largest : kernel.log_partition(x, vocabulary, largest));
      }
    });
  });
  return top;
}

}  // namespace plumb::ops::fused
