// The arms of a transfer study: ULMFiT's fine-tuning recipe (Howard & Ruder 2018, arXiv 1801.06146, section 3) and
// variants that change one thing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb {

struct TransferRecipe {
  std::string name;                  // in transfer.arms
  std::string description;           // in figures: "without gradual unfreezing"
  bool weights = true;               // whether the classifier starts from pretrained weights
  bool text = true;                  // whether the language model is first fine-tuned on the task's text
  std::string unfreeze = "gradual";  // as finetune.unfreeze
  bool discriminative = true;        // whether each layer's learning rate is that of the layer above / rate_divisor
  bool slanted = true;               // slanted triangular schedule instead of a constant one

  /// The number of epochs after which every layer that the recipe unfreezes has been trained.
  [[nodiscard]] int64_t least_epochs(int64_t layers) const;
};

/// All of them.
const std::vector<TransferRecipe>& transfer_recipes();

/// The recipe of this name. Throws Error on an unknown name.
const TransferRecipe& transfer_recipe(const std::string& name);

/// The usual recipe for this kind of model among `arms`: "complete" for a recurrent model; for a Transformer,
/// "all-at-once" or else "complete". "" if `arms` has none of these.
std::string usual_recipe(const std::string& kind, const std::vector<std::string>& arms);

}  // namespace plumb
