// A model's parameters moved elsewhere for the duration of a scope.
#pragma once

#include "plumb/nn/parameters.h"

namespace plumb {

/// Restores the parameters at the end of the scope.
class MovedParameters {
 public:
  explicit MovedParameters(const Parameters& parameters)
      : flat_(parameters.flat()), before_(parameters.flat().clone()) {}
  ~MovedParameters() {
    const at::NoGradGuard no_graph;
    flat_.copy_(before_);
  }
  MovedParameters(const MovedParameters&) = delete;
  MovedParameters& operator=(const MovedParameters&) = delete;

  /// Sets them to other values, (parameters).
  void to(const Tensor& values) {
    const at::NoGradGuard no_graph;
    flat_.copy_(values);
  }

  /// Sets them to their original values − rate·update, (parameters).
  void along(const Tensor& update, double rate) {
    const at::NoGradGuard no_graph;
    flat_.copy_(before_);
    flat_.sub_(update, rate);
  }

 private:
  Tensor flat_;
  Tensor before_;
};

}  // namespace plumb
