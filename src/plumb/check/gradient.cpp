#include "plumb/check/gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plumb/ops/update.h"

namespace plumb::check {

std::map<LayerId, double> gradient_by_layer(const Parameters& parameters, const std::vector<Tensor>& gradient) {
  std::map<LayerId, double> squares;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const std::optional<LayerId> id = LayerId::of_parameter(parameters.all()[i].name);
    if (id && id->layer) squares[{id->stack, id->layer}] += ops::sum_of_squares({gradient[i]});
  }
  return squares;
}

std::optional<double> gradient_at_input(const Parameters& parameters, const std::vector<Tensor>& gradient) {
  const std::map<LayerId, double> squares = gradient_by_layer(parameters, gradient);
  if (squares.size() < 2) return std::nullopt;
  const auto& [last, square] = *squares.rbegin();
  double first = std::numeric_limits<double>::infinity();
  for (const auto& [id, each] : squares) {
    if (id.layer == 0 && id != last) first = std::min(first, each);
  }
  return square > 0 ? std::sqrt(first / square) : 0;
}

}  // namespace plumb::check
