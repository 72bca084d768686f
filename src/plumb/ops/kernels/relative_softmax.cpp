#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/relative_softmax.cpp"
#include "plumb/ops/kernels/relative_softmax.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include "plumb/ops/kernels/simd-inl.h"

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

float relative_softmax_row(float* scores, const float* further, int64_t n, float scale) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, scale);
  map_to(n, scores, [&](auto load) HWY_ATTR { return hn::Mul(factor, hn::Add(load(scores), load(further))); });
  const auto top = hn::Set(d, reduce_max(n, scores));
  map_to(n, scores, [&](auto load) HWY_ATTR { return exponential(d, hn::Sub(load(scores), top)); });
  const float sum = reduce_sum<float>(n, [&](auto load) HWY_ATTR { return load(scores); });
  const auto share = hn::Set(d, 1 / sum);
  map_to(n, scores, [&](auto load) HWY_ATTR { return hn::Mul(load(scores), share); });
  return hn::GetLane(top) + std::log(sum);
}

void relative_softmax_backward_row(float* scores, const float* further, float* gradient, int64_t n, float scale,
                                   float log_sum, float mean) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, scale), log = hn::Set(d, log_sum), center = hn::Set(d, mean);
  map_to(n, scores, [&](auto load) HWY_ATTR {
    return exponential(d, hn::Sub(hn::Mul(factor, hn::Add(load(scores), load(further))), log));
  });
  map_to(n, gradient,
         [&](auto load) HWY_ATTR { return hn::Mul(hn::Mul(factor, load(scores)), hn::Sub(load(gradient), center)); });
}

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

HWY_EXPORT(relative_softmax_row);
HWY_EXPORT(relative_softmax_backward_row);

float relative_softmax(float* scores, const float* further, int64_t n, float scale) {
  return HWY_DYNAMIC_DISPATCH(relative_softmax_row)(scores, further, n, scale);
}
void relative_softmax_backward(float* scores, const float* further, float* gradient, int64_t n, float scale,
                               float log_sum, float mean) {
  HWY_DYNAMIC_DISPATCH(relative_softmax_backward_row)(scores, further, gradient, n, scale, log_sum, mean);
}

}  // namespace plumb::kernels
#endif  // HWY_ONCE
