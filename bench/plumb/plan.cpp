// plumb bench plan: compares the predictions of `plumb plan --here` with the measured memory and time of steps.
#include "bench.h"
#include "plan_here.h"
#include "plumb/ops/precision.h"
#include "plumb/ops/update.h"
#include "plumb/optim/optimizer.h"

namespace plumb::app::bench {
namespace {

constexpr double kSmallRate = 1e-6;

struct PlanArguments {
  PlannedFile file;
  int64_t runs = 3;
};

/// Sequences of random tokens with random labels.
Batch random_text(const plan::LocalBatch& size, int64_t vocabulary, uint64_t seed) {
  Random random(seed, "bench plan");
  Batch batch;
  batch.target_layout = Ragged(std::vector<int64_t>(static_cast<size_t>(size.sequences), size.length));
  for (int64_t i = 0; i < size.tokens(); ++i) {
    batch.target_input.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(vocabulary))));
    batch.labels.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(vocabulary))));
  }
  return batch;
}

/// The gradient of a step, summed over its batches.
std::vector<Tensor> step_gradient(Model& model, const RunConfig& run, const LocalStep& step, const Batch& batch,
                                  int64_t number) {
  std::vector<Tensor> sum;
  for (int64_t i = 0; i < step.repetitions; ++i) {
    ForwardContext context(run.model.dropout, 1, number);
    if (step.batch.recomputed) context.recompute();
    const Loss loss = model.loss(batch, {.label_smoothing = run.train.label_smoothing}, context);
    std::vector<Tensor> gradient = gradients({loss.value}, model.parameters().values(), {});
    if (sum.empty()) {
      sum = std::move(gradient);
    } else {
      for (size_t k = 0; k < sum.size(); ++k) sum[k].add_(gradient[k]);
    }
  }
  return sum;
}

/// The median time of a step.
double measured_step(const RunConfig& run, const LocalStep& step, int64_t runs, uint64_t seed) {
  const std::unique_ptr<Model> model = make_model(run.model);
  model->initialize(seed);
  const auto optimizer = make_optimizer(run.train.optimizer, model->parameters(), run.train.options);
  const Batch batch = random_text(step.batch, run.model.target_vocabulary, seed);
  ops::MatrixPrecision precision(ops::precision_of(run.train.precision));
  const ops::PrecisionGuard guard(precision);
  int64_t number = 0;
  return device_seconds(runs, model->parameters().device(), [&] {
    const std::vector<Tensor> gradient = step_gradient(*model, run, step, batch, ++number);
    static_cast<void>(ops::sum_of_squares(gradient));
    optimizer->step(gradient, kSmallRate);
  });
}

Json measure(const PlanArguments& arguments, uint64_t seed) {
  const double library = plan::resident_memory();
  const RunConfig run = planned_run(arguments.file);
  const LocalStep step = local_step(run, planned_sequence(arguments.file, run.model));
  plan::LocalRun measured = local_run(run.train, step);
  measured.copies = 0;  // a whole run has them, and checkpoints
  measured.writes_checkpoints = false;
  const plan::LocalMemory memory = plan::local_memory(run.model, step.batch, measured, library);
  const double seconds = measured_step(run, step, arguments.runs, seed);
  const double peak = plan::peak_resident_memory();  // before timing the parts, which allocates as well
  const plan::LocalTime time =
      plan::local_time(run.model, step.batch, step.repetitions, run.train.optimizer, run.train.options);
  Json json = result_document("plan", {{"tokens_at_once", step.batch.tokens()},
                                       {"batches_per_step", step.repetitions},
                                       {"sequence", step.batch.length},
                                       {"runs", arguments.runs}});
  json["predicted_memory_bytes"] = memory.peak();
  json["peak_memory_bytes"] = peak;
  json["memory_ratio"] = memory.peak() / peak;
  json["predicted_seconds_per_step"] = time.seconds();
  json["seconds_per_step"] = seconds;
  json["time_ratio"] = time.seconds() / seconds;
  json["ceiling_fraction"] = time.operations() / seconds / time.peak_rate;
  json["memory"] = to_json(memory);
  json["step"] = to_json(time);
  return json;
}

void add_plan(CLI::App& bench, Globals& globals) {
  const auto arguments = std::make_shared<PlanArguments>();
  CLI::App* verb = add_measurement(
      bench, globals, "plan", "Compare what `plumb plan --here` predicts with steps of random tokens",
      [arguments, &globals] { return measure(*arguments, globals.seed); },
      "recipes/gpt-2.toml --sequence 1024 --batch-tokens 8192");
  add_planned_file(*verb, arguments->file);
  add_size(*verb, "--runs", arguments->runs, "Timed steps; the median is reported");
}

const bool kPlanRegistered = register_verb({Heading::benchmarks, 90, add_plan});

}  // namespace
}  // namespace plumb::app::bench
