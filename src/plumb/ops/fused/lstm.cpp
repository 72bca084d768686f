#include "plumb/ops/lstm.h"

#include <variant>
#include <vector>

#include "plumb/base/parallel.h"
#include "plumb/ops/autograd.h"
#include "plumb/ops/blocks.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/index.h"
#include "plumb/ops/kernels/gemm.h"
#include "plumb/ops/kernels/lstm.h"
#include "plumb/ops/precision.h"

namespace plumb::ops::fused {
namespace {

/// Tokens in the order of computation: step t has the adjacent rows of position t of every sequence that has one,
/// longest sequence first. Matrices of states begin with the initial states, one row per sequence in that order,
/// followed by the rows of the steps.
struct LstmOrder {
  explicit LstmOrder(const Ragged& of) : layout(of), steps(of, 1), token_of_row(steps.places().size()) {
    int64_t rows = 0;
    for (const int64_t sequences : steps.sequences_at()) {
      begin.push_back(rows);
      rows += sequences;
    }
    for (size_t token = 0; token < token_of_row.size(); ++token)
      token_of_row[static_cast<size_t>(steps.places()[token])] = static_cast<int64_t>(token);
  }

  [[nodiscard]] int64_t count() const { return std::ssize(begin); }
  [[nodiscard]] int64_t rows(int64_t step) const { return steps.sequences_at()[static_cast<size_t>(step)]; }
  [[nodiscard]] int64_t first(int64_t step) const { return begin[static_cast<size_t>(step)]; }

  /// The first row of the states after and before a step.
  [[nodiscard]] int64_t after(int64_t step) const { return layout.sequences() + first(step); }
  [[nodiscard]] int64_t before(int64_t step) const { return step == 0 ? 0 : after(step - 1); }

  [[nodiscard]] Tensor by_step(const Tensor& by_token) const {
    return layout.sequences() == 1 ? by_token : by_token.index_select(0, index_beside(by_token, token_of_row));
  }
  [[nodiscard]] Tensor by_token(const Tensor& by_step) const {
    return layout.sequences() == 1 ? by_step : by_step.index_select(0, index_beside(by_step, steps.places()));
  }

  /// The state before each row of the steps; a view if all sequences have the same length.
  [[nodiscard]] Tensor states_before(const Tensor& states) const {
    if (rows(count() - 1) == layout.sequences()) return states.narrow(0, 0, layout.tokens());
    std::vector<Tensor> parts;
    for (int64_t step = 0; step < count(); ++step) parts.push_back(states.narrow(0, before(step), rows(step)));
    return at::cat(parts, 0);
  }

  /// The state after the last position of every sequence, in the order of the layout.
  [[nodiscard]] Tensor last_states(const Tensor& states) const {
    std::vector<int64_t> ids(static_cast<size_t>(layout.sequences()));
    for (int64_t rank = 0; rank < layout.sequences(); ++rank) {
      const int64_t sequence = steps.order()[static_cast<size_t>(rank)];
      const int64_t length = layout.length(sequence);
      ids[static_cast<size_t>(sequence)] = rank + (length == 0 ? 0 : after(length - 1));
    }
    return states.index_select(0, index_beside(states, ids));
  }

  Ragged layout;
  Blocks steps;
  std::vector<int64_t> begin;         // [step]
  std::vector<int64_t> token_of_row;  // (tokens)
};

/// Multiplies the rows of many steps by the same matrix, packed if that pays.
class PackedProduct {
 public:
  /// Multiplies by Wᵀ or, if `transposed`, by W. `rounded`: with operands rounded to bfloat16.
  PackedProduct(const Tensor& weight, bool transposed, bool rounded, int64_t steps)
      : weight_(rounded ? to_bfloat16(weight) : as_contiguous(weight, "LSTM")),
        transposed_(transposed),
        rounded_(rounded) {
    constexpr int64_t kWorthPacking = 4;  // steps
    if (steps < kWorthPacking) return;
    const int64_t n = weight.size(transposed ? 1 : 0);
    const int64_t k = weight.size(transposed ? 0 : 1);
    if (rounded) {
      packed_ = kernels::PackedWeight(static_cast<const kernels::Bfloat16*>(weight_.data_ptr()), n, k, transposed);
    } else if (weight.scalar_type() == at::kFloat) {
      packed_ = kernels::PackedWeight(static_cast<const float*>(weight_.data_ptr<float>()), n, k, transposed);
    }
  }

