#include "plumb/trouble/trouble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

void require_policy(const char* key, const std::string& value, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  throw Error(fmt::format("train.trouble.{} = \"{}\" must be one of {}", key, value, join(known)));
}

void require_range(const char* key, double value, double smallest, double largest) {
  if (value >= smallest && value <= largest) return;
  throw Error(fmt::format("train.trouble.{} = {} must lie between {} and {}", key, value, smallest, largest));
}

}  // namespace

void describe(Fields& field, TroubleConfig& config) {
  field("on_nonfinite", config.on_nonfinite);
  field("on_spike", config.on_spike);
  field("window", config.window);
  field("threshold", config.threshold);
  field("skip_limit", config.skip_limit);
  field("rollback_limit", config.rollback_limit);
  field("rollback_rate", config.rollback_rate);
  field("pass_over", config.pass_over);
}

void validate(const TroubleConfig& config) {
  constexpr double kMost = 1e6;
  require_policy("on_nonfinite", config.on_nonfinite, {"stop", "skip", "rollback"});
  require_policy("on_spike", config.on_spike, {"report", "skip", "rollback"});
  require_range("window", static_cast<double>(config.window), 0, 1e4);
  require_range("threshold", config.threshold, 1, kMost);
  require_range("skip_limit", static_cast<double>(config.skip_limit), 1, kMost);
  require_range("rollback_limit", static_cast<double>(config.rollback_limit), 1, kMost);
  require_range("rollback_rate", config.rollback_rate, 0, 1);
  if (config.rolls_back() && config.rollback_rate == 1 && !config.pass_over) {
    throw Error(
        "train.trouble: after a rollback with rollback_rate = 1.0 and without pass_over, the same trouble would follow",
        "lower rollback_rate, or set pass_over = true");
  }
  if (config.on_spike != "report" && config.window == 0) {
    throw Error(fmt::format("train.trouble.on_spike = \"{}\" needs a window", config.on_spike),
                "set train.trouble.window, such as 128");
  }
}

Json to_json(const TroubleRecord& record) { return {{"step", record.step}, {"trouble", record.values}}; }

TroubleRecord trouble_record_from_json(const Json& json) {
  TroubleRecord record{count_of(json.at("step")), json.at("trouble")};
  // Checks what is read later; everything else is for the user.
  bool valid = record.values.is_object();
  for (const char* key : {"text", "action"})
    valid = valid && (!record.values.contains(key) || record.values[key].is_string());
  if (!valid) throw Error(fmt::format("the record of trouble at step {} is malformed", record.step));
  if (record.values.contains("to")) (void)count_of(record.values["to"]);
  return record;
}

std::string to_string(const TroubleRecord& record) {
  return fmt::format("step {}: {}", record.step, record.values.value("text", std::string("trouble")));
}

Json exact_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

double exact_number_of(const Json& json) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!json.is_string()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return kInfinity;
  if (text == "-Infinity") return -kInfinity;
  throw Error(fmt::format("'{}' is not a number", text));
}

}  // namespace plumb
