// Random training runs: killed at random instants and resumed, they end with the same files as when they are left
// alone; how often they are validated changes nothing that is trained; and none ends early without a reason.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "plumb/base/text.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/optim/optimizer.h"
#include "plumb/run/metrics_file.h"
#include "search.h"
#include "train/copy_task.h"
#include "train/lives.h"
#include "train/run_contents.h"
#include "train/small_data.h"

namespace plumb::runs_search {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kSteps = 16;
constexpr std::chrono::minutes kLongest{2};

/// Draws the keys of a run.
class Keys {
 public:
  explicit Keys(Random& random) : random_(random) {}

  /// One of these values, or in half of the cases none, which leaves the default.
  void maybe(const std::string& key, const std::vector<std::string>& values) {
    if (random_.below(2) == 0) set(key, one_of(values));
  }
  void set(const std::string& key, const std::string& value) { all_.push_back(key + "=" + value); }
  [[nodiscard]] std::string one_of(const std::vector<std::string>& values) const {
    return values[random_.below(values.size())];
  }
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }

 private:
  Random& random_;
  std::vector<std::string> all_;
};

std::vector<std::string> keys_of_a_run(Random& random) {
  struct Subject {
    std::string data, task, kind;
    std::vector<std::string> metrics;
  };
  static const std::vector<Subject> subjects = {
      {"pairs", "translation", "encoder-decoder", {"valid_nll", "valid_loss", "bleu"}},
      {"text", "language-modeling", "decoder", {"valid_nll", "perplexity"}},
      {"text", "language-modeling", "awd-lstm", {"valid_nll", "perplexity"}},
      {"text", "masked-language-modeling", "encoder", {"valid_nll", "accuracy"}},
      {"labels", "classification", "encoder", {"accuracy", "f1", "mcc"}}};
  const Subject& subject = subjects[random.below(subjects.size())];
  Keys keys(random);
  keys.set("data.directory", subject.data);
  keys.set("task.name", subject.task);
  keys.set("model.kind", subject.kind);
  for (const char* shape :
       {"model.d_model=16", "model.feed_forward=32", "model.heads=2", "model.encoder_layers=1",
        "model.decoder_layers=1", "model.layers=1", "model.hidden_size=14", "model.embedding_size=10"}) {
    const std::string text = shape;
    keys.set(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  }
  if (subject.task == "masked-language-modeling") keys.set("model.pooling", "none");
  keys.set("train.steps", std::to_string(kSteps));
  keys.set("train.batch_tokens", keys.one_of({"48", "64", "100"}));
  keys.set("train.learning_rate", keys.one_of({"0.001", "0.01"}));
  keys.set("train.warm_up", keys.one_of({"0", "3", "10"}));
  keys.set("train.decay_start", keys.one_of({"1", "4"}));
  keys.set("task.translation.beam", keys.one_of({"0", "1", "2"}));
  keys.set("train.log_every", keys.one_of({"1", "3"}));
  keys.set("train.validate_every", keys.one_of({"1", "3", "7"}));
  keys.set("train.checkpoint_every", keys.one_of({"1", "3", "5"}));
  keys.set("train.processes", keys.one_of({"1", "1", "2"}));
  keys.maybe("model.residual", residual_schemes().names());
  keys.maybe("model.norm", norms().names());
  keys.maybe("model.attention", attentions().names());
  keys.maybe("model.positions", positions().names());
  keys.maybe("model.dropout", {"0.0", "0.3"});
  keys.maybe("train.optimizer", optimizers().names());
  keys.maybe("train.schedule", {"constant", "constant*cosine_decay", "constant*linear_warmup*linear_decay",
                                "constant*one_cycle", "constant*stable_decay", "constant*slanted_triangular"});
  keys.maybe("train.micro_batch_tokens", {"16", "30"});
  keys.maybe("train.accumulate", {"2", "3"});
  keys.maybe("train.precision", {"bf16"});
  keys.maybe("train.parameters", {"bf16", "bf16-copy"});
  keys.maybe("train.exchange_precision", {"bf16"});
  keys.maybe("train.overlap", {"false"});
  keys.maybe("train.shard", {"\"optimizer\"", "\"gradients\"", "\"parameters\""});
  keys.maybe("train.synchronize_norms", {"false"});
  keys.maybe("train.average_decay", {"0.9"});
  keys.maybe("train.cautious", {"true"});
  keys.maybe("train.clip_norm", {"0.5"});
  keys.maybe("train.weight_decay", {"0.1"});
  keys.maybe("train.best_metric", subject.metrics);
  keys.maybe("train.score_every", {"-1", "2", "5"});
  keys.maybe("train.patience", {"1", "2"});
  keys.maybe("train.keep_best", {"2"});
  keys.maybe("train.keep_every", {"4"});
  keys.maybe("train.epochs", {"2"});
  keys.maybe("train.trouble.on_spike", {"skip", "rollback"});
  keys.maybe("train.trouble.window", {"4"});
  keys.maybe("train.trouble.threshold", {"2.0"});
  if (random.below(3) == 0) {
    keys.set("watch.every", keys.one_of({"2", "5"}));
    keys.set("watch.what", "[\"layers\", \"updates\"]");
  }
  return keys.all();
}

RunConfig run_of(const fs::path& folder, const std::vector<std::string>& keys) {
  Config config;
  for (const std::string& key : keys) config.set(key);
  RunConfig run = read_run_config(config);
  run.data = (folder / run.data).string();
  return run;
}

/// The trained weights and the state of the optimizer in the last checkpoint.
std::vector<std::string> trained(const std::map<std::string, std::string>& contents) {
  std::string last;
  for (const auto& [name, content] : contents) {
    if (name.starts_with("checkpoints/") && name.ends_with("/state.json")) last = name.substr(0, name.rfind('/'));
  }
  std::vector<std::string> found = {last};
  for (const char* file : {"model.safetensors", "trained.safetensors", "optimizer.safetensors"}) {
    const auto entry = contents.find(fmt::format("{}/{}", last, file));
    if (entry != contents.end()) found.push_back(entry->second);
  }
  return found;
}

/// Without a limit of epochs, a run may end early only after `patience` evaluations by its best metric without a better
/// one.
void expect_reason(const RunConfig& run, const fs::path& out) {
  const std::vector<TrainPoint> history = read_metrics(out / "metrics.jsonl");
  ASSERT_FALSE(history.empty());
  if (run.train.epochs > 0 || history.back().step == kSteps) return;
  const int64_t best = TrainResult::from_json(read_json(out / "result.json")).best_step();
  const auto since = std::count_if(history.begin(), history.end(), [&](const TrainPoint& point) {
    return point.step > best && point.metrics.get(run.train.best_metric);
  });
  EXPECT_GT(run.train.patience, 0);
  EXPECT_EQ(since, run.train.patience) << "ended at step " << history.back().step;
}

void kill_a_run(const fs::path& folder, Random& random, uint64_t number) {
  const fs::path place = folder / std::to_string(number);
  RunConfig run;
  std::vector<std::string> keys;
  int status = test::kRefused;
  Clock::duration time{};
  while (status == test::kRefused) {  // features that cannot be combined
    keys = keys_of_a_run(random);
    fs::remove_all(place);
    try {
      run = run_of(folder, keys);
    } catch (const Error&) {
      continue;
    }
    const auto begin = Clock::now();
    status = test::end_of_life(test::begin_life(run, place / "whole"), kLongest, true);
    time = Clock::now() - begin;
  }
  SCOPED_TRACE(join(keys, " --set "));
  ASSERT_TRUE(status == 0 || status == test::kNotFinished) << status;  // a diverged run is not finished
  const auto whole = test::contents_of_run(place / "whole");
  if (status == 0) expect_reason(run, place / "whole");

  for (int kills = 1 + static_cast<int>(random.below(3)); kills > 0; --kills) {
    const auto limit = std::chrono::microseconds(
        random.below(1 + static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count())));
    const int end = test::end_of_life(test::begin_life(run, place / "killed"), limit, random.below(2) == 0);
    ASSERT_TRUE(end == -1 || end == status) << end;
  }
  ASSERT_EQ(test::end_of_life(test::begin_life(run, place / "killed"), kLongest, true), status);
  test::expect_same_files(test::contents_of_run(place / "killed"), whole);

  if (run.train.patience == 0 && run.train.optimizer != "nt-asgd") {  // which validations do change
    run.train.validate_every = 1000;
    ASSERT_EQ(test::end_of_life(test::begin_life(run, place / "unvalidated"), kLongest, true), status);
    EXPECT_TRUE(trained(test::contents_of_run(place / "unvalidated")) == trained(whole)) << "unvalidated";
  }
  fs::remove_all(place);
}

TEST(RunsSearch, ConfigurationsKilledAndResumed) {
  test::in_a_process_of_its_own(
      [](const fs::path& folder) {
        test::make_copy_task(folder / "pairs");
        test::make_small_text(folder / "text");
        test::make_small_labels(folder / "labels");
      },
      [](const fs::path& folder) {
        test::search("configurations killed and resumed", 6,
                     [&](Random& random, uint64_t number) { kill_a_run(folder, random, number); });
      });
}

}  // namespace
}  // namespace plumb::runs_search
