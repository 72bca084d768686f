// plumb plan: estimates the cost of training a model and how to divide it over devices.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "checks.h"
#include "declared_manual.h"
#include "planned_file.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/quantity.h"
#include "plumb/plan/training.h"
#include "plumb/run/config.h"
#include "plumb/train/mesh_requirements.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct PlanArguments {
  PlannedFile file;
  std::string tokens;
  std::string precision = "mixed";
  std::string memory = "80GiB";
  std::string flops = "312T";
  std::string node_bandwidth = "300GB";
  std::string network = "25GB";
  std::string write;
  int64_t show = 5;
  plan::Hardware hardware;
};

std::string with_time(double seconds) {
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  if (seconds < 172800) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} days", seconds / 86400);
}

Json to_json(const plan::Estimate& found) {
  const auto& [layout, memory, time, data_bytes, tensor_bytes, utilization, fits] = found;
  return {{"fits", fits},
          {"split",
           {{"data", layout.data},
            {"tensor", layout.tensor},
            {"pipeline", layout.pipeline},
            {"zero", layout.zero},
            {"micro_batch", layout.micro_batch},
            {"recompute", to_string(layout.recompute)}}},
          {"memory", memory_json(memory)},
          {"step_seconds",
           {{"compute", time.compute},
            {"bubble", time.bubble},
            {"tensor", time.tensor},
            {"pipeline", time.pipeline},
            {"data", time.data},
            {"total", time.total()}}},
          {"data_bytes", data_bytes},
          {"tensor_bytes", tensor_bytes},
          {"utilization", utilization}};
}

std::string splits_table(const std::vector<plan::Estimate>& found) {
  std::string text =
      fmt::format("{:>5} {:>6} {:>8} {:>4} {:>5} {:<9}  {:>9} {:>9} {:>9} {:>11}  {:>9} {:>6} {:>8} {:>6}\n", "data",
                  "tensor", "pipeline", "ZeRO", "micro", "recompute", "weights", "gradients", "optimizer",
                  "activations", "total", "used", "step", "peak");
  for (const plan::Estimate& each : found) {
    const plan::Memory& memory = each.memory;
    text += fmt::format("{:>5} {:>6} {:>8} {:>4} {:>5} {:<9}  {:>9} {:>9} {:>9} {:>11}  {:>9} {:>6} {:>8} {:>6}\n",
                        each.layout.data, each.layout.tensor, each.layout.pipeline, each.layout.zero,
                        each.layout.micro_batch, to_string(each.layout.recompute), with_bytes(memory.weights),
                        with_bytes(memory.gradients), with_bytes(memory.optimizer), with_bytes(memory.activations),
                        with_bytes(memory.total()), each.fits ? "fits" : "no", with_time(each.time.total()),
                        fmt::format("{:.0f}%", 100 * each.utilization));
  }
  return text;
}

std::string time_text(const plan::Estimate& best, const plan::TrainingJob& job, const plan::Hardware& hardware) {
  const plan::StepTime& time = best.time;
  std::string text = fmt::format(
      "\na step of the first: {}, of which computation {}, waiting for stages {}, exchange of activations {}, of\n"
      "gradients and weights {}; {} tokens per second\n",
      with_time(time.total()), with_time(time.compute), with_time(time.bubble), with_time(time.tensor + time.pipeline),
      with_time(time.data), with_unit(static_cast<double>(job.batch_tokens) / time.total()));
  if (job.tokens <= 0) return text;
  const double seconds = job.tokens / static_cast<double>(job.batch_tokens) * time.total();
  const double hours = seconds / 3600 * static_cast<double>(hardware.devices);
  text += fmt::format("{} tokens: {}, {} device-hours", with_unit(job.tokens), with_time(seconds), with_unit(hours));
  if (hardware.price > 0) text += fmt::format(", cost {}", with_unit(hours * hardware.price));
  return text + '\n';
}

/// Throws UsageError unless the quantity is greater than 0.
double positive_quantity(const std::string& text, const std::string& option) {
  const double value = parse_quantity(text, option);
  if (value > 0) return value;
  throw UsageError(fmt::format("{} must be greater than 0, not {}", option, text));
}

/// The tokens that a configuration trains on, with `batch_tokens` tokens per step. Throws Error if that depends
/// on the data.
double tokens_of(const TrainConfig& config, int64_t batch_tokens) {
  const Duration::Unit unit = config.steps.unit();
  if (unit != Duration::Unit::steps && unit != Duration::Unit::tokens) {
    throw Error(fmt::format("train.steps = {} depends on the data", config.steps.text()),
                "give the tokens of the whole run with --tokens");
  }
  const auto amount = static_cast<double>(config.steps.amount());
  return unit == Duration::Unit::tokens ? amount : amount * static_cast<double>(batch_tokens);
}

/// The run with the first of these divisions that `plumb train` can carry out, which recomputes layers or nothing:
/// `none` and `attention` are the same run. Throws Error if it can carry out none of them.
RunConfig with_mesh(RunConfig run, const std::vector<plan::Estimate>& found, int64_t sequence) {
  const MeshCheck check(run);
  for (const plan::Estimate& each : found) {
    if (!each.fits) break;
    run.train.processes = each.layout.devices();
    run.train.tensor_parallel = each.layout.tensor;
    run.train.pipeline_parallel = each.layout.pipeline;
    run.train.pipeline_chunks = each.layout.chunks;
    run.train.pipeline_schedule = each.layout.gpipe ? "gpipe" : "1f1b";
    run.train.shard = kShards.at(static_cast<size_t>(each.layout.zero));
    run.train.micro_batch_tokens = each.layout.micro_batch * sequence;
    run.train.recompute = each.layout.recompute == plan::Recompute::layers;
    try {
      check(run.train);
      return run;
    } catch (const Error&) {
    }
  }
  throw Error("none of the divisions that fit can be carried out by `plumb train`",
              "plumb train --dry-run says why one cannot");
}

