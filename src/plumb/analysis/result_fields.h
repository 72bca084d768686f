// What results are described with, besides the fields of base/config.h: places in a model, and numbers that documents
// have as null if they are unknown.
#pragma once

#include <optional>
#include <string_view>

#include "plumb/base/config.h"
#include "plumb/nn/layer_id.h"

namespace plumb {

/// A stack, layer or sub-layer under its name. Throws Error if a document has another name.
void describe_place(Fields& field, std::string_view key, LayerId& id);
void describe_place(Fields& field, std::string_view key, StackKind& stack);
/// The same with an empty name for no place.
void describe_place(Fields& field, std::string_view key, std::optional<LayerId>& id);

/// A number that is null in documents if it is unknown, unlike Fields' own optional numbers, which are left out.
void describe_or_null(Fields& field, std::string_view key, std::optional<double>& value);

}  // namespace plumb
