// plumb list: lists the variants for configurations, with equations and papers; also prints docs/variants.md.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "keys.h"
#include "manual.h"
#include "plumb/base/error.h"
#include "plumb/base/key_list.h"
#include "plumb/base/text.h"
#include "plumb/evaluate/metrics.h"
#include "plumb/evaluate/task.h"
#include "plumb/metrics/bleu_smoothing.h"
#include "plumb/metrics/bleu_tokenizer.h"
#include "plumb/model/awd_lstm.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/nn/init/init.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/pooling.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/schedule.h"
#include "plumb/run/watch.h"
#include "plumb/task/task.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct Variant {
  std::string name;
  std::string equation;
  std::string source;
  std::vector<KeyList::Key> options;  // the variant's own options, with their defaults
};

/// A kind of variant; becomes one section of the documentation.
struct Kind {
  std::string id;     // the name on the command line
  std::string title;  // "Norms"
  std::string key;    // the key that selects a variant: "model.norm"
  std::string before;
  std::string after;
  std::vector<Variant> variants;
};

template <typename Factory>
std::vector<Variant> variants(const Registry<Factory>& registry) {
  std::vector<Variant> all;
  for (const auto& [name, entry] : registry.entries()) {
    KeyList options;
    Options(entry.options).visit(options);
    all.push_back({name, entry.summary, entry.reference, options.keys()});
  }
  return all;
}

