#include "plumb/base/glossary.h"

#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "plumb/base/contains.h"

namespace plumb {
namespace {

using Names = std::pair<std::string_view, std::string_view>;

constexpr auto kNames = std::to_array<Names>({
    // keys of [train]
    {"lr", "learning_rate"},
    {"peak_lr", "learning_rate"},
    {"max_lr", "learning_rate"},
    {"warmup", "warm_up"},
    {"warmup_steps", "warm_up"},
    {"warmup_iters", "warm_up"},
    {"warmup_updates", "warm_up"},
    {"warmup_ratio", "warm_up"},
    {"lr_warmup", "warm_up"},
    {"lr_scheduler", "schedule"},
    {"lr_scheduler_type", "schedule"},
    {"optim", "optimizer"},
    {"max_steps", "steps"},
    {"max_iters", "steps"},
    {"max_update", "steps"},
    {"num_train_epochs", "epochs"},
    {"max_epoch", "epochs"},
    {"max_grad_norm", "clip_norm"},
    {"grad_clip", "clip_norm"},
    {"gradient_clip_val", "clip_norm"},
    {"wd", "weight_decay"},
    {"gradient_accumulation_steps", "accumulate"},
    {"update_freq", "accumulate"},
    {"batch_size", "batch_tokens"},
    {"max_tokens", "batch_tokens"},
    {"per_device_train_batch_size", "batch_tokens"},
    {"label_smoothing_factor", "label_smoothing"},
    {"ema_decay", "average_decay"},
    {"exponential_smoothing", "average_decay"},
    {"fp16", "precision"},
    {"bf16", "precision"},
    {"mixed_precision", "precision"},
    {"dtype", "precision"},
    {"logging_steps", "log_every"},
    {"log_interval", "log_every"},
    {"eval_steps", "validate_every"},
    {"eval_interval", "validate_every"},
    {"valid_freq", "validate_every"},
    {"save_steps", "checkpoint_every"},
    {"save_interval", "checkpoint_every"},
    {"save_total_limit", "keep_checkpoints"},
    {"early_stopping", "patience"},
    {"early_stopping_patience", "patience"},
    {"metric_for_best_model", "best_metric"},
    {"world_size", "processes"},
    // keys of [model]
    {"hidden_dim", "d_model"},
    {"n_embd", "d_model"},
    {"dim_emb", "d_model"},
    {"embed_dim", "d_model"},
    {"dim", "d_model"},
    {"width", "d_model"},
    {"intermediate_size", "feed_forward"},
    {"ffn_dim", "feed_forward"},
    {"ffn_embed_dim", "feed_forward"},
    {"d_ff", "feed_forward"},
    {"dim_feedforward", "feed_forward"},
    {"transformer_dim_ffn", "feed_forward"},
    {"n_head", "heads"},
    {"nhead", "heads"},
    {"num_heads", "heads"},
    {"num_attention_heads", "heads"},
    {"num_key_value_heads", "kv_heads"},
    {"head_dim", "head_size"},
    {"n_layer", "decoder_layers"},
    {"num_layers", "decoder_layers"},
    {"num_hidden_layers", "decoder_layers"},
    {"depth", "decoder_layers"},
    {"enc_depth", "encoder_layers"},
    {"dec_depth", "decoder_layers"},
    {"num_encoder_layers", "encoder_layers"},
    {"num_decoder_layers", "decoder_layers"},
    {"hidden_act", "activation"},
    {"act_fn", "activation"},
    {"layer_norm_eps", "norm_eps"},
    {"rms_norm_eps", "norm_eps"},
    {"tie_word_embeddings", "share_embeddings"},
    {"share_all_embeddings", "share_embeddings"},
    {"tied_embeddings", "share_embeddings"},
    {"max_position_embeddings", "max_positions"},
    {"normalize_before", "residual"},
    {"norm_first", "residual"},
    {"num_labels", "labels"},
    {"init", "initialization"},
    // variants
    {"prenorm", "pre-ln"},
    {"pre_norm", "pre-ln"},
    {"postnorm", "post-ln"},
    {"post_norm", "post-ln"},
    {"peri_ln", "sandwich"},
    {"resi_dual", "residual-dual"},
    {"layer_norm", "layernorm"},
    {"rms_norm", "rmsnorm"},
    {"inverse_sqrt", "rsqrt_decay"},
    {"inverse_square_root", "rsqrt_decay"},
    {"noam", "rsqrt_decay"},
    {"cosine", "cosine_decay"},
    {"cosine_with_warmup", "cosine_decay"},
    {"linear", "linear_decay"},
    {"wsd", "stable_decay"},
    {"multistep", "step_decay"},
    {"rope", "rotary"},
    {"seq2seq", "encoder-decoder"},
    {"causal_lm", "decoder"},
    {"gpt", "decoder"},
    {"masked_lm", "masked-language-modeling"},
    {"mlm", "masked-language-modeling"},
    {"clm", "language-modeling"},
});

// What papers call variants that have another name here.
constexpr auto kPapers = std::to_array<Names>({
    {"prenorm", "pre-ln"},
    {"postnorm", "post-ln"},
    {"residual", "residual-dual"},
    {"rope", "rotary"},
    {"dyt", "dynamic-tanh"},
    {"layernormscaling", "lns"},
    {"attentionresiduals", "attnres"},
});

/// Letters, digits and other signs in lower case, without what joins words.
std::string joined(std::string_view word) {
  std::string text;
  for (const char c : word)
    if (c != '-' && c != '_' && c != ' ') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string plain(std::string_view word) {
  std::string text(word);
  for (char& c : text) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::string_view name_in_plumb(std::string_view word) {
  const std::string text = plain(word);
  const std::string_view* found = find_value(kNames, text);
  return found == nullptr ? std::string_view() : *found;
}

bool is_written(std::string_view name, std::string_view word) {
  const std::string text = joined(word);
  const std::string_view* paper = find_value(kPapers, text);
  return joined(name) == text || (paper != nullptr && *paper == name);
}

}  // namespace plumb
