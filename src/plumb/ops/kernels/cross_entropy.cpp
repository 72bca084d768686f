#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/cross_entropy.cpp"
#include "plumb/ops/kernels/cross_entropy.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include "plumb/ops/kernels/simd-inl.h"

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

/// The loss of a row with Σ exp(logit − largest) = `sum`; `mean` is that of its logits, if they are smoothed.
template <typename T>
RowLoss<T> row_loss(const CrossEntropyRow<T>& row, T label_logit, T largest, T sum, T mean) {
  const T log_partition = largest + std::log(sum);
  const T nll = log_partition - label_logit;
  const T smoothed =
      row.smoothing == T{0} ? nll : (T{1} - row.smoothing) * nll + row.smoothing * (log_partition - mean);
  return {nll, smoothed, log_partition};
}

template <typename T>
T mean_if_smoothed(const CrossEntropyRow<T>& row, const T* logits) {
  if (row.smoothing == T{0}) return T{0};
  return reduce_sum<T>(row.vocabulary, [&](auto load) HWY_ATTR { return load(logits); }) /
         static_cast<T>(row.vocabulary);
}

template <typename T>
RowLoss<T> loss(const CrossEntropyRow<T>& row, const T* logits) {
  const hn::ScalableTag<T> d;
  const T largest = reduce_max(row.vocabulary, logits);
  const auto shift = hn::Set(d, largest);
  const T sum =
      reduce_sum<T>(row.vocabulary, [&](auto load) HWY_ATTR { return exponential(d, hn::Sub(load(logits), shift)); });
  return row_loss(row, logits[row.label], largest, sum, mean_if_smoothed(row, logits));
}

template <typename T>
RowLoss<T> with_gradient(const CrossEntropyRow<T>& row, T scale, T* logits) {
  const hn::ScalableTag<T> d;
  const T label_logit = logits[row.label];
  const T largest = reduce_max(row.vocabulary, static_cast<const T*>(logits));
  const T mean = mean_if_smoothed<T>(row, logits);
  const auto shift = hn::Set(d, largest);
  const T sum = map_and_sum(row.vocabulary, logits,
                            [&](auto load) HWY_ATTR { return exponential(d, hn::Sub(load(logits), shift)); });
  const auto factor = hn::Set(d, scale / sum);
  const auto uniform = hn::Set(d, scale * row.smoothing / static_cast<T>(row.vocabulary));
  map_to(row.vocabulary, logits, [&](auto load) HWY_ATTR { return hn::MulSub(factor, load(logits), uniform); });
  logits[row.label] -= scale * (T{1} - row.smoothing);
  return row_loss(row, label_logit, largest, sum, mean);
}

template <typename T>
void gradient(const CrossEntropyRow<T>& row, const T* logits, T log_partition, T scale, T* out) {
  const hn::ScalableTag<T> d;
  const auto shift = hn::Set(d, log_partition);
  const auto factor = hn::Set(d, scale);
  const auto uniform = hn::Set(d, row.smoothing / static_cast<T>(row.vocabulary));
  map_to(row.vocabulary, out, [&](auto load) HWY_ATTR {
    return hn::Mul(factor, hn::Sub(exponential(d, hn::Sub(load(logits), shift)), uniform));
  });
  out[row.label] -= scale * (T{1} - row.smoothing);
}

template <typename T>
T curvature(const CrossEntropyRow<T>& row, const T* logits, T log_partition, T scale, const T* c, T* out) {
  const hn::ScalableTag<T> d;
  const int64_t n = row.vocabulary;
  const auto shift = hn::Set(d, log_partition);
  map_to(n, out, [&](auto load) HWY_ATTR { return exponential(d, hn::Sub(load(logits), shift)); });
  const T mean = reduce_sum<T>(n, [&](auto load) HWY_ATTR { return hn::Mul(load(c), load(out)); });
  const T sum = row.smoothing == T{0} ? T{0} : reduce_sum<T>(n, [&](auto load) HWY_ATTR { return load(c); });
  const auto center = hn::Set(d, mean);
  const auto factor = hn::Set(d, scale);
  map_to(n, out, [&](auto load) HWY_ATTR { return hn::Mul(hn::Mul(factor, load(out)), hn::Sub(load(c), center)); });
  return mean - (T{1} - row.smoothing) * c[row.label] - row.smoothing / static_cast<T>(n) * sum;
}

PLUMB_FILL_TABLE(CrossEntropyKernels, .loss = loss<T>, .gradient = gradient<T>, .with_gradient = with_gradient<T>,
                 .curvature = curvature<T>);

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

PLUMB_EXPORT_TABLE(CrossEntropyKernels, cross_entropy);

}  // namespace plumb::kernels
#endif  // HWY_ONCE
