// Holm's procedure (1979): several claims judged together so that one of all is decided wrongly at most as often as one
// judged alone may be.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace plumb {

/// Which of `count` claims stand: those that are decided with the error divided by n, n = `count`; with m of them
/// standing, those that are decided with it divided by n − m, and so on. `decided(i, n)` judges claim i with the error
/// divided by n.
std::vector<bool> holm_standing(size_t count, const std::function<bool(size_t i, size_t n)>& decided);

/// The p-values of tests made together, so that one of all is at most α as often as it should be.
std::vector<double> holm_adjusted(const std::vector<double>& p_values);

}  // namespace plumb
