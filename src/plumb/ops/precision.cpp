#include "plumb/ops/precision.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/packed_linear.h"

namespace plumb::ops {
namespace {

thread_local MatrixPrecision* current = nullptr;

}  // namespace

Tensor reference::to_bfloat16(const Tensor& x) { return x.to(at::kBFloat16); }

Precision precision_of(const std::string& name) {
  if (name == "float32") return Precision::float32;
  if (name == "bf16") return Precision::bfloat16;
  if (name == "int8") return Precision::int8;
  throw Error(fmt::format("unknown precision '{}'", name), "known: float32, bf16, int8");
}

Tensor to_bfloat16(const Tensor& x) {
  static constexpr Operation kRound("rounding to bfloat16", PLUMB_FUSED(to_bfloat16), &reference::to_bfloat16);
  return kRound(x.scalar_type() == at::kFloat ? path_of(x) : Path::reference, x);
}

struct MatrixPrecision::Entry {
  explicit Entry(const Tensor& constant) : weight(constant.detach()) {}

  const Tensor weight;  // kept alive, so that no other one gets its address
  std::mutex mutex;
  std::unique_ptr<PackedLinear> packed;
};

MatrixPrecision::MatrixPrecision(Precision precision, bool weights_stay)
    : precision_(precision), weights_stay_(weights_stay) {
  if (precision == Precision::int8 && !weights_stay) {
    throw Error("training in int8 is not supported", "use float32 or bf16");
  }
}

MatrixPrecision::~MatrixPrecision() = default;

const PackedLinear& MatrixPrecision::packed(const Tensor& weight) {
  const Key key = {weight.data_ptr(), weight.size(0), weight.size(1), weight.stride(0), weight.stride(1)};
  std::unique_lock all(mutex_);
  std::unique_ptr<Entry>& place = packed_[key];
  if (!place) place = std::make_unique<Entry>(weight);
  Entry& entry = *place;
  all.unlock();
  const std::lock_guard lock(entry.mutex);
  if (!entry.packed) entry.packed = std::make_unique<PackedLinear>(entry.weight, precision_);
  return *entry.packed;
}

PrecisionGuard::PrecisionGuard(MatrixPrecision& precision) : before_(current) { current = &precision; }
PrecisionGuard::~PrecisionGuard() { current = before_; }

MatrixPrecision* active_precision() { return current; }

bool rounds_to_bfloat16(const Tensor& x) {
  return current != nullptr && current->precision() == Precision::bfloat16 && x.scalar_type() == at::kFloat;
}

void refuse_second_derivatives() {
  if (at::GradMode::is_enabled())
    throw Error("second derivatives are not available in bfloat16", "use float32 for curvature");
}

MatrixPrecision* packing_for(const Tensor& x) {
  bool packs = current != nullptr && current->weights_stay() && x.scalar_type() == at::kFloat;
  // Without kernels, packing a float32 weight has no benefit.
  if (packs && current->precision() == Precision::float32) packs = kernels_serve(x.device());
  return packs && !at::GradMode::is_enabled() ? current : nullptr;
}

}  // namespace plumb::ops
