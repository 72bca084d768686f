// A custom training loop around Plumb's model, batches, optimizer and schedule. An encoder-decoder learns to reverse
// sequences of digits.
#include <plumb/base/error.h>
#include <plumb/base/random.h>
#include <plumb/data/sequences.h>
#include <plumb/decode/translate.h>
#include <plumb/optim/clipping.h>
#include <plumb/optim/optimizer.h>
#include <plumb/optim/schedule.h>

#include <algorithm>
#include <iostream>

using Sequence = std::vector<int32_t>;

constexpr int32_t kFirstDigit = 4;  // after the special tokens
constexpr int64_t kSteps = 600;

/// Three to six digits.
Sequence draw(plumb::Random& random) {
  Sequence digits(3 + random.below(4));
  for (int32_t& digit : digits) digit = kFirstDigit + static_cast<int32_t>(random.below(10));
  return digits;
}

Sequence reversed(Sequence sequence) {
  std::reverse(sequence.begin(), sequence.end());
  return sequence;
}

/// Depends on the step alone.
plumb::Batch batch_of(int64_t step) {
  plumb::Random random(static_cast<uint64_t>(step), "training");
  plumb::Batch batch;
  for (int64_t i = 0; i < 64; ++i) {
    const Sequence source = draw(random);
    plumb::append_pair(batch, source, {}, reversed(source), {}, i);
  }
  return batch;
}

int main() try {
  plumb::ModelConfig config;
  config.d_model = 64;
  config.feed_forward = 128;
  config.encoder_layers = config.decoder_layers = 2;
  config.source_vocabulary = config.target_vocabulary = kFirstDigit + 10;
  config.dropout = 0;
  const auto model = plumb::make_model(config);
  model->initialize(1);

  const auto optimizer = plumb::make_optimizer("adam", model->parameters());
  const plumb::Schedule schedule("constant * linear_warmup * cosine_decay",
                                 {.learning_rate = 3e-3, .warm_up = 50, .steps = kSteps});
  double loss_per_token = 0;
  for (int64_t step = 1; step <= kSteps; ++step) {
    plumb::ForwardContext context(config.dropout, /*seed=*/1, step);
    const plumb::Loss loss = model->loss(batch_of(step), {}, context);
    const auto gradient = plumb::gradients({loss.value}, model->parameters().values(), {});
    optimizer->step(gradient, schedule(step), plumb::clip_scale(plumb::global_norm(gradient), 1.0));
    loss_per_token = loss.nll / static_cast<double>(loss.tokens);
    if (step % 100 == 0) std::cout << "step " << step << ": " << loss_per_token << " nats per token\n";
  }

  // Decodes new sequences by beam search.
  plumb::Random random(1, "test");
  std::vector<Sequence> sources(100);
  for (Sequence& source : sources) source = draw(random);
  const auto written = plumb::translate(plumb::translator_of(*model), sources, {});
  int right = 0;
  for (size_t i = 0; i < sources.size(); ++i) right += written[i] == reversed(sources[i]);
  std::cout << right << " of " << sources.size() << " new sequences are reversed\n";
  return loss_per_token < 0.05 && right >= 90 ? 0 : 1;
} catch (const plumb::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
