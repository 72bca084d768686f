// Learned positions, Gehring et al. 2017, arXiv 1705.03122: one trained vector per position, up to max_positions.
#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/nn/position/position.h"

namespace plumb {
namespace {

class Learned final : public Positions {
 public:
  Learned(Parameters& parameters, const std::string& prefix, int64_t d_model, int64_t max_positions)
      : table_(parameters.add(prefix + ".weight", {max_positions, d_model}, Role::position)) {}

  Tensor table(int64_t length) override {
    if (length > table_.size(0)) {
      throw Error(
          fmt::format("a sequence of {} tokens, but the model has {} learned positions", length, table_.size(0)),
          "increase model.max_positions, or remove long sentences");
    }
    return table_;
  }
  [[nodiscard]] int64_t longest() const override { return table_.size(0); }

 private:
  Tensor table_;  // (max_positions, d_model)
};

const bool kLearnedRegistered = positions().add(
    "learned", "one trained vector for each of `model.max_positions` positions; a longer sequence is an error",
    "Gehring et al. 2017, arXiv 1705.03122",
    [](Parameters& parameters, const std::string& prefix, const PositionShape& shape, const Options&) {
      return std::make_unique<Learned>(parameters, prefix, shape.d_model, shape.max_positions);
    });

}  // namespace
}  // namespace plumb