/// The full name of an option: "train.adam.beta1" for a kind selected by the key "train.optimizer".
std::string option_path(const Kind& kind, const Variant& variant, const KeyList::Key& option) {
  return kind.key.substr(0, kind.key.rfind('.') + 1) + variant.name + "." + option.name;
}

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  all.push_back(
      {"residual", "Residual schemes", "model.residual",
       "x is the stream, f a sub-layer (self-attention, cross-attention or feed-forward).",
       "A scheme can also be written as tensor2tensor's two strings (`layers/common_layers.py`) with a slash "
       "between, PRE/POST, read left to right: PRE is applied to the input of f, POST to its output y. `d` is dropout, "
       "`n` the norm of the model, `r` RMSNorm (Marian); in POST only, `a` is x + y, `z` is x + γ·y with a trained "
       "scalar γ, initially 0, and `h` (Marian) is σ(t)∘y + (1 − σ(t))∘x with t = W·x + b. If PRE is not empty, each "
       "stack ends with PRE once more. `/dan` is `post-ln`, `n/da` is `pre-ln`, `n/dna` is `sandwich`, `/dz` is "
       "`rezero`, `/da` is `plain`, `/dn` is `no-residual`. "
       "Some schemes prescribe more than the stream. `hybridnorm` and `hybridnorm-star` normalize the queries, keys "
       "and values of each head; `model.qk_norm`, if set, replaces the first two norms. The last sub-layer of a "
       "layer counts as feed-forward. `ngpt` keeps embeddings and matrices made of vectors of length 1, scales "
       "queries and keys to length 1 after their rotation and multiplies both by a trained vector in each head, "
       "initially 1, unless `model.qk_norm` is set, and multiplies each logit by a trained scale, initially 1. It "
       "deviates from the paper in the scales of the feed-forward sub-layer, s_u and s_v, which stay at their initial "
       "values. The paper's model also has rotary positions, `swiglu`, no biases, "
       "and an output matrix of its own. `plumb probe` shows the sum of the hidden vectors of `hyper-connections` "
       "and `mhc`, x of `siamesenorm` and `residual-dual`, and what the next sub-layer of `attnres` reads.",
       variants(residual_schemes())});
  all.push_back({"norm", "Norms", "model.norm",
                 "Computed over the features of each token, or for each feature over the tokens of a batch. eps is "
                 "`model.norm_eps`; γ and β are trained.",
                 "", variants(norms())});
  all.push_back(
      {"position", "Positions", "model.positions",
       "Added to the embeddings, which are first multiplied by √d (`model.embedding_factor`), or applied within "
       "self-attention: `rotary` rotates queries and keys and works with any attention; `alibi`, `t5` and "
       "`transformer-xl` add to the scores of softmax attention and work with no other. i is the query's position, j "
       "the key's, h = 1 … heads. Cross-attention uses no positions.",
       "", variants(positions())});
  all.push_back(
      {"attention", "Attention", "model.attention",
       "Applies to every self- and cross-attention, for each head; size is the head size. With `model.kv_heads`, "
       "groups of query heads share keys and values. All kinds except `softmax` are fast weights: each position "
       "writes φ(k) and v to a matrix S and reads it with φ(q), at a cost linear in length. In causal attention, a "
       "position reads after writing; in any other attention, including cross-attention, all positions are written in "
       "order before any is read.",
       "The random directions of `favor` are a function of the layer's name and the redraw index; outside training, "
       "the first ones are used, so that validation is conditional on one draw, while training sees many. "
       "`model.qk_norm`, the name of a norm, normalizes the queries and keys of each head, with "
       "separate gains, before their product (Henry et al. 2020, arXiv 2010.04245; Dehghani et al. 2023, "
       "arXiv 2302.05442).",
       variants(attentions())});
  all.push_back(
      {"feed-forward", "Feed-forward sub-layers", "model.activation",
       "W₁ and W₃ map `model.d_model` to `model.feed_forward` features, and W₂ maps back; without "
       "`model.feed_forward_bias` there are no biases b. Φ is the normal distribution function, σ the logistic one.",
       "", variants(feed_forwards())});
  all.push_back(
      {"initialization", "Initializations", "model.initialization",
       "Initializes weight matrices. Query, key and value count as separate matrices, though they are stored as one. "
       "Unless stated otherwise, embeddings and the output matrix are N(0, 1/d), learned positions N(0, 0.02²), gains "
       "1, biases and shifts 0; residual schemes and norms set their own constants.",
       "", variants(initializations())});
  all.push_back({"pooling", "Pooling", "model.pooling",
                 "How an `encoder`, or a language model with labels, reduces the vectors of a sequence's tokens to "
                 "one, from which "
                 "it predicts the label; in an encoder with `model.pooler`, tanh(W·x + b) is applied to the result.",
                 "", variants(poolings())});
  all.push_back(
      {"optimizer", "Optimizers", "train.optimizer",
       "g is the gradient after clipping (`train.clip_value`, `train.clip_block`, `train.clip_norm`), lr the learning "
       "rate at step t, and weight_decay `train.weight_decay`; lr and weight_decay can differ between "
       "`[[train.groups]]`. Norms, biases, scalars and positions have no weight decay unless a group sets one. Frozen "
       "parameters and their optimizer state do not change. With `train.cautious`, the elements of an update u whose "
       "sign disagrees with the gradient's are left out, and the rest of a parameter's update is scaled up in "
       "proportion.",
       "Weight decay is part of the update, not a factor on w: in float32, a decay lr·weight_decay below 6e-8, the "
       "relative distance between neighboring numbers, moves only some of the weights, each by that distance, in such "
       "a proportion that the decay is exact on average. A weight without an update, because its gradient has long "
       "been 0, keeps its value.",
       variants(optimizers())});
  all.push_back({"schedule", "Schedule factors", "train.schedule",
                 "The learning rate of a step is the product of the factors, joined by `*`. Steps count from 1. s is "
                 "`train.decay_start` or, if that is 0, `train.warm_up` (at least 1).",
                 "", variants(schedule_factors())});
  all.push_back(
      {"task", "Tasks", "task.name", "What is learned from a data directory; the directory names its task.",
       "Every label has a weight in the loss. All tasks report `valid_loss` and `valid_nll` in nats per "
       "label; translation also reports `bleu`, language modeling `perplexity`, masked language modeling `perplexity` "
       "and `accuracy` at the masked tokens, and classification `accuracy`, `f1` and `mcc` (Matthews' correlation "
       "coefficient), each with the ends of its 95% interval, such as `accuracy_low`. With `stream`, all lines or "
       "blocks "
       "form one text, which is cut into rows of equal length. A step predicts the next tokens of every row, each from "
       "the token before it in the text, and begins with the state that the previous step left; so does evaluation, "
       "whose perplexity is over all tokens of the split. An epoch begins with a state of zeros. "
       "[training.md](training.md#recurrent-models) says what else changes.",
       variants(tasks())});
  all.push_back(
      {"watch", "Watches", "watch.what",
       "What `plumb train` measures along a run, before training, after the first step and after every "
       "`watch.every` steps, on the first `watch.examples` examples of `watch.split` unless stated otherwise, without "
       "dropout. A measurement does not change the run. [formats/run.md](formats/run.md#watches) lists the numbers.",
       "", variants(watches())});
  all.push_back({"bleu-tokenizer", "BLEU tokenizers", "plumb score --tokenize", "", "", variants(bleu_tokenizers())});
  all.push_back({"bleu-smoothing", "BLEU smoothings", "plumb score --smoothing",
                 "How n-gram orders without a match are counted.", "", variants(bleu_smoothings())});
  all.push_back({"evaluation", "Evaluation tasks", "plumb evaluate --tasks",
                 "The name of a task with parts selects all of them; a part is named `TASK_PART`. "
                 "[evaluation.md](evaluation.md) says "
                 "which files they are read from.",
                 "", variants(evaluation_tasks())});
  all.push_back({"evaluation-metric", "Evaluation metrics", "plumb evaluate",
                 "What tasks are scored by; each task has its own.", "", variants(evaluation_metrics())});
  return all;
}

