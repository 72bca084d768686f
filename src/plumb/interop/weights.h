// The tensors of a Hugging Face model: in model.safetensors, or in several files that model.safetensors.index.json
// lists. Every tensor must be known.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumb/io/safetensors.h"

namespace plumb {

class Weights {
 public:
  /// Reads a folder. Throws Error if it has no safetensors, or if the index and the files contradict each other.
  static Weights from_folder(const std::filesystem::path& folder);
  /// `origin`: the name of the tensors' source in messages.
  Weights(NamedTensors tensors, std::string origin);
  /// A stand-in for the tensors of any folder: `take` makes each tensor, of the given shape and this type and filled
  /// with ones, and remembers it.
  static Weights recording(at::ScalarType type);

  [[nodiscard]] bool has(const std::string& name) const { return tensors_.count(prefix_ + name) != 0; }

  /// Whether to take an optional tensor: if it exists, and always with `recording`.
  [[nodiscard]] bool has_optional(const std::string& name) const { return recording_ || has(name); }

  /// Sets a prefix for the names passed to `has`, `take` and `also_named`.
  void set_prefix(const std::string& prefix) { prefix_ = prefix; }

  /// Renames tensors whose names end with `from`, as in older files, unless the new name exists.
  void rename_ending(const std::string& from, const std::string& to);

  /// Removes a tensor and returns it. Throws Error if it is missing, has another shape, or is not floating-point.
  Tensor take(const std::string& name, const std::vector<int64_t>& shape);

  /// Declares `copy` another name of the tensor taken last, which exported folders also have.
  void also_named(const std::string& copy);

  /// Removes the tensors whose full names match a pattern and which do not affect what the model computes.
  void ignore(const std::string& pattern);

  /// Removes the tensors whose full names match a pattern, copies of `original`, which was taken. Throws Error if one
  /// differs.
  void ignore_copies(const std::string& pattern, const Tensor& original);

  /// Removes the tensors whose full names match a pattern: they belong to `part`, which Plumb's model does not have.
  void leave_out(const std::string& pattern, const std::string& part);
  /// The parts that were left out, in words.
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }

  /// Throws Error, naming the tensor, if one was neither taken nor removed.
  void require_all_used() const;

  /// The tensors taken from `recording`, by their full names, in order; their values require gradients.
  [[nodiscard]] const NamedTensors& requests() const { return requests_; }

 private:
  std::map<std::string, Tensor> tensors_;
  std::string origin_;
  std::string prefix_;
  std::optional<at::ScalarType> recording_;  // the type, of `recording`
  NamedTensors requests_;
  std::vector<std::string> left_out_;
};

}  // namespace plumb
