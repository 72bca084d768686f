// What the alarms say of faulty runs, one fault at a time, and that they say nothing of sound ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "check/broken_decoder.h"
#include "check/planned_run.h"
#include "plumb/base/text.h"
#include "plumb/optim/adam.h"

namespace plumb {
namespace {

using test::findings_for;
using test::planned;
using test::SyntheticData;

/// A sound run, and how it is spoiled.
struct Fault {
  std::string name;
  std::string alarm;  // that must name it; empty: a miss, no alarm sees it
  std::function<void(RunConfig&)> configure{};
  test::Changes changes{};
  std::string kind = "decoder";
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

/// Multiplies the matrices whose names contain `part`.
std::function<void(const Parameters&)> scaled(const std::string& part, double factor) {
  return [=](const Parameters& parameters) {
    for (const Parameter& each : parameters.all()) {
      if (each.value.dim() >= 2 && each.name.find(part) != std::string::npos) each.value.mul_(factor);
    }
  };
}

test::Changes with_weights(const std::string& part, double factor) { return {.weights = scaled(part, factor)}; }

test::Changes with_model(const test::BrokenDecoder::Mistakes& mistakes) {
  return {.model = [=](const ModelConfig& config) { return std::make_unique<test::BrokenDecoder>(config, mistakes); }};
}

test::Changes with_labels(int64_t distance) {
  return {.data = [=](std::unique_ptr<Dataset> data) {
    return std::make_unique<test::ShiftedLabels>(std::move(data), distance);
  }};
}

std::function<void(RunConfig&)> with_data(const std::string& kind) {
  return [=](RunConfig& run) { run.data = SyntheticData::of(kind); };
}

std::function<void(RunConfig&)> with_epsilon(double eps) {
  return [=](RunConfig& run) { run.train.options["adam"] = Options(AdamOptions{.eps = eps}); };
}

std::function<void(RunConfig&)> with_group(ParameterGroup group) {
  return [=](RunConfig& run) { run.train.groups = {group}; };
}

std::vector<Fault> faults() {
  return {
      // Initialization and architecture.
      {"initialization_10", "attention", {}, with_weights("", 10)},
      {"one_layer_10", "signal", [](RunConfig& run) { run.model.decoder_layers = 4; },
       with_weights("layers.2.linear", 10)},
      {"one_matrix_30", "signal", [](RunConfig& run) { run.model.decoder_layers = 4; },
       with_weights("layers.1.linear1", 30)},
      {"embeddings_10", "initial_loss", {}, with_weights("tgt_embed", 10)},
      {"queries_and_keys_10", "attention", {}, with_weights("in_proj", 10)},
      {"no_final_norm", "signal", [](RunConfig& run) { run.model.residual = "/dna", run.model.decoder_layers = 12; }},
      {"no_norm", "signal", [](RunConfig& run) { run.model.residual = "plain", run.model.decoder_layers = 12; }},
      {"embeddings_not_scaled", "embeddings", [](RunConfig& run) { run.model.embedding_factor = 1; }},
      {"post_ln_24", "token_similarity",
       [](RunConfig& run) { run.model.residual = "post-ln", run.model.decoder_layers = 24; }},
      {"no_residual", "token_similarity",
       [](RunConfig& run) { run.model.residual = "no-residual", run.model.decoder_layers = 8; }},
      {"gradients_vanish",
       "backward_gain",
       [](RunConfig& run) {
         run.model.residual = "no-residual", run.model.encoder_layers = run.model.decoder_layers = 4;
       },
       {},
       "encoder-decoder"},
      {"no_mask", "causality", {}, with_model({.unmasked = true})},
      {"unused_matrix", "gradients", {}, with_model({.unused_matrix = true})},
      // Optimization.
      {"epsilon_1e-2", "epsilon", with_epsilon(1e-2)},
      {"clipped_to_1e-7_adam", "epsilon", [](RunConfig& run) { run.train.clip_norm = 1e-7; }},
      {"clipped_to_1e-6_sgd", "updates",
       [](RunConfig& run) { run.train.optimizer = "sgd", run.train.learning_rate = 0.1, run.train.clip_norm = 1e-6; }},
      {"rate_1000", "updates", [](RunConfig& run) { run.train.learning_rate *= 1000; }},
      {"rate_per_million", "updates", [](RunConfig& run) { run.train.learning_rate *= 1e-6; }},
      {"bfloat16_and_tiny_rate", "updates",
       [](RunConfig& run) { run.train.parameters = "bf16", run.train.learning_rate = 1e-7; }},
      {"rate_0", "schedule", [](RunConfig& run) { run.train.learning_rate = 0; }},
      {"warm_up_longer_than_run", "schedule", [](RunConfig& run) { run.train.warm_up = 4000; }},
      {"decay_of_norms", "decay", with_group({.pattern = {"*norm*"}, .weight_decay = 1})},
      {"decay_20", "decay", [](RunConfig& run) { run.train.weight_decay = 20; }},
      {"frozen_embedding", "gradients", with_group({.pattern = {"tgt_embed.weight"}, .frozen_until = -1})},
      {"layer_with_rate_0", "gradients", with_group({.pattern = {"decoder.layers.0.*"}, .learning_rate_factor = 0})},
      {"dropout_0.9", "regularization", [](RunConfig& run) { run.model.dropout = 0.9; }},
      {"label_smoothing_0.9", "regularization", [](RunConfig& run) { run.train.label_smoothing = 0.9; }},
      // Data.
      {"label_is_input", "label_shift", {}, with_labels(0)},
      {"label_two_ahead", "label_shift", {}, with_labels(2)},
      {"shuffled_targets", "pairs", with_data("shuffled"), {}, "encoder-decoder"},
      {"foreign_tokenizer", "pieces", with_data("foreign")},
      {"repeated_lines", "duplicates", with_data("repeated")},
      {"validation_in_training", "duplicates", with_data("known")},
      {"batches_of_8_tokens", "data_amount", [](RunConfig& run) { run.train.batch_tokens = 8; }},
      {"batch_larger_than_data", "data_amount", [](RunConfig& run) { run.train.batch_tokens = 100'000; }},
      {"thousands_of_epochs", "data_amount", [](RunConfig& run) { run.train.steps = 100'000; }},
      // Nothing that is measured before training shows these: trials do, or nobody.
      {"rate_30", "", [](RunConfig& run) { run.train.learning_rate *= 30; }},
      {"no_positions", "", [](RunConfig& run) { run.model.positions = "none"; }, {}, "encoder"},
      {"slow_first_moment", "",
       [](RunConfig& run) { run.train.options["adam"] = Options(AdamOptions{.beta1 = 0.999}); }},
  };
}

class Faults : public ::testing::TestWithParam<Fault> {};

TEST_P(Faults, AreNamed) {
  const Fault& fault = GetParam();
  RunConfig run = planned(fault.kind);
  if (fault.configure) fault.configure(run);
  const std::vector<Finding> findings = findings_for(run, fault.changes);
  const std::vector<std::string> names = test::raised(findings);
  if (fault.alarm.empty()) {
    EXPECT_TRUE(names.empty()) << "is no miss any more: " << join(names);
    return;
  }
  EXPECT_NE(std::find(names.begin(), names.end(), fault.alarm), names.end()) << "raised: " << join(names);
  const Finding finding = test::finding_of(findings, fault.alarm);  // raised ones come first
  RecordProperty("value", std::to_string(finding.value));
  RecordProperty("threshold", std::to_string(finding.threshold));
  RecordProperty("raised", join(names));
  EXPECT_FALSE(finding.text.empty());
  EXPECT_FALSE(finding.advice.empty());
}

INSTANTIATE_TEST_SUITE_P(One, Faults, ::testing::ValuesIn(faults()), [](const auto& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

/// Sound runs of all kinds. Not among them: stacks that do not train, such as 24 layers of Post-LN.
std::vector<std::pair<std::string, RunConfig>> sound_runs() {
  std::vector<std::pair<std::string, RunConfig>> runs;
  const auto add = [&](const std::string& name, const std::string& kind,
                       const std::function<void(RunConfig&)>& configure) {
    runs.emplace_back(name, planned(kind));
    configure(runs.back().second);
  };
  for (const char* scheme : {"pre-ln", "sandwich", "deepnorm", "admin", "rezero", "layerscale", "hyper-connections",
                             "ngpt", "keel", "lns", "attnres", "siamesenorm", "parallel-ln", "mhc"}) {
    for (const int64_t layers : {2, 24}) {
      add(fmt::format("{} with {} layers", scheme, layers), "decoder", [&](RunConfig& run) {
        run.model.residual = scheme;
        run.model.decoder_layers = layers;
      });
    }
  }
  for (const char* scheme : {"post-ln", "hybridnorm", "mix-ln", "residual-dual", "highway"})
    add(scheme, "decoder", [&](RunConfig& run) { run.model.residual = scheme, run.model.decoder_layers = 6; });
  for (const char* scheme : {"pre-ln", "post-ln", "rezero"})
    add(fmt::format("translation by {}", scheme), "encoder-decoder",
        [&](RunConfig& run) { run.model.residual = scheme; });
  for (const char* norm : {"rmsnorm", "scalenorm", "dynamic-tanh", "batchnorm", "powernorm"})
    add(norm, "decoder", [&](RunConfig& run) { run.model.norm = norm; });
  for (const char* initialization : {"gpt-2", "he", "mup", "t-fixup", "small-init"})
    add(initialization, "encoder-decoder", [&](RunConfig& run) { run.model.initialization = initialization; });
  for (const char* optimizer : {"adamw", "lamb", "muon", "lion", "adafactor"})
    add(optimizer, "encoder", [&](RunConfig& run) { run.train.optimizer = optimizer; });
  add("LSTM", "awd-lstm", [](RunConfig& run) { run.model.hidden_size = 80, run.model.embedding_size = 48; });
  for (const char* kind : {"encoder", "decoder"}) {
    add(fmt::format("classifier, {}", kind), kind, [&](RunConfig& run) {
      run.data = SyntheticData::of("labels");
      run.model.pooling = kind == std::string("encoder") ? "first" : "last";
      run.task.name = "classification";
    });
  }
  add("adapters", "decoder", [](RunConfig& run) { run.model.lora.rank = 4; });
  return runs;
}

TEST(SoundRuns, RaiseNoAlarm) {
  const auto runs = sound_runs();
  ASSERT_GE(runs.size(), 30U);
  std::vector<std::string> false_alarms;
  for (const auto& [name, run] : runs) {
    for (const Finding& each : findings_for(run)) {
      if (each.raised) false_alarms.push_back(fmt::format("{}: {}: {}", name, each.alarm, each.text));
    }
  }
  EXPECT_LE(false_alarms.size(), 2U) << join(false_alarms);
}

}  // namespace
}  // namespace plumb
