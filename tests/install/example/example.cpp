// A program that uses the installed package: a model from TOML, and the loss of one pair of sentences.
#include <plumb/base/batch.h>
#include <plumb/base/config.h>
#include <plumb/base/error.h>
#include <plumb/data/sequences.h>
#include <plumb/model/encoder_decoder.h>

#include <cmath>
#include <cstdint>
#include <iostream>
#include <vector>

int main() try {
  auto file = plumb::Config::from_string("[model]\nd_model = 16\nheads = 2\nfeed_forward = 32\n", "example.toml");
  file.set("model.residual=post-ln");
  plumb::ModelConfig config;
  file.read("model", config);
  config.source_vocabulary = config.target_vocabulary = 40;

  plumb::EncoderDecoder model(config);
  model.initialize(1);
  plumb::Batch batch;
  plumb::append_pair(batch, std::vector<int32_t>{5, 6, 7}, {}, std::vector<int32_t>{8, 9}, {}, 0);
  plumb::ForwardContext context;
  const plumb::Loss loss = model.loss(batch, {}, context);
  std::cout << loss.value.item<float>() << " over " << loss.tokens << " tokens\n";
  return std::isfinite(loss.nll) && loss.tokens == 3 ? 0 : 1;
} catch (const plumb::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