  /// Adds the product to `sums`. Both are contiguous.
  void add(const Tensor& rows_in, const Tensor& sums) const {
    const Tensor rows = rounded_ && rows_in.scalar_type() == at::kFloat ? to_bfloat16(rows_in) : rows_in;
    if (const auto* packed = std::get_if<kernels::PackedWeight<float>>(&packed_)) {
      kernels::gemm<float>(rows.size(0), rows.data_ptr<float>(), *packed, sums.data_ptr<float>(), {.accumulate = true});
    } else if (const auto* narrow = std::get_if<kernels::PackedWeight<kernels::Bfloat16>>(&packed_)) {
      kernels::gemm(rows.size(0), static_cast<const kernels::Bfloat16*>(rows.data_ptr()), *narrow,
                    sums.data_ptr<float>(), {.accumulate = true});
    } else {
      ops::gemm(rows, weight_, {.transpose_b = !transposed_, .accumulate_into = sums});
    }
  }

 private:
  Tensor weight_;
  bool transposed_;
  bool rounded_;
  std::variant<std::monostate, kernels::PackedWeight<float>, kernels::PackedWeight<kernels::Bfloat16>> packed_;
};

/// Calls work(row) for the rows of a step, each of `size` elements, in parallel.
template <typename Work>
void for_rows_of_step(int64_t rows, int64_t size, const Work& work) {
  constexpr int64_t kElements = 2048;  // elements that justify a thread
  parallel_ranges(rows, (kElements + size - 1) / size, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) work(row);
  });
}

/// Saved by the forward pass for the backward pass, by step.
struct LstmPass {
  Tensor gates;   // (tokens, 4·size): σ(i), σ(f), tanh(g), σ(o)
  Tensor hidden;  // (sequences + tokens, size)
  Tensor cell;    // (sequences + tokens, size)
};

/// Completes `pass`, whose gates hold W·x + b_W + b_U and whose first rows hold the initial states, and fills `output`
/// (tokens, size).
template <typename T>
void run_forward(const LstmOrder& order, const PackedProduct& recurrent, const LstmPass& pass, const Tensor& output) {
  const int64_t size = output.size(1);
  const kernels::LstmKernels<T>& kernel = kernels::lstm<T>();
  T* gates = pass.gates.data_ptr<T>();
  T* hidden = pass.hidden.data_ptr<T>();
  T* cell = pass.cell.data_ptr<T>();
  for (int64_t step = 0; step < order.count(); ++step) {
    const int64_t rows = order.rows(step), first = order.first(step);
    const int64_t before = order.before(step), after = order.after(step);
    recurrent.add(pass.hidden.narrow(0, before, rows), pass.gates.narrow(0, first, rows));
    for_rows_of_step(rows, size, [&](int64_t row) {
      const int64_t token = order.token_of_row[static_cast<size_t>(first + row)];
      kernel.forward({.size = size,
                      .gates = gates + (first + row) * 4 * size,
                      .cell_before = cell + (before + row) * size,
                      .cell = cell + (after + row) * size,
                      .hidden = hidden + (after + row) * size,
                      .output = output.data_ptr<T>() + token * size});
    });
  }
}

/// From the gradient of the output and of the last states by rank, returns the gradients of the gates' sums, by step;
/// dhidden and dcell become the gradients of the initial states.
template <typename T>
Tensor run_backward(const LstmOrder& order, const PackedProduct& recurrent, const LstmPass& pass, const Tensor& doutput,
                    const Tensor& dhidden, const Tensor& dcell) {
  const int64_t size = doutput.size(1);
  Tensor dgates = at::empty_like(pass.gates);
  const kernels::LstmKernels<T>& kernel = kernels::lstm<T>();
  const T* gates = pass.gates.data_ptr<T>();
  const T* cell = pass.cell.data_ptr<T>();
  for (int64_t step = order.count() - 1; step >= 0; --step) {
    const int64_t rows = order.rows(step), first = order.first(step);
    const int64_t before = order.before(step), after = order.after(step);
    for_rows_of_step(rows, size, [&](int64_t row) {
      const int64_t token = order.token_of_row[static_cast<size_t>(first + row)];
      kernel.backward({.size = size,
                       .gates = gates + (first + row) * 4 * size,
                       .cell_before = cell + (before + row) * size,
                       .cell = cell + (after + row) * size,
                       .doutput = doutput.data_ptr<T>() + token * size,
                       .dhidden = dhidden.data_ptr<T>() + row * size,
                       .dcell = dcell.data_ptr<T>() + row * size,
                       .dgates = dgates.data_ptr<T>() + (first + row) * 4 * size});
    });
    const Tensor of_rows = dhidden.narrow(0, 0, rows);
    of_rows.zero_();
    recurrent.add(dgates.narrow(0, first, rows), of_rows);
  }
  return dgates;
}

constexpr size_t kLstmInputs = 7;  // x, W, U, b_W, b_U, h_0, c_0

