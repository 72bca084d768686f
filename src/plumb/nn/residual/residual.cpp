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

std::unique_ptr<ResidualScheme> make_residual_scheme(const std::string& name, Parameters& parameters,
                                                     const StackShape& shape) {
  const size_t slash = name.find('/');
  if (slash != std::string::npos)
    return make_tensor2tensor_scheme(name.substr(0, slash), name.substr(slash + 1), parameters, shape);
  if (name == "none") {
    throw Error("unknown residual scheme \"none\"",
                "x + f(x) without a norm is now called \"plain\"; f(x) without x is \"no-residual\"");
  }
  return residual_schemes().at(name).make(parameters, shape);
}

}  // namespace plumb
