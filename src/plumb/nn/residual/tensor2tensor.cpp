#include "plumb/nn/residual/tensor2tensor.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/nn/linear.h"
#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {
namespace {

constexpr const char* kPreprocess = "dnr";
constexpr const char* kPostprocess = "dnrazh";

/// One letter for one sub-layer, with its own parameters.
struct Operation {
  char letter;
  std::unique_ptr<Norm> norm{};  // n, r
  Tensor gamma{};                // z: (1)
  Linear gate{};                 // h: W, (d_model, d_model), and b
};
using Operations = std::vector<Operation>;

bool normalizes(const std::string& letters) { return letters.find_first_of("nr") != std::string::npos; }

/// The operations of a string. Their parameters are named PREFIX + norm_name + SUFFIX and so on.
Operations make_operations(const std::string& letters, const std::string& prefix, const std::string& norm_name,
                           const std::string& suffix, double gate_bias, Parameters& parameters,
                           const StackShape& shape) {
  Operations operations;
  std::map<char, int> seen;
  for (const char letter : letters) {
    const char kind = letter == 'r' ? 'n' : letter;  // both are named norms
    const int repetition = ++seen[kind];
    const auto name = [&](const std::string& what) {
      return fmt::format("{}{}{}{}", prefix, what, suffix, repetition > 1 ? fmt::format("_{}", repetition) : "");
    };
    Operation operation{letter};
    if (kind == 'n') {
      const NormFactory& make = norms().at(letter == 'r' ? "rmsnorm" : shape.norm).make;
      operation.norm = make(parameters, name(norm_name), shape.d_model, shape.norm_eps);
    } else if (letter == 'z') {
      operation.gamma = parameters.add_constant(name("zero_add") + ".gamma", {1}, 0);
    } else if (letter == 'h') {
      const Tensor weight = parameters.add(name("highway") + ".weight", {shape.d_model, shape.d_model}, Role::weight);
      operation.gate = Linear(weight, parameters.add_constant(name("highway") + ".bias", {shape.d_model}, gate_bias));
    }
    operations.push_back(std::move(operation));
  }
  return operations;
}

class Tensor2TensorScheme final : public ResidualScheme {
 public:
  Tensor2TensorScheme(const std::string& last, const ProcessingOf& processing_of, Parameters& parameters,
                      const StackShape& shape)
      : shape_(shape) {
    for_each_sub_layer(shape, [&](int64_t layer, int64_t position) {
      const SubLayerProcessing processing = processing_of(shape, layer, position);
      const std::string prefix = layer_prefix(shape, layer), number = std::to_string(position + 1);
      const auto operations = [&](const std::string& letters, const char* norm) {
        return make_operations(letters, prefix, norm, number, processing.gate_bias, parameters, shape);
      };
      SubLayerOperations& own = sub_layers_.emplace_back();
      own.preprocess = operations(processing.preprocess, "norm");
      own.postprocess = operations(processing.postprocess, normalizes(processing.preprocess) ? "post_norm" : "norm");
      own.processing = processing;
    });
    last_ = make_operations(last, to_string(shape.stack) + ".", "norm", "", 0, parameters, shape);
  }

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const SubLayerOperations& own = sub_layers_[static_cast<size_t>(index_of(f, shape_))];
    const SubLayerProcessing& processing = own.processing;
    const Tensor input = processing.parallel && f.position > 0 ? stream.second : stream.x;
    Tensor read = preprocessed(own.preprocess, input, context);
    if (processing.divisor != 1) read = read / processing.divisor;
    const Tensor y = watched_forward(f, read, context);
    stream.x = postprocessed(own, processing.carries_read ? read : stream.x, y, f, context);
    stream.second = processing.parallel && f.position + 1 < shape_.sub_layers ? input : Tensor();
    context.show({f.id, Point::stream}, stream.x);
  }

  Tensor leave(const Stream& stream, ForwardContext& context) const override {
    return preprocessed(last_, stream.x, context);
  }

 private:
  struct SubLayerOperations {
    Operations preprocess{}, postprocess{};
    SubLayerProcessing processing{};
  };

  static Tensor preprocessed(const Operations& operations, Tensor x, ForwardContext& context) {
    for (const Operation& operation : operations) {
      x = operation.letter == 'd' ? context.dropout(x) : (*operation.norm)(x, context);
    }
    return x;
  }

  static Tensor postprocessed(const SubLayerOperations& own, const Tensor& x, Tensor y, const SubLayer& f,
                              ForwardContext& context) {
    const Operations& operations = own.postprocess;
    const double factor = own.processing.carried;
    const Tensor carried = factor == 1 ? x : factor * x;
    for (size_t i = 0; i < operations.size(); ++i) {
      const Operation& operation = operations[i];
      bool joined = true;
      switch (operation.letter) {
        case 'a':
          y = carried + y;
          break;
        case 'z':
          y = x + operation.gamma * y;
          break;
        case 'h':
          y = x + at::sigmoid(operation.gate(x)) * (y - x);
          break;
        case 'd':
          joined = i + 1 < operations.size() && operations[i + 1].letter == 'a';
          y = joined ? context.add_dropout(carried, y) : context.dropout(y);  // "da" in one pass
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
  std::vector<SubLayerOperations> sub_layers_;
  Operations last_;
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
  const auto same = [&](const StackShape&, int64_t, int64_t) { return SubLayerProcessing{preprocess, postprocess}; };
  return std::make_unique<Tensor2TensorScheme>(preprocess, same, parameters, shape);
}

bool add_tensor2tensor_scheme(const std::string& name, std::string title, std::string summary, std::string reference,
                              const std::string& last, const ProcessingOf& processing_of,
                              const Prescription& prescribes) {
  const auto make = [=](Parameters& parameters, const StackShape& shape, const Options&) {
    return std::make_unique<Tensor2TensorScheme>(last, processing_of, parameters, shape);
  };
  return residual_schemes().add(name, std::move(summary), std::move(reference), {make, prescribes}) &&
         residual_schemes().named(name, std::move(title));
}

}  // namespace plumb
