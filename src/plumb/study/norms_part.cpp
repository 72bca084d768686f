// Norms over single tokens compared with norms over a batch: training with different batch sizes, and with different
// numbers of processes sharing a batch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "plumb/base/text.h"
#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

/// What is compared: a norm and, for BatchNorm in several processes, whether its statistics are exchanged.
struct NormVariant {
  std::string norm;
  bool synchronized = true;

  [[nodiscard]] std::string name() const { return norm + (synchronized ? "" : ", own statistics"); }
};

struct NormRun {
  int64_t batch_tokens = 0;
  int64_t processes = 1;
  TrainedRun trained{};

  [[nodiscard]] double loss() const { return trained.loss(); }
  /// The median over the points of the history of the quantity that `value` extracts from each.
  template <typename Value>
  [[nodiscard]] double median(const Value& value) const {
    std::vector<double> all;
    for (const TrainPoint& point : trained.result.history) all.push_back(value(point));
    if (all.empty()) return std::nan("");
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    return all[all.size() / 2];
  }
  [[nodiscard]] double tokens_per_second() const {
    return median([](const TrainPoint& point) { return point.tokens_per_second; });
  }
  [[nodiscard]] double exchange_seconds() const {
    return median([](const TrainPoint& point) { return point.exchange_seconds.value_or(0); });
  }
  [[nodiscard]] double exchange_bytes() const {
    return median([](const TrainPoint& point) { return point.exchange_bytes.value_or(0); });
  }
};

NormRun train_run(StudyContext& context, const NormsStudy& part, const NormVariant& variant, int64_t batch_tokens,
                  int64_t processes, int64_t seed) {
  const TrainConfig& given = context.config.train;
  RunRequest request;
  request.config = run_config(context, model_for(context, context.config.study.schemes.front(), part.layers));
  request.config.model.norm = variant.norm;
  TrainConfig& train = request.config.train;
  train.seed += seed;
  train.batch_tokens = batch_tokens;
  train.processes = processes;
  train.synchronize_norms = variant.synchronized;
  // [train] describes runs with its own batch size; warm-up and logging intervals keep their share of the run.
  const double ratio = static_cast<double>(batch_tokens) / static_cast<double>(given.batch_tokens);
  const auto steps = [&](int64_t of_given) {
    return std::max<int64_t>(std::llround(static_cast<double>(of_given) / ratio), 1);
  };
  train.learning_rate = given.learning_rate * std::sqrt(ratio);
  train.steps = std::max<int64_t>(part.tokens / batch_tokens, 1);
  train.warm_up = given.warm_up == 0 ? 0 : steps(given.warm_up);
  train.decay_start = given.decay_start == 0 ? 0 : steps(given.decay_start);
  train.validate_every = steps(given.validate_every);
  train.log_every = steps(given.log_every);
  request.name = fmt::format("norms-{}{}-batch{}-processes{}-seed{}", variant.norm, variant.synchronized ? "" : "-own",
                             batch_tokens, processes, train.seed);
  request.label = fmt::format("{}, batches of {} tokens{}", variant.name(), batch_tokens,
                              processes == 1 ? "" : fmt::format(", {} processes", processes));
  return {batch_tokens, processes, trained_run(context, request)};
}

/// The final losses of the runs with one batch size.
struct Finals {
  double mean = 0;
  double range = 0;  // between the best and the worst seed
};
Finals finals_of(const std::vector<NormRun>& runs, int64_t batch_tokens) {
  std::vector<double> losses;
  for (const NormRun& run : runs) {
    if (run.batch_tokens == batch_tokens) losses.push_back(run.loss());
  }
  const auto [low, high] = std::minmax_element(losses.begin(), losses.end());
  return {std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size()), *high - *low};
}
double mean_loss(const std::vector<NormRun>& runs, int64_t batch_tokens) { return finals_of(runs, batch_tokens).mean; }

