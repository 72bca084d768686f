// The errors that calls throw.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "plumb/base/error.h"
#include "support/contains.h"

namespace plumb::test {

/// The Error that `action` throws; one with the message "accepted" if it throws none.
template <typename Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error("accepted");
}

template <typename Action>
std::string message_of(const Action& action) {
  return error_of(action).what();
}

/// Expects an Error whose message contains `part`, and returns it.
template <typename Action>
Error expect_error(const Action& action, const std::string& part) {
  Error error = error_of(action);
  EXPECT_CONTAINS(error.what(), part);
  return error;
}

}  // namespace plumb::test
