#include "plumb/task/classification_metrics.h"

#include <algorithm>
#include <string>

namespace plumb {

Metrics classification_metrics(const Confusion& confusion) {
  Metrics metrics;
  metrics.set("accuracy", accuracy_of(confusion));
  metrics.set("f1", macro_f1_of(confusion));
  metrics.set("mcc", matthews_of(confusion));
  const double total = confusion.total();
  if (total == 0) return metrics;
  const auto set_interval = [&](const std::string& name, const SampleInterval& interval) {
    metrics.set(name + "_low", interval.low);
    metrics.set(name + "_high", interval.high);
  };
  // Fewer samples if there are many examples or labels, to keep this fast.
  const double work = total + static_cast<double>(confusion.counts.size());
  const ClassificationIntervals drawn =
      bootstrap_classification(confusion, {.samples = static_cast<int64_t>(std::clamp(5e7 / work, 100.0, 1000.0))});
  set_interval("accuracy", wilson_interval(accuracy_of(confusion) * total, total));
  set_interval("f1", drawn.f1);
  set_interval("mcc", drawn.matthews);
  return metrics;
}

}  // namespace plumb
