#include "plumb/study/transfer_recipe.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/model/config.h"

namespace plumb {
namespace {

const std::vector<TransferRecipe>& transfer_recipes() {
  static const std::vector<TransferRecipe> recipes = {
      {.name = "scratch",
       .description = "from scratch",
       .weights = false,
       .text = false,
       .unfreeze = "all",
       .discriminative = false},
      {.name = "complete", .description = "complete recipe"},
      {.name = "no-text", .description = "without the task's text", .text = false},
      {.name = "no-discriminative", .description = "without discriminative rates", .discriminative = false},
      {.name = "no-unfreezing", .description = "without gradual unfreezing", .unfreeze = "all"},
      {.name = "no-slanted", .description = "with a constant rate", .slanted = false},
      {.name = "last-layer", .description = "last layer only", .unfreeze = "last"},
      {.name = "all-at-once", .description = "all at once", .unfreeze = "all", .discriminative = false},
      {.name = "chain-thaw", .description = "chain-thaw", .unfreeze = "chain-thaw"},
  };
  return recipes;
}

}  // namespace

int64_t TransferRecipe::least_epochs(int64_t layers) const {
  // The head, the layers and the embeddings, one per epoch; a chain-thaw ends with an epoch for all.
  if (unfreeze == "gradual") return layers + 2;
  return unfreeze == "chain-thaw" ? layers + 3 : 1;
}

const TransferRecipe& transfer_recipe(const std::string& name) {
  std::vector<std::string> names;
  for (const TransferRecipe& recipe : transfer_recipes()) {
    if (recipe.name == name) return recipe;
    names.push_back(recipe.name);
  }
  throw Error(fmt::format("transfer.arms: there is no arm '{}'", name), "known: " + join(names));
}

std::string usual_recipe(const std::string& kind, const std::vector<std::string>& arms) {
  const auto has = [&](const char* name) { return std::find(arms.begin(), arms.end(), name) != arms.end(); };
  if (!carries_state(kind) && has("all-at-once")) return "all-at-once";
  return has("complete") ? "complete" : "";
}

}  // namespace plumb
