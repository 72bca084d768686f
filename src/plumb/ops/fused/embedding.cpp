#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/kernels/elementwise.h"

namespace plumb::ops::fused {
namespace {

Tensor gather(const Tensor& table_in, const Tensor& ids, double scale) {
  const Tensor table = as_contiguous(table_in, "embedding");
  const int64_t width = table.size(1);
  Tensor out = at::empty({ids.size(0), width}, table.options());
  dispatch(table, [&]<typename T>() {
    const T* in = table.data_ptr<T>();
    const int64_t* rows = ids.data_ptr<int64_t>();
    T* result = out.data_ptr<T>();
    parallel_ranges(ids.size(0), 64, [&](int64_t begin, int64_t end) {
      kernels::elementwise<T>().gather_rows(in, rows, static_cast<T>(scale), width, result, begin, end);
    });
  });
  return out;
}

/// ScatterRows and GatherRows are linear, and each is the other's backward pass.
class ScatterRows : public torch::autograd::Function<ScatterRows> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& rows_in, const Tensor& ids, double scale,
                        int64_t vocabulary) {
    ctx->saved_data["ids"] = ids;
    ctx->saved_data["scale"] = scale;
    const Tensor rows = as_contiguous(rows_in, "embedding");
    const int64_t width = rows.size(1);
    Tensor table = at::zeros({vocabulary, width}, rows.options());
    dispatch(rows, [&]<typename T>() {
      const T* in = rows.data_ptr<T>();
      const int64_t* index = ids.data_ptr<int64_t>();
      T* out = table.data_ptr<T>();
      parallel_ranges(width, 32, [&](int64_t begin, int64_t end) {
        kernels::elementwise<T>().scatter_add_rows(in, index, ids.size(0), static_cast<T>(scale), width, out, begin,
                                                   end);
      });
    });
    return table;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad);
};

class GatherRows : public torch::autograd::Function<GatherRows> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& table, const Tensor& ids, double scale) {
    ctx->saved_data["ids"] = ids;
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["vocabulary"] = table.size(0);
    return gather(table, ids, scale);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    return {ScatterRows::apply(grad[0], ctx->saved_data["ids"].toTensor(), ctx->saved_data["scale"].toDouble(),
                               ctx->saved_data["vocabulary"].toInt()),
            Tensor(), Tensor()};
  }
};

variable_list ScatterRows::backward(AutogradContext* ctx, variable_list grad) {
  return {GatherRows::apply(grad[0], ctx->saved_data["ids"].toTensor(), ctx->saved_data["scale"].toDouble()), Tensor(),
          Tensor(), Tensor()};
}

}  // namespace

Tensor embedding(const Tensor& table, const std::vector<int64_t>& ids, double scale) {
  return GatherRows::apply(table, at::tensor(ids, at::kLong), scale);
}

}  // namespace plumb::ops::fused