class LstmLayer : public torch::autograd::Function<LstmLayer> {
 public:
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& input, const Tensor& recurrent,
                               const Tensor& input_bias, const Tensor& hidden_bias, const Tensor& hidden,
                               const Tensor& cell, const LstmOrder& order) {
    const bool rounded = rounds_to_bfloat16(x);
    const auto operand = [&](const Tensor& matrix) { return rounded ? to_bfloat16(matrix) : matrix; };
    const int64_t size = recurrent.size(1), sequences = order.layout.sequences(), tokens = order.layout.tokens();
    LstmPass pass;
    pass.gates =
        ops::gemm(operand(order.by_step(x)), operand(input), {.transpose_b = true, .bias = input_bias + hidden_bias});
    pass.hidden = at::empty({sequences + tokens, size}, x.options());
    pass.hidden.narrow(0, 0, sequences).copy_(order.steps.sorted(hidden));
    pass.cell = at::empty({sequences + tokens, size}, x.options());
    pass.cell.narrow(0, 0, sequences).copy_(order.steps.sorted(cell));
    Tensor output = at::empty({tokens, size}, x.options());
    const PackedProduct product(recurrent, /*transposed=*/false, rounded, order.count());
    dispatch(x, [&]<typename T>() { run_forward<T>(order, product, pass, output); });
    ctx->save_for_backward(
        {x, input, recurrent, input_bias, hidden_bias, hidden, cell, pass.gates, pass.hidden, pass.cell});
    save_value(ctx, order);
    ctx->saved_data["rounded"] = rounded;
    return {output, order.last_states(pass.hidden), order.last_states(pass.cell)};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto& order = saved_value<LstmOrder>(ctx);
    const variable_list saved = ctx->get_saved_variables();
    const bool rounded = ctx->saved_data["rounded"].toBool();
    if (at::GradMode::is_enabled()) {
      if (rounded) refuse_second_derivatives();
      return gradients_by_reference(
          ctx, {saved.begin(), saved.begin() + kLstmInputs}, grad, [&](const variable_list& in) {
            const LstmResult out = reference::lstm(in[0], {in[1], in[2], in[3], in[4]}, {in[5], in[6]}, order.layout);
            return variable_list{out.hidden, out.last.hidden, out.last.cell};
          });
    }
    const Tensor& x = saved[0];
    const LstmPass pass{saved[kLstmInputs], saved[kLstmInputs + 1], saved[kLstmInputs + 2]};
    const auto operand = [&](const Tensor& matrix) { return rounded ? to_bfloat16(matrix) : matrix; };
    const Tensor doutput = as_contiguous(grad[0], "LSTM");
    const Tensor dhidden = order.steps.sorted(grad[1]).clone(at::MemoryFormat::Contiguous);
    const Tensor dcell = order.steps.sorted(grad[2]).clone(at::MemoryFormat::Contiguous);
    const PackedProduct product(saved[2], /*transposed=*/true, rounded, order.count());
    Tensor dgates;
    dispatch(x, [&]<typename T>() { dgates = run_backward<T>(order, product, pass, doutput, dhidden, dcell); });

    variable_list all(kLstmInputs + 1);
    const Tensor factor = operand(dgates);
    if (ctx->needs_input_grad(0)) {
      const Tensor dx = at::zeros({x.size(0), x.size(1)}, x.options());
      PackedProduct(saved[1], /*transposed=*/true, rounded, order.count()).add(factor, dx);
      all[0] = order.by_token(dx);
    }
    if (ctx->needs_input_grad(1)) all[1] = ops::gemm(factor, operand(order.by_step(x)), {.transpose_a = true});
    if (ctx->needs_input_grad(2))
      all[2] = ops::gemm(factor, operand(order.states_before(pass.hidden)), {.transpose_a = true});
    if (ctx->needs_input_grad(3)) all[3] = ops::column_sums(dgates);
    if (ctx->needs_input_grad(4)) all[4] = all[3].defined() ? all[3].clone() : ops::column_sums(dgates);
    if (ctx->needs_input_grad(5)) all[5] = order.steps.unsorted(dhidden);
    if (ctx->needs_input_grad(6)) all[6] = order.steps.unsorted(dcell);
    return all;
  }
};

}  // namespace

LstmResult lstm(const Tensor& x, const LstmWeights& weights, const LstmState& start, const Ragged& layout) {
  const variable_list result = LstmLayer::apply(x, weights.input, weights.hidden, weights.input_bias,
                                                weights.hidden_bias, start.hidden, start.cell, LstmOrder(layout));
  return {result[0], {result[1], result[2]}};
}

}  // namespace plumb::ops::fused