/// The smallest difference between norms that counts, in nats per token, if it also exceeds that between seeds.
constexpr double kClear = 0.05;

/// How much larger the losses of `a` are than those of `b`; 0 if the difference does not count.
double clear_difference(const std::vector<NormRun>& a, const std::vector<NormRun>& b, int64_t batch_tokens) {
  const Finals first = finals_of(a, batch_tokens);
  const Finals second = finals_of(b, batch_tokens);
  const double difference = first.mean - second.mean;
  return std::abs(difference) > std::max({kClear, first.range, second.range}) ? difference : 0;
}

std::string losses(const std::vector<NormRun>& a, const std::vector<NormRun>& b, const std::vector<int64_t>& batches) {
  std::vector<std::string> parts;
  for (const int64_t batch : batches)
    parts.push_back(fmt::format("{:.3f} versus {:.3f} at {}", mean_loss(a, batch), mean_loss(b, batch), batch));
  return join(parts, ", ");
}

/// Training with different batch sizes in one process.
void over_batches(StudyContext& context, const NormsStudy& part, PartResult& result) {
  std::map<std::string, std::vector<NormRun>> runs;
  for (const std::string& norm : part.norms) {
    for (const int64_t batch : part.batch_tokens) {
      for (int64_t seed = 0; seed < part.seeds; ++seed)
        runs[norm].push_back(train_run(context, part, {norm}, batch, 1, seed));
    }
  }
  Figure figure{"norms_batch", "Final validation loss by batch size"};
  figure.caption = fmt::format(
      "Every run is trained on {} tokens, so larger batches take fewer steps; the learning rate is proportional to "
      "the "
      "square root of the batch. Means and ranges over {} seeds; runs that diverged are omitted.",
      with_thousands(part.tokens), part.seeds);
  figure.kind = "line";
  figure.x = {"tokens per batch", true};
  figure.y = {"validation loss (nats per token)"};
  Table table{
      "norms_batch",
      "Norms by batch size",
      "At the last training point and the last validation; BatchNorm normalizes the former by the batch and the "
      "latter by running averages.",
      {"norm", "tokens per batch", "seed", "outcome", "steps", "training loss", "validation loss"}};
  for (const std::string& norm : part.norms) {
    Series series{norm, norm};
    for (const int64_t batch : part.batch_tokens) {
      std::vector<double> finals;
      int64_t seed = context.config.study.seed;
      for (const NormRun& run : runs[norm]) {
        if (run.batch_tokens != batch) continue;
        if (std::isfinite(run.loss())) finals.push_back(run.loss());
        table.rows.push_back({norm, batch, seed++, run.trained.result.outcome, run.trained.result.steps,
                              run.trained.result.history.back().nll, finite_or_null(run.loss())});
      }
      if (finals.empty()) continue;
      const auto [low, high] = std::minmax_element(finals.begin(), finals.end());
      series.point(batch, mean_loss(runs[norm], batch), *low, *high);
    }
    figure.series.push_back(series);
  }
  result.figures.push_back(figure);
  result.tables.push_back(table);

  const auto [small, large] = std::minmax_element(part.batch_tokens.begin(), part.batch_tokens.end());
  for (const int64_t batch : *small == *large ? std::vector{*small} : std::vector{*small, *large}) {
    std::vector<std::string> finals;
    for (const std::string& norm : part.norms)
      finals.push_back(fmt::format("{:.2f} with {}", mean_loss(runs[norm], batch), norm));
    result.summary.push_back(fmt::format("With {} tokens per batch, the final validation loss is {}.",
                                         with_thousands(batch), join(finals, ", ")));
  }

  const auto difference = [&](const std::string& norm, int64_t batch) {
    return mean_loss(runs[norm], batch) - mean_loss(runs["layernorm"], batch);
  };
  if (runs.count("layernorm") == 0) return;
  if (runs.count("rmsnorm") != 0) {
    int64_t differing = 0;
    for (const int64_t batch : part.batch_tokens)
      differing += clear_difference(runs["rmsnorm"], runs["layernorm"], batch) != 0 ? 1 : 0;
    result.verdicts.push_back(
        {"rmsnorm_as_good", "RMSNorm trains as well as LayerNorm, without subtracting the mean",
         "Zhang & Sennrich 2019, arXiv 1910.07467", confirmed_if(differing == 0),
         fmt::format(
             "RMSNorm's validation loss compared with LayerNorm's: {} tokens per batch. A difference counts if it is "
             "larger than {:g} nats and the range over seeds; {} are.",
             losses(runs["rmsnorm"], runs["layernorm"], part.batch_tokens), kClear, differing),
         "norms_batch"});
  }
  if (runs.count("batchnorm") != 0) {
    int64_t worse = 0;
    for (const int64_t batch : part.batch_tokens) {
      worse += clear_difference(runs["batchnorm"], runs["layernorm"], batch) > 0 ? 1 : 0;
    }
    const auto all = static_cast<int64_t>(part.batch_tokens.size());
    const std::string evidence =
        fmt::format("BatchNorm's validation loss compared with LayerNorm's: {} tokens per batch.",
                    losses(runs["batchnorm"], runs["layernorm"], part.batch_tokens));
    result.verdicts.push_back({"batchnorm_worse", "BatchNorm trains worse than LayerNorm in a Transformer",
                               "Shen et al. 2020, arXiv 2003.07845",
                               worse == all ? "confirmed"
                               : worse == 0 ? "contradicted"
                                            : "unclear",
                               evidence, "norms_batch"});
    const double change = difference("batchnorm", *small) - difference("batchnorm", *large);
    if (*small != *large) {
      result.verdicts.push_back(
          {"batchnorm_small_batches", "The smaller the batch, the worse BatchNorm is compared with LayerNorm",
           "Wu & He 2018, arXiv 1803.08494", std::abs(change) < kClear ? "unclear" : confirmed_if(change > 0),
           fmt::format("{} From {} to {} tokens, the difference changes by {:+.3f} nats.", evidence, *large, *small,
                       change),
           "norms_batch"});
    }
  }
}

