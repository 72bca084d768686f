// The arms of a transfer study: ULMFiT's recipe of fine-tuning (Howard & Ruder 2018, arXiv 1801.06146, section 3), and
// recipes that differ from it in one thing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb {

struct TransferRecipe {
  std::string name;                  // in transfer.arms
  std::string description;           // in figures: "without gradual unfreezing"
  bool weights = true;               // whether the classifier begins with pretrained weights
  bool text = true;                  // whether the language model was fine-tuned on the task's text before
  std::string unfreeze = "gradual";  // as finetune.unfreeze
  bool discriminative = true;        // whether the rate of each layer is that of the one above divided by a number
  bool slanted = true;               // whether the schedule is slanted triangular, or else constant

  /// The epochs after which every layer has been trained at least once.
  [[nodiscard]] int64_t least_epochs(int64_t layers) const;
};

/// Throws Error that lists the names if there is no such recipe.
const TransferRecipe& transfer_recipe(const std::string& name);

/// How models of this kind are usually fine-tuned, if `arms` has it: a recurrent model by the complete recipe, a
/// Transformer all at once or, without that arm, by the complete recipe. "" if there is neither.
std::string usual_recipe(const std::string& kind, const std::vector<std::string>& arms);

}  // namespace plumb
