// What the autograd functions of several operations have in common.
#pragma once

#include <functional>
#include <utility>

#include "plumb/ops/torch.h"

namespace plumb {

/// Hands a value of any type from the forward pass to the backward pass.
template <typename Value>
struct SavedValue : torch::CustomClassHolder {
  explicit SavedValue(Value saved) : value(std::move(saved)) {}
  Value value;
};
template <typename Value>
void save_value(AutogradContext* ctx, Value value) {
  ctx->saved_data["value"] = c10::IValue::make_capsule(c10::make_intrusive<SavedValue<Value>>(std::move(value)));
}
/// Lives as long as `ctx`.
template <typename Value>
const Value& saved_value(AutogradContext* ctx) {
  return c10::static_intrusive_pointer_cast<SavedValue<Value>>(ctx->saved_data["value"].toCapsule())->value;
}

/// The gradients of an operation without a second derivative of its own, with a graph: `reference` computes the
/// operation's outputs again from its inputs, and is differentiated. grads: of the outputs. Returns one gradient for
/// each input, undefined where none is needed, and an undefined one for the value that save_value() kept.
variable_list gradients_by_reference(AutogradContext* ctx, const variable_list& inputs, const variable_list& grads,
                                     const std::function<variable_list(const variable_list&)>& reference);

}  // namespace plumb
