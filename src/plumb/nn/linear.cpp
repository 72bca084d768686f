#include "plumb/nn/linear.h"

#include <numeric>
#include <utility>

#include "plumb/base/error.h"

namespace plumb {

Linear::Linear(Tensor weight, Tensor bias, std::vector<int64_t> parts)
    : weight_(std::move(weight)), bias_(std::move(bias)), rows_(std::move(parts)) {
  if (rows_.empty()) rows_ = {out()};
}

Linear::Linear(Parameters& parameters, const std::string& prefix, int64_t out, int64_t in, Role role, bool biased)
    : weight_(parameters.add(prefix + ".weight", {out, in}, role)), rows_{out} {
  if (biased) bias_ = parameters.add(prefix + ".bias", {out}, Role::bias);
}

void Linear::adapt(Parameters& parameters, const LoraOptions& options, const std::string& matrix,
                   const std::string& name, size_t part) {
  if (!options.adapts(matrix)) return;
  adapters_.resize(rows_.size());
  adapters_.at(part).emplace(parameters, name, in(), rows_.at(part), options);
}

void Linear::divide_outputs(LayerDivision& division) {
  if (!adapters_.empty()) throw Error("a matrix with an adapter cannot be divided among processes");
  division.divide(weight_, 0, rows_);
  if (bias_.defined()) division.divide(bias_, 0, rows_);
  for (int64_t& rows : rows_) rows = division.per_rank(rows);
}

void Linear::divide_inputs(LayerDivision& division) {
  if (!adapters_.empty()) throw Error("a matrix with an adapter cannot be divided among processes");
  division.divide(weight_, 1);
  columns_ = division.group();
}

Tensor Linear::product(const Tensor& x, const Tensor& weight, const Tensor& bias, ops::Activation activation) const {
  if (columns_.size() == 1) return ops::linear(x, weight, bias, activation);
  Tensor y = columns_.reduce_from_region(ops::linear(x, weight, {}));
  if (bias.defined()) y = y + bias;
  return activation == ops::Activation::relu ? at::relu(y) : y;
}

Tensor Linear::operator()(const Tensor& x, ops::Activation activation) const {
  if (adapters_.empty()) return product(x, weight_, bias_, activation);
  const Tensor y = adapted(product(x, weight_, bias_), x, 0, rows_.size());
  return activation == ops::Activation::relu ? at::relu(y) : y;
}

Tensor Linear::parts(const Tensor& x, size_t first, size_t count) const {
  const auto from = rows_.begin() + static_cast<std::ptrdiff_t>(first);
  const int64_t begin = std::accumulate(rows_.begin(), from, int64_t{0});
  const int64_t rows = std::accumulate(from, from + static_cast<std::ptrdiff_t>(count), int64_t{0});
  const Tensor bias = bias_.defined() ? bias_.narrow(0, begin, rows) : Tensor();
  return adapted(product(x, weight_.narrow(0, begin, rows), bias), x, first, count);
}

Tensor Linear::adapted(const Tensor& y, const Tensor& x, size_t first, size_t count) const {
  if (adapters_.empty()) return y;
  std::vector<Tensor> columns;
  int64_t begin = 0;
  for (size_t part = first; part < first + count; ++part) {
    columns.push_back(y.narrow(1, begin, rows_[part]));
    if (const auto& adapter = adapters_[part]) columns.back() = columns.back() + (*adapter)(x);
    begin += rows_[part];
  }
  return count == 1 ? columns.front() : at::cat(columns, 1);
}

}  // namespace plumb
