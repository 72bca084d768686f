#include "plumb/study/measurements.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "plumb/base/parallel.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/base/timing.h"
#include "plumb/ops/threads.h"

namespace plumb {
namespace {

/// Shows the progress of several measurements as one.
class JointProgress {
 public:
  explicit JointProgress(const std::vector<const MeasurementRequest*>& requests)
      : count_(requests.size()), progress_("measurements", kSteps, Progress::Unit::percent) {
    for (const MeasurementRequest* request : requests) work_ += request->work;
  }

  /// `share`: the part of the request's work that is done.
  void advance(const MeasurementRequest& request, double share) {
    const std::lock_guard lock(mutex_);
    running_[&request] = share;
    show();
  }
  void end(const MeasurementRequest& request) {
    const std::lock_guard lock(mutex_);
    running_.erase(&request);
    done_work_ += request.work;
    ++done_;
    show();
  }

 private:
  static constexpr int64_t kSteps = 10000;

  void show() {
    double work = done_work_;
    std::vector<std::string> labels;
    for (const auto& [request, share] : running_) {
      work += request->work * share;
      labels.push_back(share > 0 ? fmt::format("{} {:.0f}%", request->label, 100 * share) : request->label);
    }
    const bool last = done_ == count_;
    if (!last && running_.empty()) return;  // the next one begins right away
    const auto steps = static_cast<int64_t>(work / work_ * kSteps);
    progress_.update(last ? kSteps : std::min(steps, kSteps - 1),
                     fmt::format("{} of {} done{}{}", done_, count_, labels.empty() ? "" : ": ", join(labels, "; ")));
  }

  size_t count_;
  size_t done_ = 0;
  double work_ = 0;
  double done_work_ = 0;
  std::map<const MeasurementRequest*, double> running_;  // the share that is done
  std::mutex mutex_;
  Progress progress_;
};

/// Calls `make` for each request, in up to `jobs` workers that divide the program's threads, until one throws.
void make_side_by_side(std::span<const MeasurementRequest* const> requests, int64_t jobs,
                       const std::function<void(const MeasurementRequest&)>& make, const FirstException& exception) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = 0; !exception.thrown() && (i = next.fetch_add(1)) < requests.size();) make(*requests[i]);
  };
  const int64_t workers = std::min<int64_t>(jobs, std::ssize(requests));
  if (workers <= 1) return work();
  const int threads = omp_get_max_threads();
  std::vector<std::thread> running;
  for (int64_t i = 0; i < workers; ++i) {
    try {
      running.emplace_back([&] {
        ops::set_threads(std::max<int64_t>(threads / workers, 1));
        work();
      });
    } catch (const std::system_error&) {  // no more threads available: those running do all the work
      if (running.empty()) throw;
      break;
    }
  }
  for (std::thread& worker : running) worker.join();
  ops::set_threads(threads);  // LibTorch has one setting for the whole program
}

}  // namespace

std::optional<Json> Measurements::stored(const MeasurementRequest& request) const {
  const std::filesystem::path path = directory_ / (request.name + ".json");
  if (!std::filesystem::exists(path)) return std::nullopt;
  Json document = read_json(path);
  if (!document.contains("result") || document.value("settings", Json()) != request.settings) return std::nullopt;
  if (request.keep) request.keep(&document["result"]);
  return std::move(document["result"]);
}

Json Measurements::get(const MeasurementRequest& request) {
  if (std::optional<Json> found = stored(request)) return std::move(*found);
  const Stopwatch watch;
  Json document = make_document("measurement", 1);
  document["name"] = request.name;
  document["settings"] = request.settings;
  document["result"] = request.measure();
  document["seconds"] = watch.seconds();
  write_json(directory_ / (request.name + ".json"), document);
  ++measured_;
  return stored(request).value();  // so that measured and stored results are identical
}

bool Measurements::has(const MeasurementRequest& request) const {
  return (request.keep && request.keep(nullptr)) || stored(request).has_value();
}

int64_t make_all(Measurements& measurements, const std::vector<MeasurementRequest>& requests, int64_t jobs,
                 const std::function<void(const MeasurementRequest&)>& on_made) {
  std::vector<const MeasurementRequest*> missing;
  std::set<std::string> names;
  for (const MeasurementRequest& request : requests) {
    if (names.insert(request.name).second && !measurements.has(request)) missing.push_back(&request);
  }
  const int64_t stored = std::ssize(names) - std::ssize(missing);
  if (missing.empty()) return stored;
  // Requests with the same turn may run concurrently.
  const auto turn = [](const MeasurementRequest* request) { return std::pair(request->stage, request->alone); };
  std::stable_sort(missing.begin(), missing.end(),
                   [&](const auto* first, const auto* second) { return turn(first) < turn(second); });

  JointProgress together(missing);
  FirstException exception;
  std::mutex telling;
  const auto measure = [&](const MeasurementRequest& request) {
    const ListenToProgress listen([&](double share) { together.advance(request, share); });
    together.advance(request, 0);
    measurements.get(request);
    together.end(request);
  };
  const auto make = [&](const MeasurementRequest& request) {
    exception.guard([&] {
      measure(request);
      const std::lock_guard lock(telling);
      if (on_made) on_made(request);
    });
  };
  for (auto first = missing.begin(); first != missing.end();) {
    const auto last = std::find_if(first, missing.end(), [&](const auto* each) { return turn(each) != turn(*first); });
    make_side_by_side({first, last}, (*first)->alone ? 1 : jobs, make, exception);
    first = last;
  }
  exception.rethrow();
  return stored;
}

}  // namespace plumb
