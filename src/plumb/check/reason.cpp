#include "plumb/check/reason.h"

namespace plumb::check {

void describe(Fields& field, Reason& reason) {
  field("alarm", reason.alarm);
  field("raised", reason.raised);
  field("place", reason.place);
  field("value", reason.value);
  field("threshold", reason.threshold);
  field("text", reason.text);
  field("advice", reason.advice);
}

}  // namespace plumb::check
