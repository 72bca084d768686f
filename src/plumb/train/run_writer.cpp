#include "plumb/train/run_writer.h"

#include <utility>

namespace plumb {

RunWriter::RunWriter(const OpenRun& run, const TrainConfig& config, std::unique_ptr<MetricsFile> metrics,
                     bool completes)
    : open_(run),
      run_(run.path()),
      retention_{config.keep_checkpoints, {}, {}, {}},
      metrics_(std::move(metrics)),
      completes_(completes) {}

std::shared_ptr<const Snapshot> RunWriter::copy(const Trainer& trainer) {
  Snapshot now = trainer.snapshot();
  std::shared_ptr<const Snapshot> last = last_.lock();
  if (last && last->step == now.step) {  // the tensors do not change between writes after the same step
    now.files = last->files;
  } else {
    last.reset();
    writer_.wait();  // so that there are copies after one step at a time
    now = now.copied();
  }
  auto copied = std::make_shared<const Snapshot>(std::move(now));
  last_ = copied;
  return copied;
}

void RunWriter::submit(const std::shared_ptr<const Snapshot>& snapshot, std::function<void(const Snapshot&)> write) {
  writer_.check();
  writer_.add([snapshot, write = std::move(write)] { write(*snapshot); });
  if (completes_) writer_.wait();
}

void RunWriter::on_rollback(const Trainer& trainer) {
  writer_.wait();
  metrics_ =
      std::make_unique<MetricsFile>(run_ / "metrics.jsonl", trainer.history(), trainer.watched(), trainer.troubles());
  last_.reset();
  remove_later_checkpoints(run_, trainer.step());
  return_best(run_, trainer.step(), trainer.best_step());
}

void RunWriter::on_checkpoint(const Trainer& trainer) {
  Retention retention = retention_;
  retention.permanent = trainer.permanent_steps();
  retention.best = trainer.best_steps();
  retention.rollback = trainer.rollback_step();
  submit(copy(trainer), [this, retention = std::move(retention), mark = metrics_->mark()](const Snapshot& snapshot) {
    metrics_->sync();
    write_checkpoint(run_, snapshot, mark);
    remove_old_checkpoints(run_, snapshot.step, retention);
  });
}

void RunWriter::on_best(const Trainer& trainer) {
  submit(copy(trainer), [this](const Snapshot& snapshot) { write_best(run_, snapshot); });
}

void RunWriter::on_among_best(const Trainer& trainer) {
  submit(copy(trainer), [this](const Snapshot& snapshot) { write_among_best(run_, snapshot); });
}

bool RunWriter::stops() {
  writer_.check();
  (void)open_.place();  // throws if it is gone
  return false;
}

bool RunWriter::load_checkpoint(Trainer& trainer, int64_t step) {
  writer_.wait();
  const auto all = checkpoints_of(run_);
  const auto found = all.find(step);
  if (found != all.end()) trainer.load(found->second);
  return found != all.end();
}

void RunWriter::end(const TrainResult& result) {
  writer_.wait();
  metrics_->end(result);
  metrics_->sync();
  Json document = result.to_json();
  seal(document);
  write_json(run_ / "result.json", document);
}

}  // namespace plumb
