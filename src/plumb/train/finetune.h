// Fine-tuning: a run that trains a pretrained model further, as a classifier or as a language model of other text.
// [finetune] is translated into parameter groups and ordinary [train] settings.
#pragma once

#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/nn/lora.h"
#include "plumb/nn/parameters.h"
#include "plumb/run/config.h"

namespace plumb {

/// [finetune]
struct FinetuneConfig {
  std::string from;
  std::string unfreeze = "all";
  double rate_divisor = 1;
  LoraOptions lora;  // of a Transformer: with rank > 0, only the adapters and the head are trained
};
void describe(Fields& field, FinetuneConfig& config);

/// The parameter groups for fine-tuning a model of L layers, numbered from the top: group 0 is the head (output layer,
/// its transform and the pooler); group 1 is the last layer, together with parameters of the whole stack; group L is
/// the first layer; group L + 1 holds the embeddings, unless the output layer shares their matrix: then they belong to
/// group 0. Group k has
///   learning_rate_factor = rate_divisor^(−k)   (Howard & Ruder 2018, arXiv 1801.06146, section 3.2: 2.6)
/// and is trained in all epochs ("all"), after the first k epochs ("gradual", section 3.3), or only if k = 0 ("last").
/// With "chain-thaw" (Felbo et al. 2017, arXiv 1708.00524) and n groups, each group is trained alone for one epoch, the
/// head first and then the others from the bottom up: group k in epoch (n − k) mod n, from 0; all are trained from
/// epoch n on. With adapters (lora.rank > 0), only these and the head are trained, in all epochs and at the same rate.
/// Empty if all parameters are trained alike. Throws Error on values out of range, and if adapters are combined with
/// `unfreeze` or `rate_divisor`.
std::vector<ParameterGroup> finetuning_groups(const FinetuneConfig& config, const Parameters& parameters);

/// The configuration of a fine-tuning run. On labeled data, the model is that of finetune.from with a new head that
/// pools the first token of an encoder or the last token of a decoder, or uses concat pooling for a recurrent model,
/// or with its own head if it classifies the same labels. On text, it is the model of finetune.from with its
/// pretraining task. The adapters are those of finetune.lora. [train]
/// has the defaults of `finetuning_defaults`; `document` overrides model and [train], and its own groups come before
/// those of `finetuning_groups`. `from` and `data`, if not empty, override finetune.from and data.directory. Without
/// `weights`, the run starts from random weights, and finetune.from needs no checkpoint. Throws Error if the model or
/// the data are missing, if the model cannot be fine-tuned on these data, if the reading direction differs from
/// pretraining, and if the vocabulary differs from the model's, which only fine-tuning on text without adapters allows.
RunConfig finetuning_run(const Config& document, const std::string& from, const std::string& data, bool weights = true);

/// The default [train] settings. For Transformers, AdamW with a peak rate of 5e-5 (Devlin et al. 2019, arXiv
/// 1810.04805, section A.3), or 4e-4 with adapters (Hu et al. 2021, arXiv 2106.09685, table 9); for recurrent models,
/// Adam with the coefficients of ULMFiT and a peak rate of 0.01 for labels and 0.004 for text. The slanted triangular
/// schedule spans three epochs or, with "gradual" and "chain-thaw", ends after two epochs in which everything is
/// trained.
TrainConfig finetuning_defaults(const FinetuneConfig& config, const ModelConfig& model, bool labeled);

}  // namespace plumb
