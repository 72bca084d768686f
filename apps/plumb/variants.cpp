#include "variants.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <limits>

#include "plumb/base/text.h"
#include "plumb/evaluate/metrics.h"
#include "plumb/metrics/bleu_smoothing.h"
#include "plumb/metrics/bleu_tokenizer.h"
#include "plumb/model/kind.h"
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
#include "plumb/train/alarm.h"

namespace plumb::app {
namespace {

template <typename Factory>
VariantKind kind_in(const std::string& id, const Registry<Factory>& registry) {
  VariantKind kind{id, registry.kind(), registry.about(), {}};
  const std::string section = kind.about.key.substr(0, kind.about.key.rfind('.') + 1);  // "train."
  for (const auto& [name, entry] : registry.entries()) {
    KeyList options;
    Options(entry.options).visit(options);
    kind.variants.push_back({name, entry.summary, entry.reference, options.keys()});
    for (KeyList::Key& key : kind.variants.back().options) key.name = section + name + '.' + key.name;
  }
  return kind;
}

constexpr size_t kPageWidth = 120;

/// Text as a cell of a table in Markdown, which a bare "|" would end.
std::string table_cell(std::string text) {
  replace_all(text, "|", "\\|");
  return text;
}

/// The choices, unless the text names all of them; "a" is named as `a`.
std::string choices_to_name(const std::vector<std::string>& choices, const std::string& text) {
  std::vector<std::string> quoted;
  bool named = true;
  for (const std::string& choice : choices) {
    quoted.push_back('`' + choice + '`');
    named = named && text.find(quoted.back()) != std::string::npos;
  }
  return named ? std::string() : "one of " + join(quoted);
}

/// The bounds of a number in words, unless they are what anyone expects: of a count, of what cannot be negative, or
/// far above any use.
std::string notable_bounds(Domain domain) {
  constexpr double kFarAbove = 1000;
  if (domain.largest > kFarAbove) domain.largest = std::numeric_limits<double>::infinity();
  if (std::isinf(domain.largest) && !domain.above && (domain.smallest == 0 || domain.smallest == 1)) return {};
  return domain.smallest == epsilon().smallest ? "above 0" : in_words(domain);
}

std::string options_table(const std::vector<Variant>& variants) {
  std::string text;
  for (const Variant& variant : variants) {
    for (const KeyList::Key& option : variant.options)
      text += fmt::format("| `{}` | `{}` | {} |\n", option.name, option.value, whole_meaning(option));
  }
  return text.empty() ? text : "\n| option | default | meaning |\n| --- | --- | --- |\n" + text;
}

constexpr const char* kIntroduction =
    "The variants that a configuration can select, by name. `make variants` regenerates this page from the registries, "
    "with `plumb list --markdown`. An unknown name is an error that lists the known ones. Options of a variant are "
    "keys in a section with its name. [library.md](library.md#extending-plumb) explains how to add a variant.";

}  // namespace

std::string whole_meaning(const KeyList::Key& key) {
  const Domain& domain = key.domain;
  std::string text = table_cell(key.meaning);
  if (!domain.unit.empty() && text.find(domain.unit) == std::string::npos) text += fmt::format(", in {}", domain.unit);
  const std::string more = domain.choices.empty() ? notable_bounds(domain)
                           : domain.kind.empty()  ? choices_to_name(domain.choices, text)
                                                  : std::string();
  return more.empty() ? text : text + "; " + more;
}

std::string VariantKind::heading() const { return fmt::format("{}: `{}`", about.title, about.key); }

std::string VariantKind::link() const {
  std::string anchor;  // as GitHub makes it from the heading
  for (const char c : heading()) {
    if (c == ' ' || c == '-') anchor += '-';
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return "variants.md#" + anchor;
}

std::vector<VariantKind> variant_kinds() {
  return {kind_in("residual", residual_schemes()),
          kind_in("norm", norms()),
          kind_in("position", positions()),
          kind_in("attention", attentions()),
          kind_in("feed-forward", feed_forwards()),
          kind_in("initialization", initializations()),
          kind_in("pooling", poolings()),
          kind_in("optimizer", optimizers()),
          kind_in("schedule", schedule_factors()),
          kind_in("task", tasks()),
          kind_in("watch", watches()),
          kind_in("alarm", alarms()),
          kind_in("bleu-tokenizer", bleu_tokenizers()),
          kind_in("bleu-smoothing", bleu_smoothings()),
          kind_in("evaluation-metric", evaluation_metrics()),
          kind_in("model", model_kinds())};
}

ManualList listed(const VariantKind& kind) {
  ManualList list{kind.id, fmt::format("{} ({})\n", kind.about.title, kind.about.key), {}};
  for (const Variant& v : kind.variants) {
    std::string text = fmt::format("  {:<18} {}\n", v.name, v.equation);
    if (!v.source.empty()) text += fmt::format("  {:<18} {}\n", "", v.source);
    for (const KeyList::Key& option : v.options)
      text += fmt::format("  {:<18} {} = {}: {}\n", "", option.name, option.value, option.meaning);
    list.variants.push_back({v.name, text});
  }
  return list;
}

std::string variants_page() {
  std::string text = "# Variants\n" + wrapped(kIntroduction, kPageWidth);
  for (const VariantKind& kind : variant_kinds()) {
    text += fmt::format("\n## {}\n", kind.heading());
    if (!kind.about.before.empty()) text += wrapped(kind.about.before, kPageWidth) + '\n';
    text += "| name | equation | source |\n| --- | --- | --- |\n";
    for (const Variant& v : kind.variants)
      text += fmt::format("| `{}` | {} |{} |\n", v.name, table_cell(v.equation),
                          v.source.empty() ? "" : " " + table_cell(v.source));
    text += options_table(kind.variants);
    if (!kind.about.after.empty()) text += '\n' + wrapped(kind.about.after, kPageWidth);
  }
  return text;
}

}  // namespace plumb::app
