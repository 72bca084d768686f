// plumb bench: times training, second derivatives and decoding, relative to the machine's matrix-product throughput.
#include "bench.h"

namespace plumb::app {

void add_bench(CLI::App& app, Globals& globals) {
  CLI::App* verb = app.add_subcommand(
      "bench", "Benchmark training, second derivatives, decoding, generation, attention and optimizers");
  verb->require_subcommand(1);
  bench::add_train(*verb, globals);
  bench::add_decoder(*verb, globals);
  bench::add_hvp(*verb, globals);
  bench::add_decode(*verb, globals);
  bench::add_generate(*verb, globals);
  bench::add_attention(*verb, globals);
  bench::add_lstm(*verb, globals);
  bench::add_optimizer(*verb, globals);
  bench::add_plan(*verb, globals);
}

}  // namespace plumb::app
