// LibTorch's LSTM, one sequence at a time, to compare with ops::lstm.
#pragma once

#include <vector>

#include "plumb/ops/lstm.h"
#include "support/gradcheck.h"

namespace plumb::testing {

/// x, W, U, b_W, b_U, h_0 and c_0 of a layer over the sequences of `layout`, in float64.
inline std::vector<Tensor> lstm_inputs(const Ragged& layout, int64_t in, int64_t size) {
  return {random_tensor({layout.tokens(), in}, 1),
          random_tensor({4 * size, in}, 2, 0.7),
          random_tensor({4 * size, size}, 3, 0.7),
          random_tensor({4 * size}, 4),
          random_tensor({4 * size}, 5),
          random_tensor({layout.sequences(), size}, 6),
          random_tensor({layout.sequences(), size}, 7)};
}

/// The results of a layer, concatenated into one vector.
inline Tensor flattened(const ops::LstmResult& result) {
  return at::cat({result.hidden.reshape({-1}), result.last.hidden.reshape({-1}), result.last.cell.reshape({-1})});
}

/// ops::lstm as a function of lstm_inputs().
inline ops::LstmResult lstm_of(const std::vector<Tensor>& in, const Ragged& layout) {
  return ops::lstm(in[0], {in[1], in[2], in[3], in[4]}, {in[5], in[6]}, layout);
}

/// The same with at::lstm.
inline ops::LstmResult lstm_by_torch(const std::vector<Tensor>& in, const Ragged& layout) {
  std::vector<Tensor> outputs, last_hidden, last_cell;
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    const std::vector<Tensor> start = {in[5][s].view({1, 1, -1}), in[6][s].view({1, 1, -1})};
    const Tensor x = in[0].narrow(0, layout.begin(s), layout.length(s)).unsqueeze(1);
    if (layout.length(s) == 0) {
      last_hidden.push_back(start[0].view({1, -1}));
      last_cell.push_back(start[1].view({1, -1}));
      continue;
    }
    const auto [output, hidden, cell] = at::lstm(x, start, {in[1], in[2], in[3], in[4]}, /*has_biases=*/true,
                                                 /*num_layers=*/1, /*dropout=*/0.0, /*train=*/true,
                                                 /*bidirectional=*/false, /*batch_first=*/false);
    outputs.push_back(output.squeeze(1));
    last_hidden.push_back(hidden.view({1, -1}));
    last_cell.push_back(cell.view({1, -1}));
  }
  return {at::cat(outputs), {at::cat(last_hidden), at::cat(last_cell)}};
}

}  // namespace plumb::testing
