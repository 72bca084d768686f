#include "plumb/check/trial.h"

namespace plumb::check {

void describe(Fields& field, Trial& trial) {
  field("learning_rate", trial.learning_rate);
  field("warm_up", trial.warm_up);
  field("seed", trial.seed);
  describe(field, "outcome", trial.outcome);
  field("on_plateau", trial.on_plateau);
  field("gradient_at_input", trial.gradient_at_input);
  field("reason", trial.because);
  field("steps", trial.steps);
  field("losses", trial.losses);
  field("gradients", trial.steps_taken);
  field("seconds", trial.seconds);
}

}  // namespace plumb::check
