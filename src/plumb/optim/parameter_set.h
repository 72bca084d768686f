// The parameters that an optimizer treats alike, and its state for them in flat vectors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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
  /// vectors): the lists that ops::update takes.
  [[nodiscard]] std::vector<size_t> moving(const OptimizerStep& step) const;
  [[nodiscard]] std::vector<Tensor> gradients(const OptimizerStep& step, const std::vector<size_t>& members) const;
  [[nodiscard]] std::vector<Tensor> pieces(const Tensor& flat, const std::vector<size_t>& members) const;
  [[nodiscard]] std::vector<Tensor> values(const std::vector<size_t>& members) const;

  /// Appends a flat vector to an optimizer's state, as a tensor for each member; or a vector on the CPU with one number
  /// for each member, as a single tensor.
  void append(std::vector<StateTensor>& state, const std::string& kind, const Tensor& flat) const;
  void append_numbers(std::vector<StateTensor>& state, const std::string& kind, const Tensor& numbers) const;

 private:
  std::vector<Member> members_;
  int64_t count_ = 0;
  at::TensorOptions options_;
};

/// The tensor of this name. Throws Error, naming `origin`, if it is missing.
const Tensor& find_tensor(const NamedTensors& tensors, const std::string& name, const std::string& origin);

/// Copies the tensor of this name into another. Throws Error, naming `origin`, if it is missing or has another shape.
void load_tensor(const NamedTensors& tensors, const std::string& name, const Tensor& into, const std::string& origin);

/// The kind of a state tensor that belongs to matrix i of a parameter: "row", or "row.i" if several are stacked.
std::string kind_of(const std::string& kind, const Parameter& parameter, size_t i);

/// The matrices in a parameter, or in a tensor of its shape (views): query, key and value are three stacked in one.
std::vector<Tensor> matrices_of(const Parameter& parameter, const Tensor& whole);

}  // namespace plumb
