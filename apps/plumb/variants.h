// The kinds of variants that a configuration or a command can select: the one list of registries, from which `plumb
// list`, docs/variants.md and completion are made.
#pragma once

#include <string>
#include <vector>

#include "manual.h"
#include "plumb/base/key_list.h"
#include "plumb/base/registry.h"

namespace plumb::app {

struct Variant {
  std::string name;
  std::string equation;
  std::string source;
  std::vector<KeyList::Key> options;  // with their full names, "train.adam.beta1", and defaults
};

struct VariantKind {
  std::string id;    // its name for `plumb list`: "residual"
  std::string name;  // its registry's: "residual scheme"
  About about;
  std::vector<Variant> variants;

  /// The heading of its section in docs/variants.md, "Norms: `model.norm`"; and the link to that.
  [[nodiscard]] std::string heading() const;
  [[nodiscard]] std::string link() const;
};

std::vector<VariantKind> variant_kinds();

/// A kind's heading and its variants, as `plumb list` prints them.
ManualList listed(const VariantKind& kind);

/// What the documentation says of a key: its meaning, unit, choices, and bounds if they are notable.
std::string whole_meaning(const KeyList::Key& key);

/// docs/variants.md
std::string variants_page();

}  // namespace plumb::app