/// Wraps text at 120 characters.
std::string wrapped(const std::string& text) {
  std::string out;
  size_t width = 0;  // in characters, not bytes
  for (const std::string& word : split(text, ' ')) {
    size_t length = 0;
    for (const char c : word) length += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    const bool fits = width > 0 && width + 1 + length <= 120;
    if (width > 0) out += fits ? ' ' : '\n';
    width = fits ? width + 1 + length : length;
    out += word;
  }
  return out + '\n';
}

std::string options_table(const Kind& kind) {
  std::string text;
  for (const Variant& v : kind.variants) {
    for (const KeyList::Key& option : v.options) {
      text += fmt::format("| `{}` | `{}` | {} |\n", option_path(kind, v, option), option.value, option.meaning);
    }
  }
  return text.empty() ? text : "\n| option | default | meaning |\n| --- | --- | --- |\n" + text;
}

/// Only for the table of options of model.kind = "awd-lstm".
Kind awd_lstm_kind() {
  KeyList options;
  AwdLstmOptions defaults;
  describe(options, defaults);
  return {"kind", "", "model.kind", "", "", {{"awd-lstm", "", "", options.keys()}}};
}

std::string markdown(const std::vector<Kind>& all) {
  std::string text =
      "# Variants\n" +
      wrapped(
          "The variants that a configuration can select, by name. `make variants` regenerates this page from the "
          "registries, with `plumb list --markdown`. An unknown name is an error that lists the known ones. Options of "
          "a "
          "variant are keys in a section with its name. [extending.md](extending.md) explains how to add a variant.");
  for (const Kind& kind : all) {
    text += fmt::format("\n## {}: `{}`\n", kind.title, kind.key);
    if (!kind.before.empty()) text += wrapped(kind.before) + '\n';
    text += "| name | equation | source |\n| --- | --- | --- |\n";
    for (const Variant& v : kind.variants) {
      text += fmt::format("| `{}` | {} |{} |\n", v.name, v.equation, v.source.empty() ? "" : " " + v.source);
    }
    text += options_table(kind);
    if (!kind.after.empty()) text += '\n' + wrapped(kind.after);
  }
  text +=
      "\n## Kinds of models: `model.kind`\n" +
      wrapped(
          "`encoder-decoder` translates (Vaswani et al. 2017). `decoder` is the decoder alone, without "
          "cross-attention: a causal language model of the data's target side. `encoder` is the encoder alone, "
          "which reads the source side bidirectionally and predicts one of `model.labels` labels (Devlin et "
          "al. 2019, arXiv 1810.04805). `awd-lstm` is a recurrent language model of the target side (Merity et "
          "al. 2018, arXiv 1708.02182): `model.layers` layers of LSTM, of widths `model.embedding_size` → "
          "`model.hidden_size` → … → `model.embedding_size`, whose output layer has a bias and shares the "
          "embedding's matrix; each sequence begins with a state of zeros, unless it continues a "
          "[stream](#tasks-taskname). With `model.labels` it is the classifier of ULMFiT (Howard & Ruder 2018, "
          "arXiv 1801.06146): states at the end of a text, pooled by `model.pooling`, go through two blocks of batch "
          "norm, dropout and a linear layer, with ReLU between them. Of the other keys of `[model]` it reads only "
          "the vocabulary, `norm_eps` and the initialization; the initialization `lstm` is made for it. In training "
          "steps it is "
          "regularized by the following; locked masks are the same for all positions of a sequence.") +
      options_table(awd_lstm_kind());
  return text;
}

