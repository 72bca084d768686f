#include "plumb/run/train_state.h"

#include "plumb/trouble/record_fields.h"

namespace plumb {

void describe(Fields& field, TrainState::Evaluation& evaluation) {
  count(field, "step", evaluation.step);
  field("value", evaluation.value);
}

void describe(Fields& field, TrainState& state) {
  count(field, "step", state.step);
  count(field, "epoch", state.epoch);
  count(field, "batch", state.batch);
  field("loss_sum", state.loss);
  field("nll_sum", state.nll);
  field("weight", state.weight);
  count(field, "tokens", state.tokens);
  field("best", state.best);
  count(field, "best_step", state.best_step);
  field.sections("best_list", state.best_list);
  count(field, "validations_since_best", state.validations_since_best);
  field("complete", state.complete);
  field("seconds", state.seconds);
  field.section("pending_point", state.pending);
}

}  // namespace plumb
