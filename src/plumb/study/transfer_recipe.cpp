#include "plumb/study/transfer_recipe.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/model/kind.h"

namespace plumb {

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

int64_t TransferRecipe::least_epochs(int64_t layers) const {
  // The head, the layers and the embeddings, one per epoch; a chain-thaw ends with an epoch for all.
  if (unfreeze == "gradual") return layers + 2;
  return unfreeze == "chain-thaw" ? layers + 3 : 1;
}

const TransferRecipe& transfer_recipe(const std::string& name) {
  const std::vector<TransferRecipe>& all = transfer_recipes();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& recipe) { return recipe.name == name; });
  if (found == all.end()) throw Error(fmt::format("transfer.arms: there is no arm '{}'", name));
  return *found;
}

std::string usual_recipe(const std::string& kind, const std::vector<std::string>& arms) {
  const auto has = [&](const char* name) { return std::find(arms.begin(), arms.end(), name) != arms.end(); };
  if (!model_kind(kind).recurrent && has("all-at-once")) return "all-at-once";
  return has("complete") ? "complete" : "";
}

}  // namespace plumb
