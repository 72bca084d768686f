// Compares optimizers with their formulas, element by element in double precision; properties common to all.
#include "plumb/optim/optimizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <type_traits>

#include "options.h"
#include "plumb/base/key_list.h"
#include "plumb/optim/cautious.h"
#include "plumb/optim/schedule.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

using test::options;

// Three parameters; the middle one is longer than a thread's smallest range, so that pieces begin within it.
constexpr int64_t kShapes[3][2] = {{3, 5}, {301, 211}, {1, 7}};

Parameters make_parameters(at::ScalarType type) {
  Parameters parameters(type);
  for (int i = 0; i < 3; ++i) {
    // The last is not one of Muon's matrices.
    parameters.add(fmt::format("p{}", i), {kShapes[i][0], kShapes[i][1]}, i < 2 ? Role::weight : Role::embedding);
  }
  parameters.allocate();
  parameters.flat().copy_(testing::random_tensor({parameters.count()}, 7));
  return parameters;
}

std::vector<Tensor> make_gradients(const Parameters& parameters, uint64_t seed) {
  std::vector<Tensor> gradients;
  for (const auto& shape : kShapes) {
    // Transposed in memory: optimizers must address elements by index, not by memory layout.
    gradients.push_back(testing::random_tensor({shape[1], shape[0]}, seed++).t().to(parameters.type()));
  }
  return gradients;
}

std::vector<double> doubles(const Tensor& tensor) {
  const Tensor flat = tensor.detach().to(at::kDouble).contiguous().view({-1});
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
}

/// One learning rate, decay and frozen state per parameter.
std::vector<ParameterStep> settings_of(int t) {
  return {{.learning_rate = 0.1 / t, .weight_decay = 0.01},
          {.learning_rate = 0.05 / t, .weight_decay = 0},
          {.learning_rate = 0.2 / t, .weight_decay = 0.3}};
}

/// Updates one element: w from its gradient, with two numbers of optimizer state, at step t.
using Formula = std::function<void(double& w, double g, double& m, double& v, int t, double rate, double weight_decay)>;

class Optimizers : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  [[nodiscard]] double tolerance() const { return GetParam() == at::kDouble ? 1e-12 : 2e-5; }

  /// Compares steps of an optimizer with the formula.
  void expect_formula(const std::string& name, const VariantOptions& given, const Formula& formula,
                      int steps = 4) const {
    const Parameters parameters = make_parameters(GetParam());
    const auto optimizer = make_optimizer(name, parameters, given);
    std::vector<double> w = doubles(parameters.flat()), m(w.size()), v(w.size());
    for (int t = 1; t <= steps; ++t) {
      const std::vector<ParameterStep> settings = settings_of(t);
      const double scale = t == 2 ? 0.25 : 1.0;
      const auto gradients = make_gradients(parameters, 100 * static_cast<uint64_t>(t));
      optimizer->step(gradients, settings, scale);
      size_t i = 0;
      for (size_t k = 0; k < gradients.size(); ++k) {
        for (const double g : doubles(gradients[k])) {
          formula(w[i], scale * g, m[i], v[i], t, settings[k].learning_rate, settings[k].weight_decay);
          ++i;
        }
      }
      expect_near(doubles(parameters.flat()), w, tolerance());
    }
  }
};

Formula adam_formula(double beta1, double beta2, double eps) {
  return [=](double& w, double g, double& m, double& v, int t, double rate, double weight_decay) {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double mean = m / (1 - std::pow(beta1, t)), square = v / (1 - std::pow(beta2, t));
    w -= rate * (mean / (std::sqrt(square) + eps) + weight_decay * w);
  };
}

TEST_P(Optimizers, AdamFollowsItsFormula) {
  expect_formula("adam", options("[train.adam]\nbeta1 = 0.8\nbeta2 = 0.95\neps = 1e-6"), adam_formula(0.8, 0.95, 1e-6));
  expect_formula("adam", {}, adam_formula(0.9, 0.98, 1e-9));
}

TEST_P(Optimizers, AdamWFollowsItsFormula) {
  expect_formula("adamw", options("[train.adamw]\nbeta1 = 0.7"), adam_formula(0.7, 0.999, 1e-8));
}

