// plumb score: BLEU and chrF of translations, with confidence intervals and tests between systems.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "checks.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/text.h"
#include "plumb/metrics/bleu.h"
#include "plumb/metrics/bleu_smoothing.h"
#include "plumb/metrics/bleu_tokenizer.h"
#include "plumb/metrics/chrf.h"
#include "plumb/metrics/resampling.h"
#include "plumb/metrics/unicode.h"
#include "score_report.h"
#include "verb.h"

namespace plumb::app {
namespace {

using Sentences = std::vector<std::string>;

struct ScoreArguments {
  std::vector<std::string> references;
  std::vector<std::string> hypotheses;  // "-": standard input
  std::string metrics = "bleu,chrf";
  std::string paired;
  bool confidence = false;
  bool sentences = false;
  int64_t samples = 1000;
  int64_t trials = 10000;
  bool lowercase = false;
  BleuOptions bleu;
  ChrfOptions chrf;
};

// As in sacreBLEU, white space at the end of a line is ignored.
Sentences read_sentences(const std::string& path) {
  Sentences lines = path == "-" ? read_standard_input() : read_lines(path);
  for (std::string& line : lines) line.resize(without_trailing_space(line).size());
  return lines;
}

std::string display_name(const std::string& path) { return path == "-" ? "standard input" : path; }

void require_equal_lengths(const std::string& name, const Sentences& system, const std::string& reference_name,
                           const Sentences& reference) {
  if (system.size() == reference.size()) return;
  throw Error(fmt::format("{} has {} line{}, but reference {} has {}", name, system.size(),
                          system.size() == 1 ? "" : "s", reference_name, reference.size()),
              "line i of every file must be a translation of the same sentence");
}

/// One of `--metrics`, with its options.
struct ChosenMetric {
  std::string key;
  CorpusMetric metric;
  CorpusMetric of_sentences;
};

ChosenMetric choose_metric(const std::string& key, const ScoreArguments& arguments) {
  if (key == "bleu") {
    BleuOptions options = arguments.bleu;
    options.lowercase = arguments.lowercase;
    BleuOptions of_sentences = options;
    of_sentences.effective_order = true;  // leaves out orders without n-grams
    return {key, bleu_metric(options), bleu_metric(of_sentences)};
  }
  if (key == "chrf") {
    ChrfOptions options = arguments.chrf;
    options.lowercase = arguments.lowercase;
    return {key, chrf_metric(options), chrf_metric(options)};
  }
  throw UsageError(fmt::format("--metrics: unknown metric '{}'", key), "known: bleu, chrf");
}

std::vector<ChosenMetric> choose_metrics(const ScoreArguments& arguments) {
  std::vector<ChosenMetric> chosen;
  for (const std::string& key : split(arguments.metrics, ',')) {
    if (std::any_of(chosen.begin(), chosen.end(), [&](const ChosenMetric& earlier) { return earlier.key == key; })) {
      throw UsageError(fmt::format("--metrics: '{}' is named twice", key));
    }
    chosen.push_back(choose_metric(key, arguments));
  }
  return chosen;
}

bool uses_bootstrap(const ScoreArguments& arguments) { return arguments.confidence || arguments.paired == "bootstrap"; }

std::string resampling_signature(const ScoreArguments& arguments, uint64_t seed) {
  std::vector<std::string> parts;
  if (uses_bootstrap(arguments)) parts.push_back(fmt::format("bs:{}", arguments.samples));
  if (arguments.paired == "randomization") parts.push_back(fmt::format("ar:{}", arguments.trials));
  if (parts.empty()) return "";
  return fmt::format("{}|seed:{}", join(parts, "|"), seed);
}

void compare_with_first(MetricScores& scores, const CorpusMetric& metric, const std::vector<SentenceCounts>& counts,
                        const std::vector<std::vector<double>>& samples, const ScoreArguments& arguments,
                        uint64_t seed) {
  for (size_t i = 1; i < counts.size(); ++i) {
    ScoreComparison comparison{.difference = scores.systems[i].score - scores.systems[0].score};
    if (!samples.empty()) {
      std::vector<double> differences;
      for (size_t k = 0; k < samples[i].size(); ++k) differences.push_back(samples[i][k] - samples[0][k]);
      comparison.interval = interval_of_samples(differences);
    }
    comparison.p_value =
        arguments.paired == "bootstrap"
            ? bootstrap_p_value(samples[0], samples[i], comparison.difference)
            : randomization_p_value(metric, counts[0], counts[i], {.samples = arguments.trials, .seed = seed});
    scores.systems[i].comparison = comparison;
  }
}

ScoreDetails bleu_details(const std::vector<int64_t>& counts, const BleuOptions& options) {
  const BleuScore bleu = bleu_of_counts(counts, options);
  std::vector<std::string> precisions;
  for (const double precision : bleu.precisions) precisions.push_back(fmt::format("{:.1f}", precision));
  const auto words = static_cast<double>(bleu.system_length), wanted = static_cast<double>(bleu.reference_length);
  return {
      {{"precisions", bleu.precisions},
       {"brevity_penalty", bleu.brevity_penalty},
       {"system_length", bleu.system_length},
       {"reference_length", bleu.reference_length}},
      fmt::format(" {} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", join(precisions, "/"),
                  bleu.brevity_penalty, wanted == 0 ? 0.0 : words / wanted, bleu.system_length, bleu.reference_length)};
}

MetricScores score_systems(const ChosenMetric& chosen, const std::vector<Sentences>& systems,
                           const std::vector<Sentences>& references, const ScoreArguments& arguments, uint64_t seed) {
  const CorpusMetric& metric = chosen.metric;
  std::vector<SentenceCounts> counts;
  for (const Sentences& system : systems) counts.push_back(count_sentences(metric, system, references));
  std::vector<std::vector<double>> samples;
  if (uses_bootstrap(arguments))
    samples = bootstrap_scores(metric, counts, {.samples = arguments.samples, .seed = seed});

  MetricScores scores{.key = chosen.key,
                      .name = metric.name,
                      .signature = metric_signature(metric, references.size(), resampling_signature(arguments, seed))};
  for (size_t i = 0; i < counts.size(); ++i) {
    const std::vector<int64_t> sums = counts[i].sum();
    SystemScore& system = scores.systems.emplace_back();
    system.score = metric.score(sums);
    if (chosen.key == "bleu") system.details = bleu_details(sums, arguments.bleu);
    if (!samples.empty()) system.interval = interval_of_samples(samples[i]);
    if (arguments.sentences) system.sentences = sentence_scores(chosen.of_sentences, counts[i]);
  }
  if (!arguments.paired.empty()) compare_with_first(scores, metric, counts, samples, arguments, seed);
  return scores;
}

void score(ScoreArguments arguments, const Globals& globals) {
  if (arguments.hypotheses.empty()) arguments.hypotheses = {"-"};
  for (std::string& path : arguments.hypotheses) {
    if (path.empty()) path = "-";
  }
  if (std::count(arguments.hypotheses.begin(), arguments.hypotheses.end(), "-") > 1) {
    throw UsageError("standard input can be only one of the systems");
  }
  if (!arguments.paired.empty() && arguments.hypotheses.size() < 2) {
    throw UsageError("--paired compares systems, but there is only one",
                     "name each with --hypothesis, the baseline first");
  }
  const std::vector<ChosenMetric> metrics = choose_metrics(arguments);

  // References first, so that a wrong path is reported before waiting for standard input.
  std::vector<Sentences> references;
  for (const std::string& path : arguments.references) references.push_back(read_sentences(path));
  ScoreReport report{.paired = arguments.paired, .seed = globals.seed};
  if (uses_bootstrap(arguments)) report.samples = arguments.samples;
  if (arguments.paired == "randomization") report.trials = arguments.trials;
  std::vector<Sentences> systems;
  for (const std::string& path : arguments.hypotheses) {
    report.systems.push_back(display_name(path));
    systems.push_back(read_sentences(path));
    if (systems.back().empty()) {
      throw Error(report.systems.back() + " is empty: there is nothing to score", "provide one translation per line");
    }
    for (size_t i = 0; i < references.size(); ++i) {
      require_equal_lengths(report.systems.back(), systems.back(), arguments.references[i], references[i]);
    }
  }
  for (const ChosenMetric& metric : metrics) {
    report.metrics.push_back(score_systems(metric, systems, references, arguments, globals.seed));
  }
  emit(globals, document(report), text_of(report));
}

void add_resampling_options(CLI::App& verb, ScoreArguments& arguments) {
  verb.add_flag("--confidence", arguments.confidence, "Give 95% bootstrap intervals");
  verb.add_option(
          "--paired", arguments.paired,
          "Test each system against the first by paired bootstrap, which gives intervals too, or by approximate "
          "randomization")
      ->check(CLI::IsMember({"bootstrap", "randomization"}));
  verb.add_option("--samples", arguments.samples, "Samples of the bootstrap")->check(between(1, 10'000'000));
  verb.add_option("--trials", arguments.trials, "Trials of approximate randomization")->check(between(1, 10'000'000));
}

void add_bleu_options(CLI::App& verb, BleuOptions& options) {
  verb.add_option("--tokenize", options.tokenizer, "BLEU tokenizer")->check(CLI::IsMember(bleu_tokenizers().names()));
  verb.add_option("--smoothing", options.smoothing, "BLEU smoothing")->check(CLI::IsMember(bleu_smoothings().names()));
  verb.add_option("--smoothing-value", options.smoothing_value,
                  "Value for --smoothing floor (default: 0.1) and add-k (default: 1)")
      ->check(not_negative());
  verb.add_option("--order", options.order, "Highest order of n-grams in BLEU")->check(between(1, 100));
  verb.add_flag("--effective-order", options.effective_order,
                "Leave out of BLEU the orders for which the translations have no n-gram; --sentences always does so");
}

void add_chrf_options(CLI::App& verb, ChrfOptions& options) {
  verb.add_option("--chrf-character-order", options.character_order, "Highest order of character n-grams in chrF")
      ->check(between(1, 100));
  verb.add_option("--chrf-word-order", options.word_order, "Order of word n-grams in chrF; 2 is chrF++")
      ->check(between(0, 9));
  verb.add_option("--chrf-beta", options.beta, "Weight of recall against precision in chrF")->check(between(1e-6, 1e6));
  verb.add_flag("--chrf-whitespace", options.whitespace, "Include white space in chrF's character n-grams");
  verb.add_flag("--chrf-epsilon-smoothing", options.epsilon_smoothing,
                "Average chrF over all orders, as chrF++.py, NLTK and Moses do");
}

void add_score(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<ScoreArguments>();
  CLI::App* verb =
      add_verb(app, globals, "score", "Score translations with BLEU and chrF, as sacreBLEU does",
               "plumb score reference.de < translation.de", [arguments, &globals] { score(*arguments, globals); });
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  verb->add_option("REFERENCE", arguments->references,
                   "Reference translations, one sentence per line; several files are alternative references")
      ->type_name("FILE")
      ->required();
  repeatable(verb->add_option("--hypothesis", arguments->hypotheses,
                              "Translations to score (default: standard input); may be repeated, for several systems"))
      ->type_name("FILE");
  verb->add_option("--metrics", arguments->metrics, "Metrics, of bleu, chrf")->type_name("NAME,...");
  verb->add_flag("--sentences", arguments->sentences, "Give the score of each sentence as well");
  add_resampling_options(*verb, *arguments);
  verb->add_flag("--lowercase", arguments->lowercase, "Ignore case");
  add_bleu_options(*verb, arguments->bleu);
  add_chrf_options(*verb, arguments->chrf);
}

const bool kScoreRegistered = register_verb({Heading::models, 110, add_score});

}  // namespace
}  // namespace plumb::app
