#include "plumb/train/launched.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <string>

#include "plumb/ops/threads.h"
#include "plumb/parallel/rendezvous.h"
#include "plumb/run/data_fingerprint.h"
#include "plumb/train/agreement.h"
#include "plumb/train/begun_model.h"

namespace plumb {
namespace {

/// Asks other observers whether to stop, and tells them nothing.
class OnlyStops final : public TrainObserver {
 public:
  explicit OnlyStops(const TrainObservers& asked) : asked_(asked) {}
  bool stops() override { return any_of(asked_, &TrainObserver::stops); }

 private:
  const TrainObservers& asked_;
};

}  // namespace

ThreadShare::ThreadShare(int64_t processes)
    : all_(at::get_num_threads()), own_(std::max<int64_t>(all_ / processes, 1)) {
  if (own_ != all_) ops::set_threads(own_);
}

ThreadShare::~ThreadShare() {
  if (own_ != all_) ops::set_threads(all_);
}

TrainResult train_launched(const TrainConfig& config, const TrainObservers& observers, bool share_threads,
                           const std::function<TrainResult(const std::optional<Group>&)>& train) {
  try {
    std::optional<Rendezvous> rendezvous = rendezvous_of_environment();
    if (!rendezvous) return train(std::nullopt);
    rendezvous->timeout = config.timeout;
    const auto waiting = [&] {
      if (any_of(observers, &TrainObserver::gives_up)) throw JoiningStopped();
    };
    const Group group = join_group(*rendezvous, {{}, waiting});
    std::optional<ThreadShare> share;
    if (share_threads) share.emplace(group.neighbors());
    return telling_others(group, [&] { return train(group); });
  } catch (const JoiningStopped&) {
    return {.outcome = RunOutcome::stopped};
  }
}

std::optional<RunOutcome> broadcast_outcome(const Group& group, std::optional<RunOutcome> outcome) {
  const std::string text = group.broadcast(outcome ? std::to_string(static_cast<int>(*outcome)) : std::string());
  return text.empty() ? std::nullopt : std::optional(static_cast<RunOutcome>(std::stoi(text)));
}

TrainResult train_as_worker(const RunConfig& config, const Task& task, const Group& group,
                            const TrainObservers& observers) {
  group.require_same(facts_of(config, fingerprint_of(task.data())));
  const std::unique_ptr<Model> model = make_begun_model(config);
  Trainer trainer(*model, config.train, task);
  if (const auto outcome = broadcast_outcome(group, std::nullopt)) return {.outcome = *outcome};
  trainer.join(group);
  OnlyStops own(observers);
  return trainer.run({&own});
}

}  // namespace plumb