TEST_P(Optimizers, RAdamFollowsItsFormula) {
  const auto formula = [](double beta1, double beta2, double eps) {
    return [=](double& w, double g, double& m, double& v, int t, double rate, double weight_decay) {
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      const double limit = 2 / (1 - beta2) - 1;
      const double rho = limit - 2 * t * std::pow(beta2, t) / (1 - std::pow(beta2, t));
      double direction = m / (1 - std::pow(beta1, t));
      if (rho > 5) {
        const double r = std::sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho));
        direction *= r * std::sqrt(1 - std::pow(beta2, t)) / (std::sqrt(v) + eps);
      }
      w -= rate * (direction + weight_decay * w);
    };
  };
  // ρ_t passes 5 at step 6.
  expect_formula("radam", {}, formula(0.9, 0.999, 1e-8), 9);
  expect_formula("radam", options("[train.radam]\nbeta1 = 0.8\nbeta2 = 0.95\neps = 1e-3"), formula(0.8, 0.95, 1e-3), 9);
}

TEST_P(Optimizers, SgdFollowsItsFormula) {
  const auto formula = [](double momentum, bool nesterov) {
    return [=](double& w, double g, double& b, double&, int, double rate, double weight_decay) {
      const double d = g + weight_decay * w;
      b = momentum * b + d;
      w -= rate * (nesterov ? d + momentum * b : b);
    };
  };
  expect_formula("sgd", {}, formula(0.9, false));
  expect_formula("sgd", options("[train.sgd]\nmomentum = 0.7"), formula(0.7, false));
  expect_formula("sgd", options("[train.sgd]\nmomentum = 0.7\nnesterov = true"), formula(0.7, true));
}

TEST_P(Optimizers, LionFollowsItsFormula) {
  const auto formula = [](double beta1, double beta2) {
    return [=](double& w, double g, double& m, double&, int, double rate, double weight_decay) {
      const double blend = beta1 * m + (1 - beta1) * g;
      w -= rate * ((blend > 0 ? 1.0 : -1.0) + weight_decay * w);
      m = beta2 * m + (1 - beta2) * g;
    };
  };
  expect_formula("lion", {}, formula(0.9, 0.99));
  expect_formula("lion", options("[train.lion]\nbeta1 = 0.5\nbeta2 = 0.8"), formula(0.5, 0.8));
}

/// The optimizer of this name; "cautious NAME" is its cautious version.
std::unique_ptr<Optimizer> make_named(const std::string& name, const Parameters& parameters) {
  constexpr std::string_view kCautious = "cautious ";
  if (!name.starts_with(kCautious)) return make_optimizer(name, parameters);
  return make_cautious(make_optimizer(name.substr(kCautious.size()), parameters), parameters);
}

/// All optimizers, and the cautious versions of those that do not average.
std::vector<std::string> all_names() {
  std::vector<std::string> names = optimizers().names();
  for (const std::string& name : optimizers().names()) {
    if (name != "nt-asgd" && name != "schedule-free-adamw") names.push_back("cautious " + name);
  }
  return names;
}

TEST_P(Optimizers, GoOnFromTheirStateBitForBit) {
  for (const std::string& name : all_names()) {
    const Parameters whole = make_parameters(GetParam()), halves = make_parameters(GetParam());
    const auto uninterrupted = make_named(name, whole);
    auto interrupted = make_named(name, halves);
    for (uint64_t t = 1; t <= 6; ++t) {
      if (t == 4) {
        const NamedTensors state = interrupted->state();
        interrupted = make_named(name, halves);
        interrupted->load_state(state, "state");
      }
      std::vector<ParameterStep> settings = settings_of(static_cast<int>(t));
      settings[0].frozen = t < 3;
      settings[1].frozen = t < 5;
      uninterrupted->step(make_gradients(whole, t), settings);
      interrupted->step(make_gradients(halves, t), settings);
    }
    EXPECT_TRUE(at::equal(whole.flat(), halves.flat())) << name;
    const NamedTensors one = uninterrupted->state(), other = interrupted->state();
    ASSERT_EQ(one.size(), other.size());
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].first, other[i].first);
      EXPECT_TRUE(at::equal(one[i].second, other[i].second)) << name << ": " << one[i].first;
    }
  }
}

