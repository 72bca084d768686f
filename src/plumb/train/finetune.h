// Fine-tuning: the run that trains a pretrained model further, to classify or as a language model of other text. What
// [finetune] says becomes parameter groups and the settings of [train] that every run has.
#pragma once

#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/nn/lora.h"
#include "plumb/nn/parameters.h"
#include "plumb/train/config.h"

namespace plumb {

/// [finetune]
struct FinetuneConfig {
  std::string from;              // the pretrained run, or a checkpoint in one
  std::string unfreeze = "all";  // at the start; or "gradual", "chain-thaw" or "last"
  double rate_divisor = 1;       // the rate of each layer is that of the one above divided by this
  LoraOptions lora;              // of a Transformer: with a rank, adapters and the head are all that is trained
};
void describe(Fields& field, FinetuneConfig& config);

/// The groups of a model with these parameters. Counted from the top, the head (output layer and pooler) is number 0;
/// the last layer, with whatever belongs to the whole stack, is number 1; the embeddings come last, as number L + 1 of
/// a model of L layers, unless the output layer shares their matrix: then they belong to it. Number k has
///   learning_rate_factor = rate_divisor^(−k)   (Howard & Ruder 2018, arXiv 1801.06146, section 3.2: 2.6)
/// It is trained in all epochs ("all"); after the first k ("gradual", section 3.3); only if it is the head ("last");
/// or, in "chain-thaw" (Felbo et al. 2017, arXiv 1708.00524), where each number is trained by itself in one epoch, the
/// head first, then the others from the embeddings to the last layer, in epoch (L + 2 − k) mod (L + 2), from 0, and in
/// all epochs from L + 2 on. With adapters (lora.rank > 0), these and the head are trained in all epochs, at the same
/// rate, and everything else is frozen. Empty if all parameters are trained alike. Throws Error on values out of range,
/// and on adapters that are unfrozen one after another or have discriminative rates.
std::vector<ParameterGroup> finetuning_groups(const FinetuneConfig& config, const Parameters& parameters);

/// The configuration of a fine-tuning run. On labeled data, the model is that of finetune.from with a head for the
/// labels: pooled at the first token of an encoder and the last of a decoder, with concat pooling of a recurrent model.
/// On text, it is that of finetune.from, and learns what it was pretrained for. Its adapters are those of
/// finetune.lora. [train] has the defaults of `finetuning_defaults`; `document` overrides both, and its own groups come
/// before those of `finetuning_groups`. `from` and `data`, if not empty, override finetune.from and data.directory.
/// Throws Error if a model or data are missing, if the model cannot be fine-tuned, or if the data have labels and
/// another vocabulary than the model was trained with. Without `weights`, the run begins with random ones, and the one
/// it has its configuration from needs no checkpoint.
RunConfig finetuning_run(const Config& document, const std::string& from, const std::string& data, bool weights = true);

/// Of Transformers, AdamW with a peak rate of 5e-5 (Devlin et al. 2019, arXiv 1810.04805, section A.3), or of 4e-4 with
/// adapters (Hu et al. 2021, arXiv 2106.09685, table 9); of a recurrent model, Adam with the
/// coefficients of ULMFiT and a peak rate of 0.01 for labels and 0.004 for text. The slanted triangular schedule over
/// three epochs or, if layers are unfrozen one after another, until two epochs after the last of them is.
TrainConfig finetuning_defaults(const FinetuneConfig& config, const ModelConfig& model, bool labeled);

}  // namespace plumb
