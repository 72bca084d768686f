// The tensors of a Hugging Face model: in model.safetensors, or in several files that model.safetensors.index.json
// lists. Every tensor is either taken or refused.
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
  /// `origin` is what messages call them.
  Weights(NamedTensors tensors, std::string origin);
  /// Stands for the tensors of any folder: makes each tensor that is taken, of the shape asked for and of this type,
  /// filled with ones, and remembers it.
  static Weights asked_for(at::ScalarType type);

  [[nodiscard]] bool has(const std::string& name) const { return tensors_.count(prefix_ + name) != 0; }

  /// Whether to take a tensor that a folder may leave out: if it is there, or might be.
  [[nodiscard]] bool has_optional(const std::string& name) const { return made_ || has(name); }

  /// From now on this precedes the names that are asked for.
  void set_prefix(const std::string& prefix) { prefix_ = prefix; }

  /// Renames tensors that end like `from`, as older files call them, unless the new name is there already.
  void rename_ending(const std::string& from, const std::string& to);

  /// Removes a tensor and returns it. Throws Error if it is missing, or, naming both shapes, if it has another shape.
  Tensor take(const std::string& name, const std::vector<int64_t>& shape);

  /// Says that `copy` is the tensor just taken under another name, which a folder to be written has, too.
  void also_named(const std::string& copy);

  /// Removes the tensors whose full names match a pattern: what a model computes does not depend on them.
  void ignore(const std::string& pattern);

  /// Removes the tensors whose full names match a pattern: they are copies of `original`, a tensor that was taken.
  /// Throws Error if they are not.
  void ignore_copies(const std::string& pattern, const Tensor& original);

  /// Removes the tensors whose full names match a pattern: they belong to a part of the model that Plumb's does not
  /// have.
  void leave_out(const std::string& pattern, const std::string& part);
  /// The parts that were left out, in words.
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }

  /// Throws Error that names a tensor that nobody took.
  void finish() const;

  /// The tensors taken from `asked_for`, by their full names, in order; their values require gradients.
  [[nodiscard]] const NamedTensors& taken() const { return taken_; }

 private:
  std::map<std::string, Tensor> tensors_;
  std::string origin_;
  std::string prefix_;
  std::optional<at::ScalarType> made_;  // asked_for
  NamedTensors taken_;
  std::vector<std::string> left_out_;
};

}  // namespace plumb
