// Numbers that hold for checks of this program's runs and, through the Python package, of any other: how often a trial
// is looked at, what measurements cost, and where alarms of both are raised. The alarms say why.
#pragma once

#include <cstdint>

namespace plumb::check {

constexpr int64_t kStepsBetweenLosses = 10;  // of a trial
constexpr int64_t kMeasurements = 20;        // what those before training cost, in gradients of their examples

constexpr double kInitialLossMargin = 2;  // nats: initial_loss
constexpr double kCausality = 1e-4;       // of the states' size; float32 has 1e-7, and kernels may add in another order
constexpr double kSmallestStates = 0.01;  // RMS of what the output layer reads: signal
constexpr double kLargestStates = 4;
constexpr double kLargestUpdate = 0.4;     // of a matrix's norm, by the first step: updates
constexpr double kSmallestUpdates = 0.01;  // of its norm, by all steps: updates
constexpr double kMostBelowEpsilon = 0.5;  // of all elements: epsilon

}  // namespace plumb::check
