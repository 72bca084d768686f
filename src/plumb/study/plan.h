// What a part of a study measures: a plan made once, whose results are read typed when the part reports on them.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/analysis/statistics.h"
#include "plumb/study/claims.h"
#include "plumb/study/part.h"
#include "plumb/study/result_json.h"

namespace plumb {

/// A measurement of a plan. Its result is read once, when its file is looked at or it is first asked for, and measured
/// then if it is missing. Copies share it.
template <typename Result>
class Planned {
 public:
  using Read = std::function<Result(const Json&)>;

  Planned(Measurements& measurements, MeasurementRequest request, Read read = result_of<Result>)
      : state_(std::make_shared<State>(State{measurements, std::move(request), std::move(read), {}})) {}

  const Result& operator*() const {
    if (!state_->result) state_->result = state_->read(state_->measurements.get(state_->request));
    return *state_->result;
  }
  const Result* operator->() const { return &**this; }

  /// MeasurementRequest::keep.
  bool keep(const Json* result) const {
    if (result != nullptr) state_->result = state_->read(*result);
    return state_->result.has_value();
  }

 private:
  struct State {
    Measurements& measurements;
    MeasurementRequest request;
    Read read;
    std::optional<Result> result;
  };
  std::shared_ptr<State> state_;
};

template <typename Result>
Json result_json(const Planned<Result>& planned) {
  return result_json(*planned);
}

/// The measurements of a part, and its report on their results.
class PartPlan {
 public:
  explicit PartPlan(StudyContext& context) : measurements_(context.measurements) {}

  template <typename Result>
  Planned<Result> add(const MeasurementRequest& request, typename Planned<Result>::Read read = result_of<Result>) {
    const Planned<Result> planned(measurements_, request, std::move(read));
    requests_.push_back(request);
    requests_.back().keep = [planned](const Json* result) { return planned.keep(result); };
    return planned;
  }
  [[nodiscard]] const std::vector<MeasurementRequest>& requests() const { return requests_; }

  /// Quantities that are compared between arms, and that claims can be about.
  [[nodiscard]] const std::vector<Quantity>& quantities() const { return quantities_; }
  /// Adds an arm's values, by seed, of the quantity of this name. `doubt` is the same for all of its arms.
  Quantity& quantity(const std::string& name, const std::string& meaning, Scale scale, const std::string& arm,
                     std::function<std::vector<double>()> values, Quantity::Doubt doubt = {}) {
    auto found = std::find_if(quantities_.begin(), quantities_.end(), [&](const auto& q) { return q.name == name; });
    if (found == quantities_.end()) found = quantities_.insert(found, Quantity{name, meaning, scale, {}, arms});
    found->of_arm.emplace(arm, std::move(values));
    if (doubt) found->doubt = std::move(doubt);
    return *found;
  }

  /// Those that the quantities added from now on compare; null: the study's.
  std::shared_ptr<const std::vector<StudyArm>> arms;
  /// Called once the measurements are made; makes none.
  std::function<PartResult()> report;

 private:
  Measurements& measurements_;
  std::vector<MeasurementRequest> requests_;
  std::vector<Quantity> quantities_;
};

/// The meanings of keys that many parts have.
inline constexpr const char* kLayersMeaning = "layers in each of encoder and decoder";
inline constexpr const char* kSeedsMeaning = "number of initializations";
inline constexpr const char* kPairsMeaning = "pairs from the beginning of the measured split; 0: all";

/// The first options of parts that measure initialized models.
struct InitialModels {
  int64_t layers = 6;
  int64_t seeds = 5;
  int64_t pairs = 100;
};
inline void describe(Fields& field, InitialModels& part) {
  field("layers", part.layers, kLayersMeaning, count_from(1));
  field("seeds", part.seeds, kSeedsMeaning, count_from(1));
  field("pairs", part.pairs, kPairsMeaning, count_from(0));
}

/// What a part with options of type `Options` consists of.
template <typename PartOptions>
struct PartFunctions {
  int64_t order = 0;
  bool any_depth = false;
  PartPlan (*plan)(StudyContext&, const PartOptions&);
  bool (*trains)(const PartOptions&) = [](const PartOptions&) { return false; };
  void (*check)(const StudyConfig&, const PartOptions&) = [](const StudyConfig&, const PartOptions&) {};
};

/// Of a part that trains whatever its options.
inline constexpr auto kTrainsAlways = [](const auto&) { return true; };

/// Registers a part under the name of its section.
template <typename PartOptions>
bool add_part(const std::string& name, std::string summary, std::string reference,
              const PartFunctions<PartOptions>& part) {
  return study_parts().add(
      name, std::move(summary), std::move(reference),
      StudyPart{
          part.order, part.any_depth, [part](const Options& options) { return part.trains(options.as<PartOptions>()); },
          [part](const StudyConfig& study, const Options& options) { part.check(study, options.as<PartOptions>()); },
          [part](StudyContext& context, const Options& options) {
            return part.plan(context, options.as<PartOptions>());
          }},
      Options(PartOptions{}));
}

}  // namespace plumb
