#include "plumb/analysis/result_fields.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"

namespace plumb {

void describe_place(Fields& field, std::string_view key, std::optional<LayerId>& id) {
  std::string name = id ? to_string(*id) : std::string();
  field(key, name);
  id = LayerId::parse(name);
  if (!id && !name.empty()) throw Error(fmt::format("'{}' is not a part of a model", name));
}

void describe_place(Fields& field, std::string_view key, LayerId& id) {
  std::optional<LayerId> found = id;
  describe_place(field, key, found);
  if (!found) throw Error(fmt::format("'{}' names no part of a model", key));
  id = *found;
}

void describe_place(Fields& field, std::string_view key, StackKind& stack) {
  LayerId id{stack};
  describe_place(field, key, id);
  stack = id.stack;
}

void describe_or_null(Fields& field, std::string_view key, std::optional<double>& value) {
  double number = value.value_or(std::nan(""));
  field(key, number);
  value = std::isnan(number) ? std::nullopt : std::optional(number);
}

}  // namespace plumb
