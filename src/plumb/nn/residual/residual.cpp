#include "plumb/nn/residual/residual.h"

#include "plumb/base/error.h"
#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {

Tensor watched_forward(const SubLayer& f, const Tensor& input, ForwardContext& context) {
  context.show({f.id, Point::input}, input);
  Tensor output = f.forward(input);
  context.show({f.id, Point::output}, output);
  return output;
}

Registry<ResidualFactory>& residual_schemes() {
  static Registry<ResidualFactory> registry("residual scheme");
  return registry;
}

namespace {

/// The registered scheme of this name. Throws Error if there is none.
const ResidualFactory& factory_of(const std::string& name) {
  if (name == "none") {
    throw Error("unknown residual scheme \"none\"",
                "x + f(x) without a norm is now called \"plain\"; f(x) without x is \"no-residual\"");
  }
  return residual_schemes().at(name).make;
}

}  // namespace

std::unique_ptr<ResidualScheme> make_residual_scheme(const std::string& name, Parameters& parameters,
                                                     const StackShape& shape) {
  const size_t slash = name.find('/');
  if (slash != std::string::npos)
    return make_tensor2tensor_scheme(name.substr(0, slash), name.substr(slash + 1), parameters, shape);
  return factory_of(name)(parameters, shape);
}

Prescription prescription_of(const std::string& name) {
  return name.find('/') == std::string::npos ? factory_of(name).prescribes() : Prescription();
}

}  // namespace plumb