std::string human(const std::vector<Kind>& all) {
  std::string text;
  for (const Kind& kind : all) {
    text += fmt::format("{}{} ({})\n", text.empty() ? "" : "\n", kind.title, kind.key);
    for (const Variant& v : kind.variants) {
      text += fmt::format("  {:<18} {}\n", v.name, v.equation);
      if (!v.source.empty()) text += fmt::format("  {:<18} {}\n", "", v.source);
      for (const KeyList::Key& option : v.options) {
        text += fmt::format("  {:<18} {} = {}: {}\n", "", option_path(kind, v, option), option.value, option.meaning);
      }
    }
  }
  return text;
}

Json document(const std::vector<Kind>& all) {
  Json json = make_document("list", 1);
  json["kinds"] = Json::array();
  for (const Kind& kind : all) {
    Json list = Json::array();
    for (const Variant& v : kind.variants) {
      list.push_back({{"name", v.name}, {"equation", v.equation}, {"source", v.source}});
      for (const KeyList::Key& option : v.options) {
        list.back()["options"].push_back(
            {{"key", option_path(kind, v, option)}, {"default", option.value}, {"meaning", option.meaning}});
      }
    }
    json["kinds"].push_back({{"kind", kind.id}, {"key", kind.key}, {"variants", list}});
  }
  return json;
}

struct ListOptions {
  std::string kind;  // empty: all
  bool markdown = false;
};

void list(const ListOptions& options, const Globals& globals) {
  std::vector<Kind> all = kinds();
  if (!options.kind.empty()) {
    std::vector<std::string> ids;
    for (const Kind& kind : all) ids.push_back(kind.id);
    std::erase_if(all, [&](const Kind& kind) { return kind.id != options.kind; });
    if (all.empty()) throw UsageError(fmt::format("unknown kind '{}'", options.kind), "known: " + join(ids));
  }
  if (options.markdown) {
    std::cout << markdown(all);
  } else {
    emit(globals, document(all), human(all));
  }
}

}  // namespace

std::vector<ChoiceKey> choice_keys() {
  std::vector<ChoiceKey> keys;
  for (const Kind& kind : kinds()) {
    if (kind.key.find(' ') != std::string::npos) continue;  // an option of a verb
    ChoiceKey key{kind.key, {}, {}};
    for (const Variant& v : kind.variants) {
      key.names.push_back(v.name);
      for (const KeyList::Key& option : v.options) key.options.push_back(option_path(kind, v, option));
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

void add_list(CLI::App& app, Globals& globals) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* verb = add_verb(app, globals, "list", "List the available variants with their equations and papers",
                            "plumb list residual", [options, &globals] { list(*options, globals); });
  add_json_option(*verb, globals);
  std::vector<std::string> ids;
  for (const Kind& kind : kinds()) ids.push_back(kind.id);
  suggest(verb->add_option("KIND", options->kind, "Kind of variant: residual, norm, position, … (default: all)"), ids);
  verb->add_flag("--markdown", options->markdown, "Print docs/variants.md");
}

}  // namespace plumb::app
