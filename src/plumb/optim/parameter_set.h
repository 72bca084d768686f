// The parameters that an optimizer treats alike, and its state for them in flat vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumb/base/parallel.h"
#include "plumb/optim/optimizer.h"

namespace plumb {

class ParameterSet {
 public:
  struct Member {
    size_t index;         // in the model's parameters
    Parameter parameter;  // shares the model's value
    Tensor flat;          // that value as a vector, without a graph
    int64_t begin;        // offset of its piece in a flat vector
  };

  /// The parameters for which `belongs` returns true; all of them if it is empty.
  explicit ParameterSet(const Parameters& parameters, const std::function<bool(const Parameter&)>& belongs = {});

  [[nodiscard]] const std::vector<Member>& members() const { return members_; }

  /// A flat vector of zeros with one element for each element of the members, one member after another.
  [[nodiscard]] Tensor zeros() const { return at::zeros({count_}, options_); }

  /// The piece of a flat vector that belongs to a member, in the member's shape (a view).
  [[nodiscard]] static Tensor piece(const Member& member, const Tensor& flat) {
    return flat.narrow(0, member.begin, member.flat.numel()).view(member.parameter.value.sizes());
  }

  /// The members that are not frozen, their gradients, and their pieces of a flat vector or of the parameters (as
  /// vectors): the lists that the updates in ops/update.h take.
  [[nodiscard]] std::vector<size_t> moving(const OptimizerStep& step) const;
  [[nodiscard]] std::vector<Tensor> gradients(const OptimizerStep& step, const std::vector<size_t>& members) const;
  [[nodiscard]] std::vector<Tensor> pieces(const Tensor& flat, const std::vector<size_t>& members) const;
  [[nodiscard]] std::vector<Tensor> values(const std::vector<size_t>& members) const;

  /// Appends a flat vector as tensors PREFIX.NAME, or copies them back into the vector. The latter throws Error, naming
  /// `origin`, if a tensor is missing or has the wrong shape.
  void append(NamedTensors& tensors, const std::string& prefix, const Tensor& flat) const;
  void load(const NamedTensors& tensors, const std::string& prefix, const Tensor& flat,
            const std::string& origin) const;

  /// Part of a member, short enough that its intermediate results stay in the cache.
  struct Slice {
    const ParameterStep& settings;
    Tensor gradient;  // (n), scaled
    Tensor value;     // (n): writing to it writes the parameter
    int64_t begin;    // its offset in a flat vector
    size_t member;    // the member it is part of, in members()
    /// The same part of a flat vector (a view).
    [[nodiscard]] Tensor of(const Tensor& flat) const { return flat.narrow(0, begin, value.numel()); }
  };
  /// Calls work(slice), in parallel on the CPU, until each element of each member that is not frozen has been visited
  /// once. So an element-wise formula can be written with tensor operations and still pass over memory only once.
  template <typename Work>
  void for_each_slice(const OptimizerStep& step, const Work& work) const;

 private:
  std::vector<Member> members_;
  int64_t count_ = 0;
  at::TensorOptions options_;
};

/// The tensor of this name. Throws Error, naming `origin`, if it is missing.
const Tensor& find_tensor(const NamedTensors& tensors, const std::string& name, const std::string& origin);

/// Copies the tensor of this name into another. Throws Error, naming `origin`, if it is missing or has another shape.
void load_tensor(const NamedTensors& tensors, const std::string& name, const Tensor& into, const std::string& origin);

/// The matrices in a parameter, or in a tensor of its shape (views): query, key and value are three stacked in one.
std::vector<Tensor> matrices_of(const Parameter& parameter, const Tensor& whole);

template <typename Work>
void ParameterSet::for_each_slice(const OptimizerStep& step, const Work& work) const {
  const std::vector<size_t> members = moving(step);
  std::vector<int64_t> begins{0};  // offsets of these among all their elements
  for (const size_t k : members) begins.push_back(begins.back() + members_[k].flat.numel());
  const bool parallel = options_.device().is_cpu();
  const int64_t longest = parallel ? 32768 : INT64_MAX;
  const auto visit = [&](int64_t begin, int64_t end) {
    const at::NoGradGuard no_graph;  // grad mode is per thread
    auto i = static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), begin) - begins.begin() - 1);
    while (begin < end) {
      const Member& member = members_[members[i]];
      const int64_t offset = begin - begins[i], n = std::min(std::min(end, begins[i + 1]) - begin, longest);
      if (n > 0) {
        const Tensor gradient = step.gradients[member.index].view({-1}).narrow(0, offset, n);
        work(Slice{step.parameters[member.index], step.gradient_scale == 1 ? gradient : gradient * step.gradient_scale,
                   member.flat.narrow(0, offset, n), member.begin + offset, members[i]});
      }
      begin += n;
      if (begin == begins[i + 1]) ++i;
    }
  };
  if (!parallel) return visit(0, begins.back());
  constexpr int64_t kGrain = 16384;
  parallel_ranges(begins.back(), kGrain, visit);
}

}  // namespace plumb