TEST_P(Optimizers, LeaveAFrozenParameterAndItsStateAlone) {
  for (const std::string& name : all_names()) {
    const Parameters parameters = make_parameters(GetParam()), late = make_parameters(GetParam());
    const auto optimizer = make_named(name, parameters), late_one = make_named(name, late);
    const auto remembered = [&](const Optimizer& of) {
      std::vector<Tensor> tensors;
      for (const auto& [key, tensor] : of.state()) {
        if (key.ends_with(".p1")) tensors.push_back(tensor.clone());
      }
      return tensors;
    };
    const Tensor before = parameters.at("p1").value.detach().clone();
    const std::vector<Tensor> nothing = remembered(*optimizer);
    ASSERT_FALSE(nothing.empty()) << name;
    for (uint64_t t = 1; t <= 5; ++t) {
      std::vector<ParameterStep> settings = settings_of(2);
      settings[1].frozen = t <= 3;
      optimizer->step(make_gradients(parameters, t), settings);
      if (t <= 3) {
        EXPECT_TRUE(at::equal(parameters.at("p1").value, before)) << name;
        for (size_t i = 0; i < nothing.size(); ++i) EXPECT_TRUE(at::equal(remembered(*optimizer)[i], nothing[i]));
      } else {
        late_one->step(make_gradients(late, t), settings);
      }
    }
    // Once unfrozen, it moves like a parameter of a new optimizer.
    EXPECT_FALSE(at::equal(parameters.at("p1").value, before)) << name;
    expect_near(doubles(parameters.at("p1").value), doubles(late.at("p1").value), tolerance());
    EXPECT_FALSE(at::equal(parameters.at("p0").value, late.at("p0").value)) << name;
  }
}

TEST_P(Optimizers, LowerAQuadratic) {
  for (const std::string& name : optimizers().names()) {
    Parameters parameters(GetParam());
    parameters.add("matrix", {4, 6}, Role::weight);
    parameters.add("bias", {6}, Role::bias);
    parameters.allocate();
    const Tensor wanted = testing::random_tensor({parameters.count()}, 3).to(GetParam());
    const auto loss = [&] { return (parameters.flat() - wanted).square().sum().item<double>() / 2; };
    const double before = loss();
    const auto optimizer = make_optimizer(name, parameters);
    // Adafactor's learning rate is relative to the size of the weights, which are 0 at first.
    const double rate = name == "adafactor" ? 0.1 : 0.02;
    for (int t = 0; t < 300; ++t) optimizer->step(parameters.split(parameters.flat() - wanted), rate);
    EXPECT_LT(loss(), 0.3 * before) << name;
  }
}

TEST_P(Optimizers, PassOnANaN) {
  for (const std::string& name : all_names()) {
    for (size_t which = 0; which < 3; ++which) {
      SCOPED_TRACE(fmt::format("{}, parameter {}", name, which));
      const Parameters parameters = make_parameters(GetParam());
      const auto optimizer = make_named(name, parameters);
      std::vector<Tensor> gradients = make_gradients(parameters, 1);
      const std::vector<ParameterStep> settings = settings_of(1);
      optimizer->step(gradients, settings, 1.0);  // so that the state is not empty
      const int64_t last = kShapes[which][1] - 1;
      gradients[which][0][last] = std::numeric_limits<double>::quiet_NaN();
      optimizer->step(gradients, settings, 1.0);
      EXPECT_TRUE(std::isnan(parameters.values()[which][0][last].item<double>()));
    }
  }
}

