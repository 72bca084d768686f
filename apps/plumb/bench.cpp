// plumb bench: how fast this machine trains, differentiates twice and decodes, beside the rate of its matrix products.
#include "bench/bench.h"

namespace plumb::app {

void add_bench(CLI::App& app, Globals& globals) {
  CLI::App* verb = app.add_subcommand(
      "bench", "Measure the speed of training, Hessian-vector products, decoding and attention here");
  verb->require_subcommand(1);
  bench::add_train(*verb, globals);
  bench::add_hvp(*verb, globals);
  bench::add_decode(*verb, globals);
  bench::add_attention(*verb, globals);
}

}  // namespace plumb::app
