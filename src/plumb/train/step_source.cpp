#include "plumb/train/step_source.h"

#include <algorithm>
#include <utility>

#include "plumb/base/timing.h"

namespace plumb {

PlanSettings plan_settings(const TrainConfig& config, std::optional<CorpusMixture> mixture,
                           const std::optional<StreamCut>& stream) {
  return {.tokens = config.batch_tokens,
          .seed = static_cast<uint64_t>(config.seed),
          .mixture = std::move(mixture),
          .stream = stream};
}

StepSource::StepSource(const Dataset& dataset, const PlanSettings& settings, int64_t accumulate)
    : dataset_(dataset),
      costs_(dataset.size(), [&dataset](int64_t i) { return dataset.cost(i); }),
      settings_(settings),
      accumulate_(accumulate) {}

std::shared_ptr<const BatchPlan> StepSource::plan_of(int64_t epoch) const {
  if (plan_ && plan_->epoch() == epoch) return plan_;
  return std::make_shared<const BatchPlan>(costs_, settings_, epoch);
}

void StepSource::receive() {
  if (coming_.valid()) ready_ = coming_.get();
}

void StepSource::go_to(int64_t epoch) {
  if (plan_ && plan_->epoch() == epoch) return;
  const Stopwatch watch;
  receive();
  plan_ = ready_ && ready_->place.epoch == epoch ? ready_->plan : plan_of(epoch);
  waited_ += watch.seconds();
}

int64_t StepSource::count(int64_t first) const { return std::min(accumulate_, plan_->size() - first); }

double StepSource::rate_factor(int64_t first) const {
  if (!settings_.stream || !settings_.stream->varied) return 1;
  return static_cast<double>(batches(first).front().size()) / static_cast<double>(settings_.stream->length);
}

StepShare StepSource::take(int64_t first, const Division& division) {
  const Stopwatch watch;
  const Place place{plan_->epoch(), first, division};
  receive();
  const bool prepared = ready_ && ready_->place == place;
  StepShare share = prepared ? std::move(ready_->share) : share_of(batches(first), division);
  ready_.reset();
  const int64_t next = first + count(first);
  prepare(next < plan_->size() ? Place{place.epoch, next, division} : Place{place.epoch + 1, 0, division});
  waited_ += watch.seconds();
  return share;
}

void StepSource::prepare(const Place& place) {
  const auto work = [this, place, known = plan_] {
    auto plan =
        known->epoch() == place.epoch ? known : std::make_shared<const BatchPlan>(costs_, settings_, place.epoch);
    StepShare share = share_in(place.epoch, plan->batches(place.batch, accumulate_), place.division);
    return PreparedShare{place, std::move(plan), std::move(share)};
  };
  coming_ = std::async(std::launch::async, work);
}

}  // namespace plumb
