// The entries of a result's lists of figures, tables and verdicts.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "plumb/base/json.h"

namespace plumb::test {

/// The entry with this id; fails the test and returns null if it does not exist.
inline const Json& with_id(const Json& list, const std::string& id) {
  for (const Json& each : list) {
    if (each["id"] == id) return each;
  }
  ADD_FAILURE() << "nothing has the id " << id;
  static const Json none;
  return none;
}

}  // namespace plumb::test
