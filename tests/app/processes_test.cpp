// plumb spectrum and plumb probe in several processes, started by the program itself or by a launcher.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "support/port.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

using test::Finished;
using test::Process;
using test::run_plumb;
using test::unused_port;
using Arguments = std::vector<std::string>;

Arguments operator+(Arguments all, const Arguments& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

class SharedVerb : public test::SharedFolder<SharedVerb> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    test::succeeded(
        run_plumb({"data", "synthesize", "--pairs", "200", "--vocabulary", "300", "--out", "data"}, folder_->path()));
    write_file_atomic(*folder_ / "model.toml",
                      "[model]\nd_model = 4\nheads = 2\nfeed_forward = 8\nencoder_layers = 1\ndecoder_layers = 1\n");
  }

  /// The command line for twelve pairs in several micro-batches, with the result on standard output.
  static Arguments command(const std::string& verb, const Arguments& more = {}) {
    return Arguments{verb,
                     "--config",
                     "model.toml",
                     "--data",
                     "data",
                     "--split",
                     "train",
                     "--pairs",
                     "12",
                     "--set",
                     "model.residual=post-ln"} +
           Arguments{"--batch-tokens", "60", "--dtype", "float64", "--threads", "1", "--json", "-"} + more;
  }

  static Finished run(const Arguments& arguments) { return run_plumb(arguments, folder_->path()); }
  static Json result_of(const Finished& finished) {
    EXPECT_EQ(finished.status, 0) << finished.errors;
    return finished.status == 0 ? Json::parse(finished.output) : Json();
  }

  /// Starts a process with these environment variables.
  static std::unique_ptr<Process> start(const Arguments& variables, const Arguments& arguments) {
    return std::make_unique<Process>("env", variables + Arguments{test::plumb_program()} + arguments, folder_->path());
  }
  static Arguments rank(int number, int port) {
    return {fmt::format("RANK={}", number), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
            fmt::format("MASTER_PORT={}", port)};
  }
};

/// Compares the numbers that do not depend on how far Lanczos has converged at the lower end.
void expect_same_spectrum(const Json& found, const Json& one) {
  for (const char* key : {"parameters", "tokens", "micro_batches", "graphs_kept", "products"})
    EXPECT_EQ(found[key], one[key]) << key;
  const double largest = one["max"].get<double>();
  for (const char* key : {"loss", "gradient_norm", "max", "trace", "frobenius"}) {
    const double expected = one[key].get<double>();
    const double scale = std::max(std::abs(expected), largest);
    EXPECT_NEAR(found[key].get<double>(), expected, 1e-12 * scale) << key;
  }
}

// They share the batches, and divide the model.
TEST_F(SharedVerb, SpectraOfSeveralProcessesAreThoseOfOne) {
  const Arguments spectrum = command("spectrum", {"--steps", "60", "-q", "--label-smoothing", "0.1"});
  const Json one = result_of(run(spectrum));
  EXPECT_GE(one["micro_batches"].get<int>(), 3);
  EXPECT_EQ(one["processes"], 1);
  for (const auto& [given, processes] : {std::pair<Arguments, int>{{"--processes", "3"}, 3},
                                         {{"--tensor-parallel", "2"}, 2},
                                         {{"--tensor-parallel", "2", "--processes", "4"}, 4}}) {
    const Finished finished = run(spectrum + given);
    EXPECT_EQ(finished.errors, "");
    const Json found = result_of(finished);
    EXPECT_EQ(found["processes"], processes);
    expect_same_spectrum(found, one);
  }
}

TEST_F(SharedVerb, MeshesThatDoNotFitAreRefusedOnce) {
  const Arguments spectrum = command("spectrum", {"--steps", "20", "-q"});
  const auto refused = [&](const Arguments& given, const std::string& error) {
    const Finished finished = run(spectrum + given);
    EXPECT_NE(finished.status, 0);
    EXPECT_TRUE(finished.errors.starts_with("plumb: error: " + error)) << finished.errors;
    EXPECT_EQ(std::count(finished.errors.begin(), finished.errors.end(), '\n'), 2) << finished.errors;  // said once
  };
  refused({"--tensor-parallel", "3"}, "model.heads = 2 cannot be divided among the 3 processes of --tensor-parallel\n");
  refused({"--tensor-parallel", "2", "--processes", "3"}, "3 processes cannot be divided into groups of 2\n");
  refused({"--tensor-parallel", "2", "--dense"}, "--dense excludes --tensor-parallel\n");
}