/// Training with one batch size in several processes.
void over_processes(StudyContext& context, const NormsStudy& part, PartResult& result) {
  std::vector<NormVariant> variants;
  for (const std::string& norm : part.norms) {
    variants.push_back({norm});
    if (norm == "batchnorm") variants.push_back({norm, false});
  }
  const int64_t batch = part.shared_batch_tokens;
  Figure figure{"norms_processes", "Final validation loss by number of processes"};
  figure.caption = fmt::format(
      "{} tokens per batch, shared by the processes. Gradients are summed over all; so are BatchNorm's statistics, "
      "unless "
      "each process computes its own.",
      batch);
  figure.kind = "line";
  figure.x = {"processes", true};
  figure.y = {"validation loss (nats per token)"};
  Figure cost{"norms_exchange", "Communication time per step"};
  cost.caption =
      "All processes exchange the gradient; BatchNorm's statistics are small, but every norm has to wait for them "
      "once, "
      "forward "
      "and backward. On this machine, medians over the run.";
  cost.kind = "bar";
  cost.y = {"milliseconds per step"};
  Table table{"norms_processes",
              "Norms by number of processes",
              "Speed and communication time on this machine, whose cores the processes share: medians over the run.",
              {"norm", "processes", "outcome", "loss at step 1", "gradient norm at step 1", "validation loss",
               "target tokens/s", "exchange, ms per step", "exchange, kB per step"}};
  std::map<std::string, std::vector<NormRun>> runs;
  for (const NormVariant& variant : variants) {
    Series series{variant.name(), variant.norm};
    series.style = variant.synchronized ? "solid" : "dashed";
    Series times{variant.name(), variant.name()};
    for (const int64_t processes : part.processes) {
      const NormRun run =
          train_run(context, part, variant.synchronized || processes > 1 ? variant : NormVariant{variant.norm}, batch,
                    processes, 0);
      series.point(processes, run.loss());
      if (processes > 1) times.point(fmt::format("{} processes", processes), run.exchange_seconds() * 1e3);
      const TrainPoint& first = run.trained.result.history.front();
      table.rows.push_back({variant.name(), processes, run.trained.result.outcome, first.nll,
                            finite_or_null(first.gradient_norm.value_or(std::nan(""))), finite_or_null(run.loss()),
                            run.tokens_per_second(), run.exchange_seconds() * 1e3, run.exchange_bytes() / 1e3});
      runs[variant.name()].push_back(run);
    }
    figure.series.push_back(series);
    cost.series.push_back(times);
  }
  result.figures.push_back(figure);
  result.figures.push_back(cost);
  result.tables.push_back(table);
  if (runs.count("batchnorm") == 0 || part.processes.size() < 2) return;

  const NormRun& one = runs["batchnorm"].front();
  const NormRun& exchanged = runs["batchnorm"].back();
  const NormRun& own = runs["batchnorm, own statistics"].back();
  const auto step_one = [](const NormRun& run) {
    return run.trained.result.history.front().gradient_norm.value_or(std::nan(""));
  };
  const double exact = std::abs(step_one(exchanged) / step_one(one) - 1);
  const double off = std::abs(step_one(own) / step_one(one) - 1);
  result.verdicts.push_back(
      {"batchnorm_exchanged", "With exchanged statistics, BatchNorm is the same function for any number of processes",
       "Ioffe & Szegedy 2015, arXiv 1502.03167", confirmed_if(exact < 1e-4),
       fmt::format(
           "The gradient norm of the first step differs by {:.1e} between {} and {} processes with the exchange, "
           "by {:.1e} without. The final validation losses are {:.3f}, {:.3f} and {:.3f}.",
           exact, one.processes, exchanged.processes, off, one.loss(), exchanged.loss(), own.loss()),
       "norms_processes"});
  result.verdicts.push_back(
      {"batchnorm_own_statistics",
       "Without the exchange, BatchNorm trains worse, as it does with correspondingly smaller batches",
       "Wu & He 2018, arXiv 1803.08494",
       std::abs(own.loss() - exchanged.loss()) < kClear ? "unclear" : confirmed_if(own.loss() > exchanged.loss()),
       fmt::format("With {} processes, each with {} of {} tokens: {:.3f} with the exchange, {:.3f} without.",
                   exchanged.processes, batch / exchanged.processes, batch, exchanged.loss(), own.loss()),
       "norms_processes"});
  if (runs.count("layernorm") == 0) return;
  const NormRun& layer = runs["layernorm"].back();
  result.verdicts.push_back(
      {"batchnorm_exchange_costs",
       "Exchanging statistics makes a step with BatchNorm more expensive than with LayerNorm",
       "Shen et al. 2020, arXiv 2003.07845", confirmed_if(exchanged.exchange_seconds() > layer.exchange_seconds()),
       fmt::format(
           "{} processes exchange {:.0f} kB in {:.1f} ms per step with LayerNorm and {:.0f} kB in {:.1f} ms with "
           "BatchNorm; they train {} versus {} target tokens per second.",
           layer.processes, layer.exchange_bytes() / 1e3, layer.exchange_seconds() * 1e3,
           exchanged.exchange_bytes() / 1e3, exchanged.exchange_seconds() * 1e3,
           with_thousands(std::llround(layer.tokens_per_second())),
           with_thousands(std::llround(exchanged.tokens_per_second()))),
       "norms_exchange"});
}

}  // namespace

PartResult measure(StudyContext& context, const NormsStudy& part) {
  PartResult result;
  over_batches(context, part, result);
  over_processes(context, part, result);
  return result;
}

}  // namespace plumb
