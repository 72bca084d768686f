#include "plumb/divided/stage_computation.h"

#include "plumb/ops/take_gradients.h"

namespace plumb {
namespace {

std::vector<Tensor> values_of(LayerRange& range) {
  std::vector<Tensor> values;
  for (Tensor* tensor : range.tensors()) values.push_back(*tensor);
  return values;
}

}  // namespace

StageComputation::StageComputation(Model& model, const Group& pipeline, PipelineSplit stages, std::string schedule,
                                   int64_t chunks)
    : model_(model),
      pipeline_(pipeline),
      stages_(std::move(stages)),
      schedule_(std::move(schedule)),
      chunks_(chunks),
      links_(pipeline, chunks > 1) {}

std::vector<Tensor> StageComputation::gradient(const std::vector<const Batch*>& micro_batches,
                                               const std::function<ForwardContext(size_t)>& context_of,
                                               const std::function<Tensor(size_t, ForwardContext&)>& loss_of) {
  const PipelineSchedule schedule =
      make_pipeline_schedule(schedule_, pipeline_.size(), chunks_, std::ssize(micro_batches));
  std::map<std::pair<int64_t, int64_t>, Activations> activations;  // by micro-batch and part
  std::vector<Tensor> gradient;
  telling_others(pipeline_, [&] {
    for (const StageTask& task : schedule.tasks[static_cast<size_t>(pipeline_.rank())]) {
      const int64_t part = schedule.part(pipeline_.rank(), task.chunk);
      const auto number = static_cast<size_t>(task.micro_batch);
      const Batch& batch = *micro_batches[number];
      if (task.pass == Pass::backward) {
        backward(part, batch, std::move(activations.extract({task.micro_batch, part}).mapped()), gradient);
        continue;
      }
      LayerRange range = receive_input(part, batch);
      Activations& own = activations[{task.micro_batch, part}];
      own.inputs = values_of(range);
      ForwardContext context = context_of(number);
      context.run_layers(range, stages_.sites(part));
      if (part == stages_.parts() - 1) {
        own.outputs = {loss_of(number, context)};
        continue;
      }
      static_cast<void>(model_.states(batch, context));
      own.outputs = values_of(range);
      links_.send(joined(own.outputs), Pass::forward);
    }
    links_.wait_for_lines();
  });
  return gradient;
}

LayerRange StageComputation::receive_input(int64_t part, const Batch& batch) {
  if (part == 0) return stages_.layer_range(part);
  const Tensor flat = at::empty({stages_.count(part, batch)}, model_.parameters().options());
  links_.receive(flat, Pass::forward);
  return stages_.input_of(part, batch, flat);
}

void StageComputation::backward(int64_t part, const Batch& batch, Activations activations,
                                std::vector<Tensor>& gradient) {
  std::vector<Tensor> outputs, weights;
  if (part == stages_.parts() - 1) {
    outputs = activations.outputs;
  } else {
    const Tensor flat = at::empty({stages_.count(part + 1, batch)}, model_.parameters().options());
    links_.receive(flat, Pass::backward);
    const std::vector<Tensor> all = split_like(flat, activations.outputs);
    for (size_t i = 0; i < all.size(); ++i) {
      if (!activations.outputs[i].requires_grad()) continue;
      outputs.push_back(activations.outputs[i]);
      weights.push_back(all[i]);
    }
  }
  std::vector<Tensor> inputs = model_.parameters().values();
  const auto own = static_cast<std::ptrdiff_t>(inputs.size());
  inputs.insert(inputs.end(), activations.inputs.begin(), activations.inputs.end());
  std::vector<Tensor> derivatives(inputs.size());
  take_gradients(outputs, inputs, weights, std::move(gradient),
                 [&](size_t i, Tensor derivative) { derivatives[i] = std::move(derivative); });
  if (part > 0) links_.send(joined({derivatives.begin() + own, derivatives.end()}), Pass::backward);
  derivatives.resize(static_cast<size_t>(own));
  gradient = std::move(derivatives);
}

void StageComputation::forward(const Batch& batch, ForwardContext& context, const std::function<void()>& finish) {
  const at::NoGradGuard no_graph;
  telling_others(pipeline_, [&] {
    for (int64_t part = pipeline_.rank(); part < stages_.parts(); part += pipeline_.size()) {
      LayerRange range = receive_input(part, batch);
      context.run_layers(range, stages_.sites(part));
      if (part == stages_.parts() - 1) {
        finish();
      } else {
        static_cast<void>(model_.states(batch, context));
        links_.send(joined(values_of(range)), Pass::forward);
        links_.wait_for_lines(2);  // a stage does not run away from the next
      }
    }
  });
}

}  // namespace plumb
