// Processes that divide the layers of a model, its stages, its gradients or its optimizer's state: everything is that
// of one process. Of the lists of models and meshes below, cases are drawn with every two traits that occur together;
// `make search` tries all cases.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "divided_training.h"
#include "optim/options.h"
#include "support/every_pair.h"

namespace plumb {
namespace {

using test::Architecture;
using test::from_pieces;
using test::Shape;
using test::without_biases;

/// How processes arrange a training.
struct Arrangement {
  Shape shape;
  std::optional<Shape> begun = {};  // the first three steps, after which it goes on from a checkpoint
  bool averages = false;            // the weights
  bool exact = false;               // steps are those of three processes with whole gradients, bit for bit
};

struct MeshCase {
  Architecture model;
  Arrangement arrangement;
};

/// Matrices cut by gradients or parameters have a size that is no multiple of the processes.
bool is_cut(const Arrangement& arrangement) {
  const auto cuts = [](const Shape& shape) { return shape.shard == "gradients" || shape.shard == "parameters"; };
  return arrangement.exact || cuts(arrangement.shape) || (arrangement.begun && cuts(*arrangement.begun));
}

std::string to_string(const MeshCase& given) {
  const Arrangement& arrangement = given.arrangement;
  return fmt::format("{}: {}{}{}{}", given.model.name,
                     arrangement.begun ? test::to_string(*arrangement.begun) + ", then " : "",
                     test::to_string(arrangement.shape), arrangement.averages ? ", averaged" : "",
                     arrangement.exact ? ", bit for bit" : "");
}
void PrintTo(const MeshCase& given, std::ostream* out) { *out << to_string(given); }

std::vector<std::string> traits_of(const MeshCase& given) {
  const Arrangement& arrangement = given.arrangement;
  std::vector<std::string> traits = {"model " + given.model.name, arrangement.begun ? "goes on" : "begins"};
  for (const Shape& shape : {arrangement.shape, arrangement.begun.value_or(arrangement.shape)}) {
    traits.push_back(fmt::format("mesh {} {} {} {} {}", shape.processes, shape.tensor, shape.pipeline, shape.schedule,
                                 shape.chunks));
    traits.push_back("shard " + shape.shard);
    traits.push_back(shape.begins_in_pieces ? "from pieces" : "from the whole");
    if (shape.recompute) traits.emplace_back("recomputed");
  }
  if (arrangement.averages) traits.emplace_back("averaged");
  if (arrangement.exact) traits.emplace_back("bit for bit");
  std::ranges::sort(traits);
  traits.erase(std::unique(traits.begin(), traits.end()), traits.end());
  return traits;
}

std::vector<MeshCase> cases_of(const std::vector<Architecture>& models, const std::vector<Arrangement>& arrangements) {
  std::vector<MeshCase> all;
  for (const Architecture& model : models) {
    for (const Arrangement& arrangement : arrangements) all.push_back({model, arrangement});
  }
  return std::getenv("PLUMB_SEARCH_SECONDS") != nullptr ? all : test::with_every_pair(all, traits_of);
}

Shape in_pieces(int64_t processes, const std::string& shard, bool recompute = false, int64_t tensor = 1) {
  return {.processes = processes, .tensor = tensor, .shard = shard, .recompute = recompute};
}

Shape recomputed(Shape shape) {
  shape.recompute = true;
  return shape;
}

Shape sharing_state(Shape shape) {
  shape.shard = "optimizer";
  return shape;
}

/// Within layers.
std::vector<MeshCase> tensor_cases() {
  const std::vector<Architecture> models = {
      test::kPostLn,
      test::kLlama,
      test::kGopher,
      test::kGated,
      {"Alibi",
       [](RunConfig& run) {
         without_biases(run);
         run.model.heads = 6;
         run.model.positions = "alibi";
       }},
      {"T5",
       [](RunConfig& run) {
         run.model.heads = 4;
         run.model.positions = "t5";
       }},
      {"HybridNorm",
       [](RunConfig& run) {
         run.model.residual = "hybridnorm";
         run.train.learning_rate = 0.01;  // with more, differences of rounding grow from step to step
       }},
  };
  const Shape two{2, 2}, four = from_pieces({4, 2}), shared = sharing_state(four);
  return cases_of(models, {{.shape = two},
                           {.shape = four},
                           {.shape = {}, .begun = two},
                           {.shape = four, .begun = Shape{}},
                           {.shape = shared, .averages = true},
                           {.shape = shared, .begun = sharing_state({}), .averages = true}});
}

/// The same decoder with four layers, a stage each.
Architecture of_four_layers(const Architecture& decoder) {
  return {decoder.name + "OfFourLayers", [set = decoder.set](RunConfig& run) {
            set(run);
            run.model.decoder_layers = 4;
          }};
}

Architecture of_residual(const std::string& name, const std::string& residual) {
  return of_four_layers({name, [residual](RunConfig& run) {
                           without_biases(run);
                           run.model.residual = residual;
                         }});
}

/// In stages.
std::vector<MeshCase> pipeline_cases() {
  const std::vector<Architecture> models = {
      of_four_layers(test::kLlama),
      of_four_layers({"Gopher",
                      [](RunConfig& run) {
                        test::kGopher.set(run);
                        run.model.share_embeddings = "none";  // its output matrix is not the embedding
                      }}),
      of_residual("ResiDual", "residual-dual"),
      of_residual("HyperConnections", "hyper-connections"),
      of_four_layers(test::kGated),
      test::kPostLn,  // three of its stages have the same embedding
  };
  const Shape two{2, 1, 2}, chunks{2, 1, 2, "1f1b", 2}, four{4, 1, 4}, both{4, 2, 2};
  const Shape shared = sharing_state(from_pieces({4, 1, 2}));
  return cases_of(models, {{.shape = two},
                           {.shape = {4, 1, 4, "gpipe"}},
                           {.shape = from_pieces(four)},
                           {.shape = from_pieces(chunks)},
                           {.shape = from_pieces(both)},
                           {.shape = {}, .begun = two},
                           {.shape = from_pieces(four), .begun = Shape{}},
                           {.shape = from_pieces(chunks), .begun = from_pieces(both)},
                           {.shape = shared, .averages = true},
                           {.shape = shared, .begun = shared, .averages = true},
                           {.shape = recomputed(two)},
                           {.shape = recomputed(chunks)},
                           {.shape = recomputed(both)}});
}

/// With pieces of gradients or parameters.
std::vector<MeshCase> shard_cases() {
  const std::vector<Architecture> models = {
      test::kPostLn,
      test::kLlama,
      test::kGopher,
      {"ResiDual", [](RunConfig& run) { run.model.residual = "residual-dual"; }},
      {"ValueResidualInParallel",
       [](RunConfig& run) {
         without_biases(run);
         run.model.value_residual = true;
         run.model.parallel = true;
       }},
      {"HyperConnections", [](RunConfig& run) { run.model.residual = "hyper-connections"; }},
  };
  const Shape two = in_pieces(2, "parameters"), three = in_pieces(3, "gradients");
  const Shape begun = from_pieces(in_pieces(3, "parameters"));
  std::vector<Arrangement> arrangements = {{.shape = in_pieces(2, "gradients")},
                                           {.shape = in_pieces(4, "gradients", true)},
                                           {.shape = two},
                                           {.shape = in_pieces(2, "parameters", true)},
                                           {.shape = in_pieces(4, "parameters")},
                                           {.shape = from_pieces(two)},
                                           {.shape = from_pieces(in_pieces(4, "parameters", true))},
                                           {.shape = {}, .begun = two},
                                           {.shape = two, .begun = Shape{}},
                                           {.shape = two, .begun = three},
                                           {.shape = three, .begun = two},
                                           {.shape = {}, .begun = begun},
                                           {.shape = begun, .begun = Shape{}}};
  for (const char* shard : {"gradients", "parameters"}) {
    const Shape of_a_divided_model = from_pieces(in_pieces(4, shard, false, 2));
    arrangements.push_back({.shape = of_a_divided_model});
    arrangements.push_back({.shape = of_a_divided_model, .begun = Shape{}});
  }
  for (const Shape& shape :
       {in_pieces(3, "optimizer"), three, in_pieces(3, "parameters"), in_pieces(3, "parameters", true), begun})
    arrangements.push_back({.shape = shape, .exact = true});
  return cases_of(models, arrangements);
}

/// Some parameters are frozen at first, so that the steps of each are counted apart.
Architecture with_optimizer(const std::string& name, const std::function<void(RunConfig&)>& set) {
  return {name, [set](RunConfig& run) {
            test::kLlama.set(run);
            run.model.decoder_layers = 4;
            run.train.learning_rate = 0.01;
            run.train.groups.push_back({.pattern = {"*norm*", "decoder.layers.1.*"}, .frozen_until = 3});
            set(run);
          }};
}

Architecture with_optimizer(const std::string& name) {
  return with_optimizer(name, [name](RunConfig& run) { run.train.optimizer = name; });
}

/// Where a gradient has fewer rows than columns, some eigenvectors of GᵀG are arbitrary, and so are SOAP's steps:
/// square ones have none of these. After 11 steps of each parameter, the first QR decomposition has made the signs of
/// the eigenvectors the same.
void set_soap_of_square_matrices(RunConfig& run) {
  run.train.optimizer = "soap";
  run.train.steps = 14;
  run.model.kv_heads = 0;
  run.model.feed_forward = run.model.d_model;
  run.train.options = test::options(fmt::format("[train.soap]\nlongest_side = {}", run.model.d_model));
}

/// Optimizers that update each matrix as a whole.
std::vector<MeshCase> optimizer_cases() {
  const std::vector<Architecture> models = {
      with_optimizer("adafactor"), with_optimizer("lamb"), with_optimizer("muon"),
      with_optimizer("soap", set_soap_of_square_matrices),
      with_optimizer("cautious", [](RunConfig& run) { run.train.cautious = true; })};
  const Shape two{2, 2}, both{4, 2, 2};
  return cases_of(models, {{.shape = two},
                           {.shape = {4, 1, 2, "1f1b", 2}},
                           {.shape = from_pieces(both)},
                           {.shape = {}, .begun = two},
                           {.shape = from_pieces(both), .begun = Shape{}},
                           {.shape = from_pieces({2, 1, 2}), .begun = both},
                           {.shape = sharing_state({4, 2})},
                           {.shape = from_pieces(sharing_state({8, 2, 2}))}});
}

/// Optimizers that act on each element by itself; the other cases have SGD and AdamW.
std::vector<MeshCase> element_cases() {
  return cases_of({with_optimizer("adam"), with_optimizer("radam"), with_optimizer("lion"), with_optimizer("nt-asgd"),
                   with_optimizer("schedule-free-adamw")},
                  {{.shape = {4, 2, 2}}});
}

/// Every mesh of up to eight processes, of one model.
std::vector<MeshCase> every_mesh() {
  const Architecture model = {"EightHeads", [](RunConfig& run) {
                                test::kPostLn.set(run);
                                run.model.encoder_layers = run.model.decoder_layers = 4;
                                run.model.d_model = 16;
                                run.model.heads = 8;
                                run.model.feed_forward = 24;
                                run.train.micro_batch_tokens = 0;
                                run.train.steps = 4;
                              }};
  std::vector<Arrangement> meshes;
  for (const int64_t processes : {2, 4, 8}) {
    for (int64_t tensor = 1; tensor <= processes; tensor *= 2) {
      for (int64_t pipeline = 1; tensor * pipeline <= processes; pipeline *= 2) {
        const Shape shape{processes, tensor, pipeline};
        meshes.push_back({.shape = tensor * pipeline > 1 ? from_pieces(shape) : shape});
      }
    }
  }
  return cases_of({model}, meshes);
}

TEST(MeshCases, HaveEveryMesh) { EXPECT_EQ(every_mesh().size(), 3 + 6 + 10); }

class MeshTraining : public test::DividedTraining, public ::testing::WithParamInterface<MeshCase> {
 protected:
  MeshTraining() : DividedTraining(GetParam().model), arrangement_(GetParam().arrangement) {
    if (arrangement_.averages) run_.train.average_decay = 0.6;
    if (is_cut(arrangement_) && arrangement_.shape.tensor == 1) run_.model.feed_forward = 21;
    if (!arrangement_.exact) return;
    // With one micro-batch in a step and without clipping, all sums are in the same order.
    run_.train.accumulate = 1;
    run_.train.micro_batch_tokens = 0;
    run_.train.clip_norm = 0;
  }
  static void TearDownTestSuite() { whole_.clear(); }