void run(PlanArguments& arguments, const Globals& globals) {
  const RunConfig run = planned_run(arguments.file);
  const plan::ModelCost cost = plan::cost_of(run.model);
  plan::TrainingJob job;
  job.sequence = planned_sequence(arguments.file, run.model);
  job.precision = plan::precision_named(arguments.precision);
  job.batch_tokens = run.train.batch_tokens * run.train.accumulate;
  job.tokens = arguments.tokens.empty() ? tokens_of(run.train, job.batch_tokens)
                                        : positive_quantity(arguments.tokens, "--tokens");
  if (job.batch_tokens < job.sequence) {
    throw Error(fmt::format("a step of {} tokens is less than one sequence of {}", job.batch_tokens, job.sequence),
                "give --batch-tokens or --sequence");
  }
  plan::Hardware& hardware = arguments.hardware;
  hardware.memory = positive_quantity(arguments.memory, "--memory");
  hardware.flops = positive_quantity(arguments.flops, "--flops");
  hardware.node_bandwidth = positive_quantity(arguments.node_bandwidth, "--node-bandwidth");
  hardware.network = positive_quantity(arguments.network, "--network");
  std::vector<plan::Estimate> found = search(cost, job, hardware);
  if (!arguments.write.empty()) {
    if (job.precision != plan::Precision::float32)
      throw UsageError("--write: `plumb train` keeps weights in float32", "give --precision float32");
    write_output_file(arguments.write, to_toml(with_mesh(run, found, job.sequence)));
  }
  found.resize(std::min(found.size(), static_cast<size_t>(arguments.show)));

  const double per_token = cost.training_flops(job.sequence);
  const double per_parameter = per_token / (6 * static_cast<double>(cost.parameters));
  std::string text = fmt::format(
      "parameters   {} ({} in embeddings), {} layers\n"
      "operations   {} per token of a sequence of {} in a training step: {:.2f} × 6N; attention is {:.0f}% of them\n"
      "all tokens   {} tokens, {:.3g} operations\n\n",
      with_unit(static_cast<double>(cost.parameters)), with_unit(static_cast<double>(cost.embeddings)), cost.layers,
      with_unit(per_token), job.sequence, per_parameter,
      300 * static_cast<double>(cost.attentions) * cost.attention_flops(job.sequence) / per_token,
      with_unit(job.tokens), per_token * job.tokens);
  text += splits_table(found);
  if (found.front().fits) {
    text += time_text(found.front(), job, hardware);
  } else {
    text += fmt::format("\nnothing fits into {}: the divisions above come closest\n", with_bytes(hardware.memory));
  }

  Json json = make_document("plan", 1);
  json["parameters"] = cost.parameters;
  json["embeddings"] = cost.embeddings;
  json["layers"] = cost.layers;
  json["operations_per_token"] = per_token;
  json["tokens"] = job.tokens;
  json["splits"] = Json::array();
  for (const plan::Estimate& each : found) json["splits"].push_back(to_json(each));
  emit(globals, json, text);
}

void add_plan(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<PlanArguments>();
  CLI::App* verb = add_verb(app, globals, "plan", "Estimate memory, time and the best division over devices",
                            "plumb plan recipes/gopher-280b.toml --devices 4096 --tokens 300B",
                            [arguments, &globals] { run(*arguments, globals); });
  add_json_option(*verb, globals);
  add_planned_file(*verb, arguments->file);
  verb->add_option("--tokens", arguments->tokens, "Tokens of the whole run (default: train.steps)")
      ->type_name("QUANTITY");
  suggest(verb->add_option("--precision", arguments->precision,
                           "Weights: float32; mixed: 2 bytes with a copy in 4; bfloat16: 2 bytes without one"),
          {"float32", "mixed", "bfloat16"});
  plan::Hardware& hardware = arguments->hardware;
  verb->add_option("--devices", hardware.devices, "Number of devices")->check(positive());
  verb->add_option("--memory", arguments->memory, "Memory of a device")->type_name("QUANTITY");
  verb->add_option("--flops", arguments->flops, "Peak operations per second of a device")->type_name("QUANTITY");
  verb->add_option("--efficiency", hardware.efficiency, "Share of the peak that matrix products reach")
      ->check(between(0.01, 1));
  verb->add_option("--devices-per-node", hardware.devices_per_node, "Devices with fast connections to each other")
      ->check(positive());
  verb->add_option("--node-bandwidth", arguments->node_bandwidth, "Bytes per second of a device to others of its node")
      ->type_name("QUANTITY");
  verb->add_option("--network", arguments->network, "Bytes per second of a device to other nodes")
      ->type_name("QUANTITY");
  verb->add_option("--price", hardware.price, "Price of a device-hour")->check(not_negative());
  verb->add_option("--write", arguments->write,
                   "Write the configuration with the first division that `plumb train` can carry out")
      ->type_name("FILE");
  verb->add_option("--show", arguments->show, "Number of divisions to show")->check(positive());
}

const bool kPlanRegistered = register_verb({Heading::measure, 50, add_plan});

}  // namespace
}  // namespace plumb::app
