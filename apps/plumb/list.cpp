// plumb list: every variant that a configuration can choose, with its equation and paper; also as docs/variants.md.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/key_list.h"
#include "plumb/base/text.h"
#include "plumb/metrics/bleu_smoothing.h"
#include "plumb/metrics/bleu_tokenizer.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/nn/init/init.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/pooling.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/schedule.h"
#include "plumb/task/task.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct Variant {
  std::string name;
  std::string equation;
  std::string source;
  std::vector<KeyList::Key> options;  // its own, with their defaults
};

/// A kind of variants: one section of the documentation.
struct Kind {
  std::string id;     // as the argument of the verb
  std::string title;  // "Norms"
  std::string key;    // where a name is written: "model.norm"
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

/// The whole name of an option: "train.adam.beta1" for a kind that is chosen by the key "train.optimizer".
std::string option_path(const Kind& kind, const Variant& variant, const KeyList::Key& option) {
  return kind.key.substr(0, kind.key.rfind('.') + 1) + variant.name + "." + option.name;
}

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  all.push_back(
      {"residual", "Residual schemes", "model.residual",
       "x is the stream, f a sub-layer (self-attention, cross-attention or feed-forward).",
       "A scheme can also be written as tensor2tensor's two strings (`layers/common_layers.py`) with a slash "
       "between, PRE/POST, read left to right: PRE acts on what f reads, POST on what it gives, y. `d` is "
       "dropout, `n` the norm of the model, `r` RMSNorm (Marian); in POST alone, `a` is x + y, `z` is x + γ·y "
       "with γ a trained scalar from 0, and `h` (Marian) is σ(t)∘y + (1 − σ(t))∘x with t = W·x + b. A scheme "
       "whose PRE is not empty ends each stack with PRE once more. `/dan` is `post-ln`, `n/da` is `pre-ln`, "
       "`n/dna` is `sandwich`, `/dz` is `rezero`, `/da` is `plain`, `/dn` is `no-residual`.",
       variants(residual_schemes())});
  all.push_back({"norm", "Norms", "model.norm",
                 "Over the features of each token, or for each feature over the tokens of a batch; `model.norm_eps` is "
                 "eps, γ and β are trained.",
                 "", variants(norms())});
  all.push_back(
      {"position", "Positions", "model.positions",
       "Added to the embeddings, which are multiplied by √d before (`model.embedding_factor`), or acting "
       "within self-attention: `rotary` "
       "rotates queries and keys, whatever the attention; `alibi`, `t5` and `transformer-xl` add to the scores "
       "of softmax attention and go with no other. i is the query's position, j the key's, h = 1 … heads; "
       "cross-attention knows no positions.",
       "", variants(positions())});
  all.push_back(
      {"attention", "Attention", "model.attention",
       "Of every self- and cross-attention, for each head; size is that of a head. With `model.kv_heads`, query heads "
       "in groups share keys and values. All but `softmax` are fast weights: a "
       "matrix S that a position writes φ(k) and v to and reads with φ(q), at a cost linear in length. Causal "
       "attention reads after its own position has written; other attention, cross-attention among it, when the "
       "whole sequence has, in order.",
       "Random directions of `favor` are a function of the layer's name and of the number of the redrawing; outside "
       "of training they are the first ones. `model.qk_norm`, a norm's name, normalizes queries and keys of each "
       "head, with gains of its own, before they meet (Henry et al. 2020, arXiv 2010.04245; Dehghani et al. 2023, "
       "arXiv 2302.05442).",
       variants(attentions())});
  all.push_back({"feed-forward", "Feed-forward sub-layers", "model.activation",
                 "W₁ and W₃ map from `model.d_model` to `model.feed_forward` features, W₂ back; without "
                 "`model.feed_forward_bias` there are no b. Φ is the normal distribution function, σ the logistic one.",
                 "", variants(feed_forwards())});
  all.push_back(
      {"initialization", "Initializations", "model.initialization",
       "Of weight matrices. Query, key and value are matrices of their own, though they lie in one. In every "
       "kind, embeddings and the output matrix are N(0, 1/d) if nothing else is said, learned positions "
       "N(0, 0.02²), gains 1, biases and shifts 0, and constants of a residual scheme or a norm what it says.",
       "", variants(initializations())});
  all.push_back({"pooling", "Pooling", "model.pooling",
                 "What an `encoder` makes of the vectors of a sequence's tokens before it predicts the label; with "
                 "`model.pooler`, tanh(W·x + b) of that.",
                 "", variants(poolings())});
  all.push_back({"optimizer", "Optimizers", "train.optimizer",
                 "g is the gradient after clipping to `train.clip_norm`, lr the learning rate of the step t, "
                 "weight_decay `train.weight_decay`; both can differ between `[[train.groups]]`, and norms, biases, "
                 "scalars and positions have no weight decay unless a group gives them some. The parameters that a "
                 "group freezes stay as they are, and so does what is remembered of them.",
                 "", variants(optimizers())});
  all.push_back({"schedule", "Schedule factors", "train.schedule",
                 "The learning rate of a step is the product of the factors, joined by `*`. Steps count from 1. s is "
                 "`train.decay_start`, or `train.warm_up` (at least 1) if that is 0.",
                 "", variants(schedule_factors())});
  all.push_back({"task", "Tasks", "task.name", "What is learnt from a data directory, which says what it is made for.",
                 "Every label has a weight in the loss. Metrics of all tasks: `valid_loss` and `valid_nll`, nats per "
                 "label; of translation `bleu`, of language modeling `perplexity`, of classification `accuracy` and "
                 "`f1`.",
                 variants(tasks())});
  all.push_back({"bleu-tokenizer", "BLEU tokenizers", "plumb score --tokenize", "", "", variants(bleu_tokenizers())});
  all.push_back({"bleu-smoothing", "BLEU smoothings", "plumb score --smoothing",
                 "What an order of n-grams without a match counts.", "", variants(bleu_smoothings())});
  return all;
}

/// Words wrapped at 120 characters.
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

std::string markdown(const std::vector<Kind>& all) {
  std::string text =
      "# Variants\n" +
      wrapped(
          "What a configuration can choose from, by name. This page is what `plumb list --markdown` prints from "
          "the registries; `make variants` writes it. An unknown name is an error that lists the known ones. "
          "Options of a variant are keys of a section of its name. [extending.md](extending.md) says how to add one.");
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
  text += "\n## Kinds of models: `model.kind`\n" +
          wrapped(
              "`encoder-decoder` translates (Vaswani et al. 2017). `decoder` is the decoder alone, without "
              "cross-attention: a causal language model of the target side of the data. `encoder` is the encoder "
              "alone, which reads the source side in both directions and gives it one of `model.labels` labels "
              "(Devlin et al. 2019, arXiv 1810.04805).");
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

void add_list(CLI::App& app, Globals& globals) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* verb = add_verb(app, globals, "list", "List the variants to choose from, with equation and paper",
                            "plumb list residual", [options, &globals] { list(*options, globals); });
  add_json_option(*verb, globals);
  verb->add_option("KIND", options->kind, "residual, norm, position, …: list these alone (default: all)");
  verb->add_flag("--markdown", options->markdown, "Print docs/variants.md");
}

}  // namespace plumb::app