// From weights twice as large, the same gradients move the weights twice as far, or no farther.
TEST_P(Optimizers, SayWhetherStepsScaleByTheWeights) {
  for (const std::string& name : all_names()) {
    const auto moved = [&](double scale) {
      const Parameters parameters = make_parameters(GetParam());
      parameters.flat().mul_(scale);
      const Tensor before = parameters.flat().clone();
      const auto optimizer = make_named(name, parameters);
      // Two steps, since SOAP only prepares its state in the first.
      for (uint64_t t = 0; t < 2; ++t) optimizer->step(make_gradients(parameters, 1), 1e-3);
      return std::pair((parameters.flat() - before).norm().item<double>(), optimizer->scales_by_weights());
    };
    const auto [once, scales] = moved(1);
    EXPECT_NEAR(moved(2).first / once, scales ? 2 : 1, GetParam() == at::kFloat ? 0.1 : 1e-3) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Optimizers, ::testing::Values(at::kFloat, at::kDouble),
                         [](const auto& info) { return std::string(at::toString(info.param)); });

/// The fraction of the decay lr·weight_decay·w = `decay`·w that reaches the weights in float32, summed over all steps
/// and weights, relative to float64. It compares two runs with the same gradients, one of them without decay.
double decay_that_arrives(const std::string& name, double decay, int64_t side, int steps) {
  std::vector<double> lost;
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    std::vector<Tensor> found;
    for (const double wanted : {0.0, decay}) {
      Parameters parameters(type);
      parameters.add("w", {side, side}, Role::weight);
      parameters.allocate();
      parameters.flat().copy_(testing::random_tensor({side * side}, 5, 0.1).add_(0.7).clamp_(0.5, 1));
      const auto optimizer = make_optimizer(name, parameters);
      for (int t = 0; t < steps; ++t) {
        const uint64_t seed = 6 + static_cast<uint64_t>(t);
        const std::vector<Tensor> gradients = {testing::random_tensor({side, side}, seed).to(type)};
        const double rate = 1e-3 * (1 + 0.1 * std::sin(t));  // as with a schedule, no two steps are equal
        optimizer->step(gradients, std::vector<ParameterStep>{{.learning_rate = rate, .weight_decay = wanted / rate}});
      }
      found.push_back(parameters.flat().to(at::kDouble));
    }
    lost.push_back((found[0] - found[1]).sum().item<double>());
  }
  return lost[0] / lost[1];
}

/// A factor 1 − lr·weight_decay on w would round to 1 − 5.96e-8 for 5e-8 and 3e-8, and to 1 for 1e-9. Within the
/// update, the decay is a fraction of the spacing of two numbers, and moves the same fraction of the weights.
TEST(WeightDecay, IsExactInFloat32FarBelowItsRounding) {
  for (const double decay : {5e-8, 3e-8, 1e-9}) {
    SCOPED_TRACE(decay);
    const double tolerance = decay > 1e-8 ? 0.05 : 0.15;
    EXPECT_NEAR(decay_that_arrives("adam", decay, 300, 40), 1, tolerance);
    EXPECT_NEAR(decay_that_arrives("adamw", decay, 300, 40), 1, tolerance);
    EXPECT_NEAR(decay_that_arrives("muon", decay, 100, 40), 1, 2 * tolerance);
    // All of Lion's steps have the same size: the rounding error differs only between steps.
    if (decay > 1e-8) {
      EXPECT_NEAR(decay_that_arrives("lion", decay, 30, 1500), 1, 3 * tolerance);
    }
  }
}

TEST(OptimizerState, NamesWhatIsMissing) {
  const Parameters parameters = make_parameters(at::kFloat);
  const auto adam = make_optimizer("adam", parameters);
  NamedTensors state = adam->state();
  EXPECT_EQ(state.size(), 7U);  // the step counts, and m and v of three parameters
  std::erase_if(state, [](const auto& entry) { return entry.first == "v.p1"; });
  EXPECT_EQ(test::message_of([&] { adam->load_state(state, "optimizer.safetensors"); }),
            "optimizer.safetensors: tensor 'v.p1' is missing");
}

TEST(OptimizerState, HasNamesAndShapesThatDoNotDependOnTheStep) {
  for (const std::string& name : optimizers().names()) {
    const Parameters parameters = make_parameters(at::kFloat);
    const auto optimizer = make_optimizer(name, parameters);
    const NamedTensors before = optimizer->state();
    std::vector<ParameterStep> settings = settings_of(1);
    settings[0].frozen = true;
    optimizer->step(make_gradients(parameters, 1), settings);
    const NamedTensors after = optimizer->state();
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].first, after[i].first);
      EXPECT_EQ(before[i].second.sizes(), after[i].second.sizes());
    }
  }
}

