// Adafactor against algorithms 4 and 5 of its paper (arXiv 1804.04235), with sums where the code has means.
#include <gtest/gtest.h>

#include "trajectory.h"

namespace plumb {
namespace {

using test::Numbers;
using test::Plain;

double rms(const Numbers& x) { return test::length(x) / std::sqrt(static_cast<double>(x.size())); }

struct AdafactorConstants {
  double beta1 = 0, decay = 0.8, clip = 1, smallest = 1e-3;
  bool relative = true;
};

struct AdafactorState {
  Numbers row, column, v, m;
};

/// A step of one matrix, (rows, columns), or of a vector.
void adafactor_step(const AdafactorConstants& given, AdafactorState& state, Numbers& w, const Numbers& g, bool matrix,
                    size_t rows, size_t columns, double rate, double weight_decay, int t) {
  const double beta2 = 1 - std::pow(t, -given.decay), eps = 1e-30;
  Numbers v(g.size());
  if (matrix) {
    state.row.resize(rows);
    state.column.resize(columns);
    Numbers row(rows), column(columns);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns; ++c) {
        const double square = g[r * columns + c] * g[r * columns + c] + eps;
        row[r] += square;
        column[c] += square;
      }
    }
    double total = 0;
    for (size_t r = 0; r < rows; ++r) state.row[r] = beta2 * state.row[r] + (1 - beta2) * row[r];
    for (size_t c = 0; c < columns; ++c) state.column[c] = beta2 * state.column[c] + (1 - beta2) * column[c];
    for (const double sum : state.row) total += sum;
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) v[r * columns + c] = state.row[r] * state.column[c] / total;
  } else {
    state.v.resize(g.size());
    for (size_t j = 0; j < g.size(); ++j) state.v[j] = beta2 * state.v[j] + (1 - beta2) * (g[j] * g[j] + eps);
    v = state.v;
  }
  Numbers u(g.size());
  for (size_t j = 0; j < g.size(); ++j) u[j] = g[j] / std::sqrt(v[j]);
  const double divisor = std::max(1.0, rms(u) / given.clip);
  state.m.resize(g.size());
  for (size_t j = 0; j < g.size(); ++j) state.m[j] = given.beta1 * state.m[j] + (1 - given.beta1) * u[j] / divisor;
  const double scale = given.relative ? std::max(given.smallest, rms(w)) : 1;
  for (size_t j = 0; j < g.size(); ++j) w[j] -= rate * (scale * state.m[j] + weight_decay * w[j]);
}

/// The two matrices stacked in "qkv" take separate steps.
test::PlainStep adafactor(const AdafactorConstants& given) {
  auto states = std::make_shared<std::vector<std::vector<AdafactorState>>>(4);
  return [=](size_t i, Plain& p, const Numbers& g, double rate, double weight_decay, int t) {
    std::vector<AdafactorState>& parts = (*states)[i];
    parts.resize(p.name == "qkv" ? 2 : 1);
    const size_t size = g.size() / parts.size();
    for (size_t k = 0; k < parts.size(); ++k) {
      const auto begin = static_cast<std::ptrdiff_t>(k * size), end = begin + static_cast<std::ptrdiff_t>(size);
      Numbers w(p.w.begin() + begin, p.w.begin() + end);
      adafactor_step(given, parts[k], w, Numbers(g.begin() + begin, g.begin() + end), p.matrix,
                     static_cast<size_t>(p.rows) / parts.size(), static_cast<size_t>(p.columns), rate, weight_decay, t);
      std::copy(w.begin(), w.end(), p.w.begin() + begin);
    }
  };
}

TEST(Adafactor, FollowsItsPaper) {
  test::expect_steps("adafactor", "", adafactor({}));
  test::expect_steps("adafactor", "[train.adafactor]\nbeta1 = 0.9\ndecay = 0.5\nclip = 0.6\nsmallest_scale = 0.95\n",
                     adafactor({.beta1 = 0.9, .decay = 0.5, .clip = 0.6, .smallest = 0.95}));
  test::expect_steps("adafactor", "[train.adafactor]\nrelative = false\n", adafactor({.relative = false}));
}

// Query, key and value in one parameter take the steps that they would take as three.
TEST(Adafactor, TreatsStackedMatricesApart) {
  for (const char* toml : {"", "[train.adafactor]\nbeta1 = 0.9\n"}) {
    Parameters stacked(at::kDouble), apart(at::kDouble);
    stacked.add_stacked("qkv", {7, 4}, {4, 2, 1}, Role::stacked_qkv);
    for (const int64_t rows : {4, 2, 1}) apart.add(fmt::format("m{}", rows), {rows, 4}, Role::weight);
    stacked.allocate();
    apart.allocate();
    const Tensor start = at::sin(at::arange(28, at::kDouble)) * at::arange(1, 29, at::kDouble);
    stacked.flat().copy_(start);
    apart.flat().copy_(start);
    const auto together = make_optimizer("adafactor", stacked, test::options(toml));
    const auto each = make_optimizer("adafactor", apart, test::options(toml));
    for (int t = 1; t <= 4; ++t) {
      const Tensor gradient = at::cos(at::arange(28, at::kDouble) * (t + 0.3)) * at::arange(1, 29, at::kDouble);
      together->step(stacked.split(gradient), 0.01);
      each->step(apart.split(gradient), 0.01);
      EXPECT_LT((stacked.flat() - apart.flat()).abs().max().item<double>(), 1e-13) << t;
    }
    // A resumed run continues with the same means.
    const auto resumed = make_optimizer("adafactor", stacked, test::options(toml));
    resumed->load_state(together->state(), "test");
    const Tensor gradient = at::cos(at::arange(28, at::kDouble));
    resumed->step(stacked.split(gradient), 0.01);
    each->step(apart.split(gradient), 0.01);
    EXPECT_LT((stacked.flat() - apart.flat()).abs().max().item<double>(), 1e-13);
  }
}

TEST(Adafactor, StoresRowsAndColumns) {
  Parameters parameters(at::kFloat);
  parameters.add("matrix", {30, 50}, Role::weight);
  parameters.add("bias", {50}, Role::bias);
  parameters.add("convolution", {6, 2, 3}, Role::weight);
  parameters.allocate();
  std::vector<std::string> found;
  for (const auto& [name, tensor] : make_optimizer("adafactor", parameters)->state())
    found.push_back(fmt::format("{} {}", name, tensor.numel()));
  EXPECT_EQ(found, (std::vector<std::string>{"step 3", "row.matrix 30", "column.matrix 50", "v.bias 50",
                                             "row.convolution 12", "column.convolution 18"}));
}

}  // namespace
}  // namespace plumb