// With a single micro-batch, so that two of the three processes have none.
TEST_F(SharedVerb, ProbesOfSeveralProcessesAreThoseOfOne) {
  const auto golden = [](const char* extension) {
    return (test::source_directory() / "tests" / "golden" / (std::string("post_tiny") + extension)).string();
  };
  const Arguments probe = {"probe",
                           "--config",
                           golden(".toml"),
                           "--weights",
                           golden(".safetensors"),
                           "--batch",
                           golden(".json"),
                           "--dtype",
                           "float64",
                           "--gains",
                           "--curvature",
                           "60",
                           "--first-step",
                           "--threads",
                           "1",
                           "--json",
                           "-",
                           "-q"};
  const Json one = result_of(run(probe));
  const Finished finished = run(probe + Arguments{"--processes", "3"});
  EXPECT_EQ(finished.errors, "");
  const Json found = result_of(finished);
  EXPECT_EQ(found["model"], one["model"]);
  for (const char* pointer :
       {"/loss", "/gradient_norm_total", "/gradient_norm/encoder.layers.0.linear1.weight", "/signal/4/mean_square/mean",
        "/signal/4/epsilon_at_0_125/mean", "/branches/3/ratio/mean", "/branches/3/similarity/mean",
        "/feed_forward/0/gradient_norm/mean", "/backward_gain/stacks/1/parts/1/gain/mean",
        "/first_step/1/logit_change/mean", "/first_step/1/critical_rate/mean", "/curvature/hessian/max/mean",
        "/curvature/gauss_newton/max/mean"}) {
    const Json::json_pointer place(pointer);
    ASSERT_TRUE(one.contains(place)) << pointer;
    ASSERT_TRUE(found.contains(place)) << pointer;
    const double expected = one[place].get<double>();
    EXPECT_NEAR(found[place].get<double>(), expected, 1e-9 * std::abs(expected)) << pointer;
  }
}

// Processes as Open MPI and Slurm start them; below they are as torchrun starts them. Only rank 0 prints.
TEST_F(SharedVerb, LaunchedProcessesShareASpectrum) {
  const Arguments spectrum = command("spectrum", {"--steps", "60"});
  const Json one = result_of(run(spectrum));
  const auto open_mpi = [](int number, int port) -> Arguments {
    return {fmt::format("OMPI_COMM_WORLD_RANK={}", number), "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
            "PMIX_NAMESPACE=job", fmt::format("MASTER_PORT={}", port)};
  };
  const auto slurm = [](int number, int port) -> Arguments {
    return {fmt::format("SLURM_PROCID={}", number),
            "SLURM_STEP_NUM_TASKS=2",
            "SLURM_STEP_ID=0",
            "SLURM_JOB_ID=7",
            "MASTER_ADDR=127.0.0.1",
            fmt::format("MASTER_PORT={}", port)};
  };
  for (const std::function<Arguments(int, int)>& variables :
       std::vector<std::function<Arguments(int, int)>>{open_mpi, slurm}) {
    const int port = unused_port();
    const auto first = start(variables(0, port), spectrum), second = start(variables(1, port), spectrum);
    const Finished leader = first->wait(), other = second->wait();
    const Json found = result_of(leader);
    EXPECT_EQ(found["processes"], 2);
    expect_same_spectrum(found, one);
    EXPECT_EQ(other.status, 0) << other.errors;
    EXPECT_EQ(other.output, "");
    EXPECT_EQ(other.errors, "");
  }
}

TEST_F(SharedVerb, ProcessesThatMeasureDifferentThingsSayWhich) {
  const std::vector<std::pair<Arguments, std::string>> different = {
      {{"--label-smoothing", "0.1"}, "--label-smoothing = 0.1 in rank 1"},
      {{"--set", "model.feed_forward=12"}, "model.feed_forward = 12 in rank 1"},
      {{"--seed", "2"}, "--seed = 2 in rank 1"}};
  for (const auto& [more, expected] : different) {
    const int port = unused_port();
    const auto first = start(rank(0, port), command("probe", {"--seeds", "1"}));
    const auto second = start(rank(1, port), command("probe", Arguments{"--seeds", "1"} + more));
    for (const Finished& finished : {first->wait(), second->wait()}) {
      EXPECT_EQ(finished.status, 1);
      EXPECT_EQ(finished.output, "");
      EXPECT_CONTAINS(finished.errors, expected);
    }
  }
}

TEST_F(SharedVerb, AnErrorInOneProcessEndsAllWithItsReason) {
  const int port = unused_port();
  Arguments without_data = command("spectrum");
  for (std::string& argument : without_data) {
    if (argument == "data") argument = "absent";
  }
  const auto first = start(rank(0, port), command("spectrum"));
  const auto second = start(rank(1, port), without_data);
  for (const Finished& finished : {first->wait(), second->wait()}) {
    EXPECT_EQ(finished.status, 1);
    EXPECT_EQ(finished.output, "");
    EXPECT_CONTAINS(finished.errors, "absent");
  }
  // If this program starts the others, it finds its data first: one process, one message.
  const Finished alone = run(without_data + Arguments{"--processes", "2"});
  EXPECT_EQ(alone.status, 1);
  EXPECT_CONTAINS(alone.errors, "plumb: error: ");
  EXPECT_EQ(alone.errors.find("plumb: error: "), alone.errors.rfind("plumb: error: ")) << alone.errors;
}

TEST_F(SharedVerb, TheNumberOfProcessesIsChecked) {
  for (const std::string verb : {"spectrum", "probe"}) {
    for (const std::string processes : {"0", "-1", "two"})
      EXPECT_EQ(run(command(verb, {"--processes", processes})).status, 2) << verb << ' ' << processes;
  }
}

}  // namespace
}  // namespace plumb
