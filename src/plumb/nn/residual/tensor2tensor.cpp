#include "plumb/nn/residual/tensor2tensor.h"

#include <fmt/format.h>

#include <map>

#include "plumb/base/error.h"
#include "plumb/nn/residual/highway.h"
#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {
namespace {

constexpr const char* kPreprocess = "dnr";
constexpr const char* kPostprocess = "dnrazh";

/// One letter for one sub-layer, with its own parameters.
struct Operation {
  char letter;
  std::unique_ptr<Norm> norm;            // n, r
  Tensor gamma;                          // z: (1)
  std::unique_ptr<HighwayGate> highway;  // h
};
using Operations = std::vector<Operation>;

bool normalizes(const std::string& letters) { return letters.find_first_of("nr") != std::string::npos; }

/// The operations of a string. Their parameters are named PREFIX + norm_name + SUFFIX and so on.
Operations make_operations(const std::string& letters, const std::string& prefix, const std::string& norm_name,
                           const std::string& suffix, Parameters& parameters, const StackShape& shape) {
  Operations operations;
  std::map<char, int> seen;
  for (const char letter : letters) {
    const char kind = letter == 'r' ? 'n' : letter;  // both are named norms
    const int repetition = ++seen[kind];
    const auto name = [&](const std::string& what) {
      return fmt::format("{}{}{}{}", prefix, what, suffix, repetition > 1 ? fmt::format("_{}", repetition) : "");
    };
    Operation operation{letter, nullptr, {}, nullptr};
    if (kind == 'n') {
      const NormFactory& make = norms().at(letter == 'r' ? "rmsnorm" : shape.norm).make;
      operation.norm = make(parameters, name(norm_name), shape.d_model, shape.norm_eps);
    } else if (letter == 'z') {
      operation.gamma = parameters.add_constant(name("zero_add") + ".gamma", {1}, 0);
    } else if (letter == 'h') {
      operation.highway = std::make_unique<HighwayGate>(parameters, name("highway"), shape.d_model, 0);
    }
    operations.push_back(std::move(operation));
  }
  return operations;
}

class Tensor2TensorScheme final : public ResidualScheme {
 public:
  Tensor2TensorScheme(const std::string& preprocess, const std::string& postprocess, Parameters& parameters,
                      const StackShape& shape)
      : shape_(shape) {
    const std::string post_norm = normalizes(preprocess) ? "post_norm" : "norm";
    for_each_sub_layer(shape, [&](int64_t layer, int64_t position) {
      const std::string prefix = layer_prefix(shape, layer), number = std::to_string(position + 1);
      preprocess_.push_back(make_operations(preprocess, prefix, "norm", number, parameters, shape));
      postprocess_.push_back(make_operations(postprocess, prefix, post_norm, number, parameters, shape));
    });
    final_ = make_operations(preprocess, to_string(shape.stack) + ".", "norm", "", parameters, shape);
  }

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const auto index = static_cast<size_t>(index_of(f, shape_));
    const Tensor y = watched_forward(f, preprocessed(preprocess_[index], stream.x, context), context);
    stream.x = postprocessed(postprocess_[index], stream.x, y, f, context);
    context.show({f.id, Point::stream}, stream.x);
  }

  Tensor leave(const Stream& stream, ForwardContext& context) const override {
    return preprocessed(final_, stream.x, context);
  }

 private:
  static Tensor preprocessed(const Operations& operations, Tensor x, ForwardContext& context) {
    for (const Operation& operation : operations) {
      x = operation.letter == 'd' ? context.dropout(x) : (*operation.norm)(x, context);
    }
    return x;
  }

  static Tensor postprocessed(const Operations& operations, const Tensor& x, Tensor y, const SubLayer& f,
                              ForwardContext& context) {
    for (size_t i = 0; i < operations.size(); ++i) {
      const Operation& operation = operations[i];
      bool joined = true;
      switch (operation.letter) {
        case 'a':
          y = x + y;
          break;
        case 'z':
          y = x + operation.gamma * y;
          break;
        case 'h':
          y = (*operation.highway)(x, y);
          break;
        case 'd':
          joined = i + 1 < operations.size() && operations[i + 1].letter == 'a';
          y = joined ? context.add_dropout(x, y) : context.dropout(y);  // "da" in one pass
          if (joined) ++i;
          break;
        default:
          joined = false;
          y = (*operation.norm)(y, context);
      }
      if (joined) context.show({f.id, Point::sum}, y);
    }
    return y;
  }

  StackShape shape_;
  std::vector<Operations> preprocess_;   // [sub-layer]
  std::vector<Operations> postprocess_;  // [sub-layer]
  Operations final_;
};

void check(const std::string& letters, const std::string& allowed, const char* which) {
  const size_t bad = letters.find_first_not_of(allowed);
  if (bad == std::string::npos) return;
  throw Error(fmt::format("residual scheme: '{}' is not a letter of {}", letters[bad], which),
              fmt::format("{} may contain the letters {}", which, allowed));
}

}  // namespace

std::unique_ptr<ResidualScheme> make_tensor2tensor_scheme(const std::string& preprocess, const std::string& postprocess,
                                                          Parameters& parameters, const StackShape& shape) {
  check(preprocess, kPreprocess, "preprocess");
  check(postprocess, kPostprocess, "postprocess");
  return std::make_unique<Tensor2TensorScheme>(preprocess, postprocess, parameters, shape);
}

}  // namespace plumb