TEST(OptimizerState, SaysWhichParametersATensorBelongsTo) {
  for (const std::string& name : all_names()) {
    const Parameters parameters = make_parameters(at::kFloat);
    std::set<size_t> owners;
    for (const StateTensor& tensor : make_named(name, parameters)->state_tensors()) {
      EXPECT_FALSE(tensor.parameter && tensor.entries) << name;
      if (tensor.parameter) {
        owners.insert(*tensor.parameter);
        EXPECT_TRUE(name_of(tensor, parameters).ends_with("." + parameters.all()[*tensor.parameter].name)) << name;
      }
      if (tensor.entries) {
        EXPECT_EQ(tensor.value.dim(), 1) << name << " " << tensor.kind;
        EXPECT_EQ(tensor.value.numel(), std::ssize(*tensor.entries)) << name << " " << tensor.kind;
        EXPECT_TRUE(std::is_sorted(tensor.entries->begin(), tensor.entries->end())) << name << " " << tensor.kind;
      }
    }
    EXPECT_EQ(owners.size(), parameters.all().size()) << name;
  }
}

TEST(OptimizerState, OfAdamMayHaveOneNumberOfSteps) {
  // A file may have one number for all parameters.
  const Parameters parameters = make_parameters(at::kDouble), other = make_parameters(at::kDouble);
  const auto adam = make_optimizer("adam", parameters), continued = make_optimizer("adam", other);
  adam->step(make_gradients(parameters, 1), 0.1);
  adam->step(make_gradients(parameters, 2), 0.1);
  NamedTensors state = adam->state();
  ASSERT_EQ(state[0].first, "step");
  EXPECT_TRUE(at::equal(state[0].second, at::full({3}, 2, at::kLong)));
  state[0].second = at::full({1}, 2, at::kLong);
  other.flat().copy_(parameters.flat());
  continued->load_state(state, "old");
  adam->step(make_gradients(parameters, 3), 0.1);
  continued->step(make_gradients(other, 3), 0.1);
  EXPECT_TRUE(at::equal(parameters.flat(), other.flat()));
  state[0].second = at::full({2}, 2, at::kLong);
  EXPECT_EQ(test::message_of([&] { continued->load_state(state, "old"); }), "old: tensor 'step' has 2 elements, not 3");
}

/// Sets number `index` among the options of a variant, counted from 0 and also in their sections, to `value`.
class SetNumber final : public EachField<SetNumber> {
 public:
  SetNumber(int index, double value) : index_(index), value_(value) {}
  [[nodiscard]] const std::string& key() const { return key_; }

  template <typename T>
  void take(std::string_view key, T& number) {
    if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
      if (count_++ != index_) return;
      number = static_cast<T>(value_);
      key_ = key;
    }
  }
  void section(std::string_view, const std::function<void(Fields&)>& visit, bool) override { visit(*this); }
  void sections(std::string_view, size_t, const std::function<void(size_t)>&,
                const std::function<void(size_t, Fields&)>&) override {}

 private:
  int index_;
  double value_;
  int count_ = 0;
  std::string key_;
};

TEST(OptimizerOptions, OutOfRangeAreErrorsThatNameTheKey) {
  const Parameters parameters = make_parameters(at::kFloat);
  const auto refused = [&](const std::string& name, const std::string& toml) {
    return test::message_of([&] { make_optimizer(name, parameters, options("[train." + name + "]\n" + toml)); });
  };
  EXPECT_EQ(refused("adam", "beta1 = 1.0"), "test:2:9: train.adam.beta1 = 1 must lie in [0, 1)");
  EXPECT_EQ(refused("adamw", "beta2 = -0.5"), "test:2:9: train.adamw.beta2 = -0.5 must lie in [0, 1)");
  for (const std::string eps : {"-1.0", "0.0", "1e-50"})  // 1e-50 is 0 in float32
    EXPECT_TRUE(refused("adam", "eps = " + eps).starts_with("test:2:7: train.adam.eps = "));
  EXPECT_EQ(refused("sgd", "momentum = 1.5"), "test:2:12: train.sgd.momentum = 1.5 must lie in [0, 1)");
  EXPECT_EQ(refused("lion", "beta2 = 2.0"), "test:2:9: train.lion.beta2 = 2 must lie in [0, 1)");
  EXPECT_EQ(refused("adafactor", "clip = 0.0"), "test:2:8: train.adafactor.clip = 0 must be above 0");
  EXPECT_EQ(refused("adafactor", "decay = -0.8"), "test:2:9: train.adafactor.decay = -0.8 must be at least 0");
  EXPECT_EQ(refused("lamb", "beta2 = 1.0"), "test:2:9: train.lamb.beta2 = 1 must lie in [0, 1)");
  EXPECT_EQ(refused("soap", "every = 0"), "test:2:9: train.soap.every = 0 must be at least 1");
  EXPECT_EQ(refused("soap", "beta1 = 1.0"), "test:2:9: train.soap.beta1 = 1 must lie in [0, 1)");
  EXPECT_EQ(refused("muon", "iterations = 0"), "test:2:14: train.muon.iterations = 0 must lie in [1, 1,000]");
  EXPECT_EQ(refused("muon", "adam.beta1 = 3.0"), "test:2:14: train.muon.adam.beta1 = 3 must lie in [0, 1)");
  EXPECT_EQ(refused("muon", "scale = \"moon\""),
            "test:2:9: train.muon.scale = \"moon\" must be \"jordan\" or \"moonlight\"");
}

