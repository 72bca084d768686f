#include "plumb/check/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "plumb/base/error.h"

namespace plumb::check {

Budget parse_budget(const std::string& text, int64_t planned_steps) {
  constexpr std::array<std::pair<std::string_view, double>, 3> kTimes = {{{"s", 1}, {"min", 60}, {"h", 3600}}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, text.data() + text.size());
  if (error == std::errc() && std::isfinite(value) && value > 0 && value < 1e12) {
    Budget budget;
    if (unit == "%" || unit == "g") {
      const double gradients = unit == "%" ? value / 100 * static_cast<double>(planned_steps) : value;
      budget.gradients = static_cast<int64_t>(std::ceil(std::min(gradients, 1e15)));
      return budget;
    }
    for (const auto& [name, seconds] : kTimes) {
      if (unit != name) continue;
      budget.seconds = value * seconds;
      return budget;
    }
  }
  throw UsageError(fmt::format("the budget must be a share, a time or a number of gradients, not '{}'", text),
                   "for example 5% of the planned training, 90s, 2min, 1h, or 250g");
}

Budget usual_budget(int64_t planned_steps) { return {.gradients = std::max<int64_t>(planned_steps / 20, 250)}; }

}  // namespace plumb::check
