// Fine-tuning: the run that trains a pretrained model to classify. What [finetune] says becomes parameter groups and
// the settings of [train] that every run has.
#pragma once

#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/nn/parameters.h"
#include "plumb/train/config.h"

namespace plumb {

/// [finetune]
struct FinetuneConfig {
  std::string from;              // the pretrained run, or a checkpoint in one
  std::string unfreeze = "all";  // at the start; or "gradual": one more layer each epoch; or "last": only the head
  double rate_divisor = 1;       // the rate of each layer is that of the one above divided by this
};
void describe(Fields& field, FinetuneConfig& config);

/// The groups of a model with these parameters. Counted from the top, the head (output layer and pooler) is number 0,
/// and trained at the full rate from the start; the last layer, with whatever belongs to the whole stack, is number 1;
/// the embeddings come last. Number k has
///   learning_rate_factor = rate_divisor^(−k)   (Howard & Ruder 2018, arXiv 1801.06146, section 3.2: 2.6)
/// and is frozen for k epochs if it is unfrozen gradually (section 3.3), or always if only the head is trained. Empty
/// if all parameters are trained alike. Throws Error on values out of range.
std::vector<ParameterGroup> finetuning_groups(const FinetuneConfig& config, const Parameters& parameters);

/// The configuration of a fine-tuning run. The model is that of finetune.from with a head for the labels of the data,
/// pooled at the first token of an encoder and the last of a decoder; [train] has the defaults of
/// `finetuning_defaults`; `document` overrides both, and its own groups come before those of `finetuning_groups`.
/// `from` and `data`, if not empty, override finetune.from and data.directory. Throws Error if a model or data are
/// missing, if the model cannot be fine-tuned, or if the data have no labels or another vocabulary than the model was
/// trained with.
RunConfig finetuning_run(const Config& document, const std::string& from, const std::string& data);

/// AdamW with the slanted triangular schedule over three epochs (Devlin et al. 2019, arXiv 1810.04805, section A.3), or
/// until two epochs after the last of `layers` layers and the embeddings are unfrozen gradually.
TrainConfig finetuning_defaults(const FinetuneConfig& config, int64_t layers);

}  // namespace plumb