TEST(OptimizerOptions, SetByAProgramAreCheckedIfTheirOptimizerIsMade) {
  const Parameters parameters = make_parameters(at::kFloat);
  Options lion = optimizers().at("lion").options;
  SetNumber second(1, 2.0);
  lion.visit(second);
  EXPECT_EQ(test::message_of([&] {
              make_optimizer("lion", parameters, {{"lion", lion}});
            }),
            "train.lion.beta2 = 2 must lie in [0, 1)");
  EXPECT_EQ(test::message_of([&] { make_optimizer("adam", parameters, {{"lion", lion}}); }), "accepted");
}

// A row of an embedding that no example uses has a gradient of 0.
TEST(OptimizerOptions, WhateverIsAcceptedKeepsParametersWithoutGradientsFinite) {
  for (const auto& [name, entry] : optimizers().entries()) {
    for (const double value : {0.0, 1e-38, 1e-30, 1e-8}) {
      for (int index = 0;; ++index) {
        Options changed = entry.options;
        SetNumber number(index, value);
        changed.visit(number);
        if (number.key().empty()) break;
        const Parameters parameters = make_parameters(at::kFloat);
        std::unique_ptr<Optimizer> optimizer;
        if (test::message_of([&] { optimizer = make_optimizer(name, parameters, {{name, changed}}); }) != "accepted")
          continue;
        for (uint64_t step = 1; step <= 3; ++step) {
          std::vector<Tensor> gradients = make_gradients(parameters, step);
          for (Tensor& gradient : gradients) gradient.slice(0, 0, 1).zero_();
          if (step != 2) gradients[1].zero_();
          optimizer->step(gradients, 1e-3);
        }
        EXPECT_TRUE(at::isfinite(parameters.flat()).all().item<bool>())
            << "train." << name << '.' << number.key() << " = " << value;
      }
    }
  }
}

TEST(OptimizerOptions, HaveMeanings) {
  const auto expect_meanings = [](const auto& registry) {
    for (const auto& [name, entry] : registry.entries()) {
      KeyList list;
      Options(entry.options).visit(list);
      for (const KeyList::Key& key : list.keys()) EXPECT_FALSE(key.meaning.empty()) << name << ": " << key.name;
    }
  };
  expect_meanings(optimizers());
  expect_meanings(schedule_factors());
}

TEST(OptimizerOptions, HaveSectionsOfTheirOwn) {
  // Optimizers and schedule factors share [train.NAME].
  for (const std::string& name : optimizers().names()) EXPECT_FALSE(schedule_factors().entries().contains(name));
}

TEST(OptimizerStep, RefusesWhatBelongsToAnotherModel) {
  const Parameters parameters = make_parameters(at::kFloat);
  const auto sgd = make_optimizer("sgd", parameters);
  std::vector<Tensor> gradients = make_gradients(parameters, 1);
  EXPECT_NE(test::message_of([&] { sgd->step(gradients, std::vector<ParameterStep>(2)); }), "accepted");
  gradients[1] = gradients[1].t();
  EXPECT_EQ(test::message_of([&] { sgd->step(gradients, 0.1); }), "the gradient of 'p1' has the wrong shape");
  gradients.pop_back();
  EXPECT_NE(test::message_of([&] { sgd->step(gradients, 0.1); }), "accepted");
}

}  // namespace
}  // namespace plumb
