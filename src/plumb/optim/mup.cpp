#include "plumb/optim/mup.h"

#include <cmath>

namespace plumb {

double mup_rate_factor(const Parameter& parameter, double m) {
  if (parameter.name == "output.weight" || multiplies_each_token(parameter)) return 1 / m;
  return parameter.role == Role::embedding ? 1 / std::sqrt(m) : 1;
}

}  // namespace plumb
