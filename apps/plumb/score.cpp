// plumb score: BLEU, chrF and TER of translations, with confidence intervals and tests between systems.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "checks.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/text.h"
#include "plumb/metrics/bleu.h"
#include "plumb/metrics/bleu_smoothing.h"
#include "plumb/metrics/bleu_tokenizer.h"
#include "plumb/metrics/chrf.h"
#include "plumb/metrics/resampling.h"
#include "plumb/metrics/ter.h"
#include "plumb/metrics/unicode.h"
#include "score_report.h"
#include "verb.h"

namespace plumb::app {
namespace {

using Sentences = std::vector<std::string>;

struct ScoreOptions {
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
  TerOptions ter;
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
  CorpusMetric of_sentences;  // for single sentences: BLEU leaves out orders without n-grams
};

ChosenMetric choose_metric(const std::string& key, const ScoreOptions& options) {
  if (key == "bleu") {
    BleuOptions of_sentences = options.bleu;
    of_sentences.effective_order = true;
    return {key, bleu_metric(options.bleu), bleu_metric(of_sentences)};
  }
  if (key == "chrf") return {key, chrf_metric(options.chrf), chrf_metric(options.chrf)};
  if (key == "ter") return {key, ter_metric(options.ter), ter_metric(options.ter)};
  throw UsageError(fmt::format("--metrics: unknown metric '{}'", key), "known: bleu, chrf, ter");
}

std::vector<ChosenMetric> choose_metrics(const ScoreOptions& options) {
  std::vector<ChosenMetric> chosen;
  for (const std::string& key : split(options.metrics, ',')) {
    if (std::any_of(chosen.begin(), chosen.end(), [&](const ChosenMetric& earlier) { return earlier.key == key; })) {
      throw UsageError(fmt::format("--metrics: '{}' is named twice", key));
    }
    chosen.push_back(choose_metric(key, options));
  }
  return chosen;
}

bool uses_bootstrap(const ScoreOptions& options) { return options.confidence || options.paired == "bootstrap"; }

std::string resampling_signature(const ScoreOptions& options, uint64_t seed) {
  std::vector<std::string> parts;
  if (uses_bootstrap(options)) parts.push_back(fmt::format("bs:{}", options.samples));
  if (options.paired == "randomization") parts.push_back(fmt::format("ar:{}", options.trials));
  if (parts.empty()) return "";
  return fmt::format("{}|seed:{}", join(parts, "|"), seed);
}

void compare_with_first(MetricScores& scores, const CorpusMetric& metric, const std::vector<SentenceCounts>& counts,
                        const std::vector<std::vector<double>>& samples, const ScoreOptions& options, uint64_t seed) {
  for (size_t i = 1; i < counts.size(); ++i) {
    ScoreComparison comparison{.difference = scores.systems[i].score - scores.systems[0].score};
    if (!samples.empty()) {
      std::vector<double> differences;
      for (size_t k = 0; k < samples[i].size(); ++k) differences.push_back(samples[i][k] - samples[0][k]);
      comparison.interval = interval_of_samples(differences);
    }
    comparison.p_value =
        options.paired == "bootstrap"
            ? bootstrap_p_value(samples[0], samples[i], comparison.difference)
            : randomization_p_value(metric, counts[0], counts[i], {.samples = options.trials, .seed = seed});
    scores.systems[i].comparison = comparison;
  }
}

MetricScores score_systems(const ChosenMetric& chosen, const std::vector<Sentences>& systems,
                           const std::vector<Sentences>& references, const ScoreOptions& options, uint64_t seed) {
  const CorpusMetric& metric = chosen.metric;
  std::vector<SentenceCounts> counts;
  for (const Sentences& system : systems) counts.push_back(count_sentences(metric, system, references));
  std::vector<std::vector<double>> samples;
  if (uses_bootstrap(options)) samples = bootstrap_scores(metric, counts, {.samples = options.samples, .seed = seed});

  MetricScores scores{.key = chosen.key,
                      .name = metric.name,
                      .signature = metric_signature(metric, references.size(), resampling_signature(options, seed)),
                      .lower_is_better = metric.lower_is_better};
  for (size_t i = 0; i < counts.size(); ++i) {
    const std::vector<int64_t> sums = counts[i].sum();
    SystemScore& system = scores.systems.emplace_back();
    system.score = metric.score(sums);
    if (chosen.key == "bleu") system.bleu = bleu_of_counts(sums, options.bleu);
    if (chosen.key == "ter") system.ter = ter_of_counts(sums, references.size());
    if (!samples.empty()) system.interval = interval_of_samples(samples[i]);
    if (options.sentences) system.sentences = sentence_scores(chosen.of_sentences, counts[i]);
  }
  if (!options.paired.empty()) compare_with_first(scores, metric, counts, samples, options, seed);
  return scores;
}

void score(ScoreOptions options, const Globals& globals) {
  options.bleu.lowercase = options.chrf.lowercase = options.lowercase;
  if (options.hypotheses.empty()) options.hypotheses = {"-"};
  for (std::string& path : options.hypotheses) {
    if (path.empty()) path = "-";
  }
  if (std::count(options.hypotheses.begin(), options.hypotheses.end(), "-") > 1) {
    throw UsageError("standard input can be only one of the systems");
  }
  if (!options.paired.empty() && options.hypotheses.size() < 2) {
    throw UsageError("--paired compares systems, but there is only one",
                     "name each with --hypothesis, the baseline first");
  }
  const std::vector<ChosenMetric> metrics = choose_metrics(options);

  // References first, so that a wrong path is reported before waiting for standard input.
  std::vector<Sentences> references;
  for (const std::string& path : options.references) references.push_back(read_sentences(path));
  ScoreReport report{.paired = options.paired, .seed = globals.seed};
  if (uses_bootstrap(options)) report.samples = options.samples;
  if (options.paired == "randomization") report.trials = options.trials;
  std::vector<Sentences> systems;
  for (const std::string& path : options.hypotheses) {
    report.systems.push_back(display_name(path));
    systems.push_back(read_sentences(path));
    if (systems.back().empty()) {
      throw Error(report.systems.back() + " is empty: there is nothing to score", "provide one translation per line");
    }
    for (size_t i = 0; i < references.size(); ++i) {
      require_equal_lengths(report.systems.back(), systems.back(), options.references[i], references[i]);
    }
  }
  for (const ChosenMetric& metric : metrics) {
    report.metrics.push_back(score_systems(metric, systems, references, options, globals.seed));
  }
  emit(globals, document(report), human(report));
}

void add_bleu_options(CLI::App& verb, ScoreOptions& options) {
  verb.add_option("--tokenize", options.bleu.tokenizer, "BLEU tokenizer")
      ->check(CLI::IsMember(bleu_tokenizers().names()))
      ->capture_default_str();
  verb.add_option("--smoothing", options.bleu.smoothing, "BLEU smoothing")
      ->check(CLI::IsMember(bleu_smoothings().names()))
      ->capture_default_str();
  verb.add_option("--smoothing-value", options.bleu.smoothing_value,
                  "Value for --smoothing floor (default: 0.1) and add-k (default: 1)")
      ->check(not_negative());
  verb.add_option("--order", options.bleu.order, "Highest order of n-grams in BLEU")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  verb.add_flag("--effective-order", options.bleu.effective_order,
                "Leave out of BLEU the orders for which the translations have no n-gram; --sentences always does so");
}

void add_chrf_options(CLI::App& verb, ScoreOptions& options) {
  verb.add_option("--chrf-character-order", options.chrf.character_order, "Highest order of character n-grams in chrF")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  verb.add_option("--chrf-word-order", options.chrf.word_order, "Order of word n-grams in chrF; 2 is chrF++")
      ->check(CLI::Range(0, 9))
      ->capture_default_str();
  verb.add_option("--chrf-beta", options.chrf.beta, "Weight of recall against precision in chrF")
      ->check(between(1e-6, 1e6))
      ->capture_default_str();
  verb.add_flag("--chrf-whitespace", options.chrf.whitespace, "Include white space in chrF's character n-grams");
  verb.add_flag("--chrf-epsilon-smoothing", options.chrf.epsilon_smoothing,
                "Average chrF over all orders, as chrF++.py, NLTK and Moses do");
}

void add_ter_options(CLI::App& verb, ScoreOptions& options) {
  verb.add_flag("--ter-normalize", options.ter.normalize, "Separate punctuation and replace XML entities in TER");
  verb.add_flag("--ter-no-punctuation", options.ter.remove_punctuation, "Remove punctuation in TER");
  verb.add_flag("--ter-asian", options.ter.asian,
                "Let the two options above treat Chinese and Japanese characters and punctuation too");
  verb.add_flag("--ter-case-sensitive", options.ter.case_sensitive, "Do not ignore case in TER");
}

void add_resampling_options(CLI::App& verb, ScoreOptions& options) {
  verb.add_flag("--confidence", options.confidence, "Give 95% bootstrap intervals");
  verb.add_option(
          "--paired", options.paired,
          "Test each system against the first by paired bootstrap, which gives intervals too, or by approximate "
          "randomization")
      ->check(CLI::IsMember({"bootstrap", "randomization"}));
  verb.add_option("--samples", options.samples, "Samples of the bootstrap")
      ->check(between(1, 10'000'000))
      ->capture_default_str();
  verb.add_option("--trials", options.trials, "Trials of approximate randomization")
      ->check(between(1, 10'000'000))
      ->capture_default_str();
}

}  // namespace

void add_score(CLI::App& app, Globals& globals) {
  auto options = std::make_shared<ScoreOptions>();
  CLI::App* verb =
      add_verb(app, globals, "score", "Score translations with BLEU, chrF and TER, as sacreBLEU does",
               "plumb score reference.de < translation.de", [options, &globals] { score(*options, globals); });
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  verb->add_option("REFERENCE", options->references,
                   "Reference translations, one sentence per line; several files are alternative references")
      ->type_name("FILE")
      ->required();
  verb->add_option("--hypothesis", options->hypotheses,
                   "Translations to score (default: standard input); may be repeated, for several systems")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_option("--metrics", options->metrics, "Metrics, of bleu, chrf and ter")
      ->type_name("NAME,...")
      ->capture_default_str();
  verb->add_flag("--sentences", options->sentences, "Give the score of each sentence as well");
  add_resampling_options(*verb, *options);
  verb->add_flag("--lowercase", options->lowercase, "Ignore case in BLEU and chrF; TER ignores it by default");
  add_bleu_options(*verb, *options);
  add_chrf_options(*verb, *options);
  add_ter_options(*verb, *options);
}

}  // namespace plumb::app
