// Results of measuring a model, by name.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plumb {

/// Values by name, in insertion order: "valid_nll", "bleu", "accuracy".
class Metrics {
 public:
  void set(const std::string& name, double value) {
    const auto found = find(name);
    if (found == values_.end()) {
      values_.emplace_back(name, value);
    } else {
      values_[static_cast<size_t>(found - values_.begin())].second = value;
    }
  }
  void set(const Metrics& others) {
    for (const auto& [name, value] : others.values_) set(name, value);
  }
  [[nodiscard]] std::optional<double> get(const std::string& name) const {
    const auto found = find(name);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }

  bool operator==(const Metrics&) const = default;

 private:
  [[nodiscard]] std::vector<std::pair<std::string, double>>::const_iterator find(const std::string& name) const {
    return std::find_if(values_.begin(), values_.end(), [&](const auto& entry) { return entry.first == name; });
  }
  std::vector<std::pair<std::string, double>> values_;
};

}  // namespace plumb