  /// The training that the case must equal, made once for all cases that have the same.
  [[nodiscard]] const Trained& whole() const {
    const std::string key = fmt::format("{} {} {} {}", GetParam().model.name, run_.model.feed_forward,
                                        arrangement_.averages, arrangement_.exact);
    const auto found = whole_.find(key);
    if (found != whole_.end()) return found->second;
    return whole_.emplace(key, trained(arrangement_.exact ? in_pieces(3, "none") : Shape{})).first->second;
  }

  const Arrangement& arrangement_;

 private:
  static inline std::map<std::string, Trained> whole_;
};

TEST_P(MeshTraining, IsThatOfOneProcess) {
  const test::TemporaryDirectory checkpoint;
  std::filesystem::path before;
  if (arrangement_.begun) {
    before = checkpoint.path();
    static_cast<void>(trained(*arrangement_.begun, 3, {}, before));
  }
  const Trained found = trained(arrangement_.shape, kEnd, before);
  // But for streams that begin as one tensor, whose gradients are added up by layers.
  const bool by_layers = run_.model.residual == "residual-dual" && arrangement_.shape.shard == "parameters";
  if (arrangement_.exact && !by_layers) {
    ASSERT_EQ(found.tensors.size(), whole().tensors.size());
    for (const auto& [name, tensor] : whole().tensors) EXPECT_TRUE(at::equal(found.tensors.at(name), tensor)) << name;
    return;
  }
  expect_same(found, whole(), to_string(GetParam()));
  if (is_cut(arrangement_) && !arrangement_.exact && !arrangement_.begun && arrangement_.shape.tensor == 1) {
    EXPECT_LT((found.parameters - whole().parameters).abs().max().item<double>(), 1e-10);
  }
}

std::string name_of(const ::testing::TestParamInfo<MeshCase>& info) {
  std::string name = info.param.model.name;
  std::erase(name, '-');
  return fmt::format("{}{}", name, info.index);
}

INSTANTIATE_TEST_SUITE_P(Tensor, MeshTraining, ::testing::ValuesIn(tensor_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Pipeline, MeshTraining, ::testing::ValuesIn(pipeline_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Shard, MeshTraining, ::testing::ValuesIn(shard_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Optimizer, MeshTraining, ::testing::ValuesIn(optimizer_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Elements, MeshTraining, ::testing::ValuesIn(element_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Every, MeshTraining, ::testing::ValuesIn(every_mesh()), name_of);

}  // namespace
}  // namespace plumb
