#include "plumb/train/finding.h"

namespace plumb {

void describe(Fields& field, Finding& finding) {
  field("alarm", finding.alarm);
  field("raised", finding.raised);
  field("place", finding.where);
  field("value", finding.value);
  field("threshold", finding.threshold);
  field("text", finding.text);
  field("advice", finding.advice);
}

}  // namespace plumb
