// Initializations that draw each matrix from a distribution that its shape determines.
//
// Xavier initialization, Glorot & Bengio 2010: variance 2/(fan_in + fan_out), normal or uniform. fairseq draws queries,
// keys and values with 1/√2 of that deviation (modules/multihead_attention.py, reset_parameters), where their widths
// are equal; PyTorch's nn.MultiheadAttention does the same by drawing the three as one matrix (3d, d).
//
// He et al. 2015, arXiv 1502.01852: N(0, 2/fan_in), which preserves the variance through ReLUs.
//
// SmallInit, Nguyen & Salazar 2019, arXiv 1910.05895: every weight matrix is drawn as Xavier would draw a feed-forward
// matrix of width 4d: N(0, 2/(d + 4d)), where d is the width of the stream that the matrix reads or writes. In the
// authors' code (layers.py) the feed-forward matrices are Xavier's for their own width, the same if it is 4d.
//
// The maximal update parametrization, Yang et al. 2022, arXiv 2203.03466, table 3: variances 1/fan_in, and 1/fan_in²
// for an output matrix that is not shared with the embedding. Embeddings have constant variance at the input: N(0, 1/d)
// times √d (model.embedding_factor = 0). Learning rates must decrease with the width, as with train.parametrization =
// "mup" (run/parametrization.h).
//
// AWD-LSTM, Merity et al. 2018, arXiv 1708.02182: U(−1/√n, 1/√n) for the recurrent layers, n their size, as in
// torch.nn.LSTM, and U(−0.1, 0.1) for the embedding. Here embeddings are normal with the same variance, 0.1²/3, and
// biases 0. The output layer of a classifier is U(−1/√m, 1/√m), m its columns, as in torch.nn.Linear.
#include <cmath>

#include "plumb/nn/init/init.h"

namespace plumb {
namespace {

struct MatrixDraw {
  const char* name;
  const char* equation;
  const char* citation;
  decltype(&fill_normal) fill;
  double (*size)(const Parameter&, int64_t fan_in, int64_t fan_out);  // the deviation, or the bound
  double (*embedding_factor)(const Parameter&, const ModelDepth&) = nullptr;
};

double root_of(int64_t number) { return std::sqrt(static_cast<double>(number)); }

const MatrixDraw kMatrixDraws[] = {
    {"xavier-normal", "N(0, 2/(fan_in + fan_out))", "Glorot & Bengio 2010", fill_normal,
     [](const Parameter&, int64_t fan_in, int64_t fan_out) { return xavier_deviation(fan_in, fan_out); }},
    {"xavier-uniform", "U(−b, b), b = √(6/(fan_in + fan_out))", "Glorot & Bengio 2010", fill_uniform,
     [](const Parameter&, int64_t fan_in, int64_t fan_out) {
       return std::sqrt(3.0) * xavier_deviation(fan_in, fan_out);
     }},
    {"fairseq",
     "`xavier-uniform`; queries, keys and values divided by √2, as in fairseq and PyTorch's MultiheadAttention",
     "Ott et al. 2019, arXiv 1904.01038", fill_uniform,
     [](const Parameter& parameter, int64_t fan_in, int64_t fan_out) {
       return std::sqrt(parameter.role == Role::stacked_qkv ? 1.5 : 3.0) * xavier_deviation(fan_in, fan_out);
     }},
    {"he", "N(0, 2/fan_in)", "He et al. 2015, arXiv 1502.01852", fill_normal,
     [](const Parameter&, int64_t fan_in, int64_t) { return std::sqrt(2.0 / static_cast<double>(fan_in)); }},
    {"small-init",
     "N(0, 2/(5d)), d the width of the stream that a matrix reads or writes, whatever its own width (the authors' "
     "code: feed-forward matrices as in `xavier-normal`, the same for 4d)",
     "Nguyen & Salazar 2019, arXiv 1910.05895", fill_normal,
     [](const Parameter& parameter, int64_t fan_in, int64_t fan_out) {
       const bool writes = parameter.role == Role::attention_output || parameter.role == Role::feed_forward_output;
       return std::sqrt(2.0 / (5 * static_cast<double>(writes ? fan_out : fan_in)));
     }},
    {"mup",
     "N(0, 1/fan_in); an output matrix apart from the embedding N(0, 1/d²); for learning rates ∝ 1/width, "
     "`train.parametrization = \"mup\"`",
     "Yang et al. 2022, arXiv 2203.03466, table 3", fill_normal,
     [](const Parameter& parameter, int64_t fan_in, int64_t) {
       return 1 / (parameter.role == Role::readout ? static_cast<double>(fan_in) : root_of(fan_in));
     },
     [](const Parameter& parameter, const ModelDepth&) {
       return parameter.name == "output.weight" ? 1 / root_of(parameter.value.size(1)) : 1.0;
     }},
    {"lstm",
     "U(−1/√n, 1/√n), n the rows of a matrix, each gate's counting as one, or the columns of a classifier's output "
     "layer; embeddings and output matrix N(0, 0.1²/3)",
     "Merity et al. 2018, arXiv 1708.02182", fill_uniform,
     [](const Parameter& parameter, int64_t fan_in, int64_t fan_out) {
       return 1 / root_of(parameter.role == Role::readout ? fan_in : fan_out);
     },
     [](const Parameter& parameter, const ModelDepth&) {
       return 0.1 * std::sqrt(static_cast<double>(parameter.value.size(1)) / 3);
     }}};

[[maybe_unused]] const bool kMatrixDrawsRegistered = [] {
  for (const MatrixDraw& kind : kMatrixDraws) {
    const auto fill = [&kind](const Parameter& parameter, const ModelDepth&, Random& random) {
      for_each_matrix(parameter, [&](const Tensor& matrix, int64_t fan_in, int64_t fan_out) {
        kind.fill(matrix, kind.size(parameter, fan_in, fan_out), random);
      });
    };
    initializations().add(kind.name, kind.equation, kind.citation, {fill, kind.embedding_factor});
  }
  return true;
}();

}  // namespace
}  // namespace plumb
